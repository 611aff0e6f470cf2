// Records the Events about the conditions of one kind: a Warning for each that becomes False, and a Normal `Ready` once
// all of them hold again.

import type { Condition } from '../../admission/kinds/conditions.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { EventFacts } from './events.ts';
import { conditionIn } from './status-conditions.ts';

const REMEMBERED = 4096;

export class ConditionEvents {
  readonly #record: (event: EventFacts) => void;
  /** The objects with a Warning since they were last Ready, by uid. A status in between may have no fault. */
  readonly #warned = new Set<string>();

  constructor(record: (event: EventFacts) => void) {
    this.#record = record;
  }

  /**
   * To be called when a status was written.
   * @param conditions that are reported, `Ready` among them
   * @param regarding with the status before
   */
  record(regarding: KubernetesObject, conditions: readonly Condition[]): void {
    const { status: before, metadata } = regarding;
    const faults = conditions.filter(isFault);
    for (const { type, reason, message } of faults) {
      if (conditionIn(before, type)?.reason === reason) continue;
      this.#record({ regarding, type: 'Warning', reason, action: 'Reconcile', note: message });
    }
    const { uid } = metadata;
    // A former leader may have recorded the Warning.
    const hadFault = conditions.some(({ type }) => isFault({ type, ...conditionIn(before, type) }));
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (hadFault || faults.length > 0) this.#remember(uid);
    if (isReady && faults.length === 0 && this.#warned.delete(uid))
      this.#record({ regarding, type: 'Normal', ...READY });
  }

  #remember(uid: string): void {
    this.#warned.add(uid);
    for (const oldest of this.#warned) {
      if (this.#warned.size <= REMEMBERED) break;
      this.#warned.delete(oldest);
    }
  }
}

const READY = { reason: 'Ready', action: 'Reconcile', note: 'It is Ready: what was reported is over.' };

/** Whether a condition is a fault of its own: `Ready` repeats another one, and what is pending passes. */
function isFault({ type, status, reason }: Partial<Record<keyof Condition, unknown>>): boolean {
  return status === 'False' && type !== 'Ready' && reason !== 'Pending';
}
