// Reports on the objects of one kind: replaces the status where it differs, and records Events about its conditions: a
// Warning for each that becomes False, and a Normal `Ready` once all of them hold again.

import type { Condition } from '../../admission/kinds/conditions.ts';
import type { KubernetesObject, Resource } from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isAbsent, isTerminating } from '../leadership/refused-calls.ts';
import type { EventFacts } from './events.ts';
import { isConflict } from './stale-read.ts';
import { conditionIn, isSameStatus } from './status-conditions.ts';

export interface StatusReportOptions {
  readonly api: Pick<LeaderApi, 'apply'>;
  readonly record: (event: EventFacts) => void;
}

const REMEMBERED = 4096;

export class StatusReport {
  readonly #options: StatusReportOptions;
  readonly #resource: Resource;
  /** Objects as the watch delivered them, whose status this process has replaced since. */
  readonly #replaced = new WeakSet<KubernetesObject>();
  /** The objects with a Warning since they were last Ready, by uid. A status in between may have no fault. */
  readonly #warned = new Set<string>();

  constructor({ api, record }: StatusReportOptions, resource: Resource) {
    this.#options = { api, record };
    this.#resource = resource;
  }

  /**
   * Writes the status where it differs from that of the object, and then records the Events.
   * @param object as the cache of the watch has it, the very object: the write is pinned to its version. What the watch has
   * still to deliver is reconciled when it comes, so no write is repeated
   * @param conditions that Events are about, `Ready` among them
   * @param onCurrent called before the Events, once the object has the status; not where the cache is stale or the object
   * is deleted
   */
  async report(
    object: KubernetesObject,
    status: object,
    conditions: readonly Condition[],
    onCurrent: () => void = () => {},
  ): Promise<void> {
    const isSame = isSameStatus(status, object.status);
    if (!isSame && (this.#replaced.has(object) || !(await this.#write(object, status)))) return;
    onCurrent();
    if (!isSame) this.#recordEvents(object, conditions);
  }

  async #write(object: KubernetesObject, status: object): Promise<boolean> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const metadata = { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) };
    try {
      const written = await this.#options.api.apply(this.#resource, { metadata, status }, { subresource: 'status' });
      // A write that changes nothing has no version of its own, and the watch delivers nothing.
      if (written.metadata.resourceVersion !== resourceVersion) this.#replaced.add(object);
      return true;
    } catch (error) {
      if (isConflict(error) || isAbsent(error) || isTerminating(error)) return false;
      throw error;
    }
  }

  #recordEvents(regarding: KubernetesObject, conditions: readonly Condition[]): void {
    const { record } = this.#options;
    const { status: before, metadata } = regarding;
    const faults = conditions.filter(isFault);
    for (const { type, reason, message } of faults) {
      if (conditionIn(before, type)?.reason === reason) continue;
      record({ regarding, type: 'Warning', reason, action: 'Reconcile', note: message });
    }
    const { uid } = metadata;
    // A former leader may have recorded the Warning.
    const hadFault = conditions.some(({ type }) => isFault({ type, ...conditionIn(before, type) }));
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (hadFault || faults.length > 0) this.#remember(uid);
    if (isReady && faults.length === 0 && this.#warned.delete(uid)) record({ regarding, type: 'Normal', ...READY });
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
