// Whether the replicas serve the present generation of a ProtectedResource: the condition `Programmed`. A generation that
// all replicas were observed to serve is not queried again.

import type { Programmed } from '../../admission/kinds/conditions.ts';
import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';
import { type ObservedReplicas, replicasBehind } from '../replicas/observed-replicas.ts';

/** How often the replicas are polled for a change, and how long they may be behind before status reports it. */
const POLL_MILLISECONDS = 100;
const REPORT_AFTER_MILLISECONDS = 1000;
/** How often they are polled after that. */
const BEHIND_POLL_MILLISECONDS = 5000;
const REPLICAS_NAMED = 3;

/** The condition to report. */
export interface ProgrammedOutcome {
  readonly programmed: Programmed;
  /** Whether the status is to be written now: replicas that follow within a second cost no second write. */
  readonly isDue: boolean;
  /** Milliseconds until the next observation; undefined: none without a change. */
  readonly requeueAfter: number | undefined;
}

export class ProgrammedResources {
  readonly #replicas: ObservedReplicas;
  readonly #clock: Clock;
  /** The generation that all replicas serve, by uid. */
  readonly #served = new Map<string, number>();
  /** Since when the replicas are behind, by uid. */
  readonly #behindSince = new Map<string, number>();

  constructor(replicas: ObservedReplicas, clock: Clock) {
    this.#replicas = replicas;
    this.#clock = clock;
  }

  /** To be called when a resource was deleted or refused. */
  forget(uid: string): void {
    this.#served.delete(uid);
    this.#behindSince.delete(uid);
  }

  /** @param lastStatus what a former leader observed counts while replicas do not answer */
  async of({ uid, generation }: SourceObject, lastStatus: unknown): Promise<ProgrammedOutcome> {
    if (this.#served.get(uid) === generation) return SERVED;
    const observation = await this.#replicas.observe([uid]);
    if (observation.outcome === 'NotObserved') return NOT_OBSERVED;
    const behind = replicasBehind(observation, ({ resources }) => resources.get(uid)?.generation === generation);
    if (observation.outcome === 'Observed' && behind.length === 0) {
      this.#served.set(uid, generation);
      this.#behindSince.delete(uid);
      return SERVED;
    }
    const unresponsive = replicasBehind(observation, () => true);
    const { status, reason, observedGeneration } = conditionIn(lastStatus, 'Programmed') ?? {};
    const wasServed = status === 'True' && reason === 'Programmed' && observedGeneration === generation;
    const programmed = behind.length === 0 ? NO_REPLICAS : pendingOn(behind);
    const since = this.#behindSince.get(uid) ?? this.#clock.now();
    this.#behindSince.set(uid, since);
    const isDue = this.#clock.now() - since >= REPORT_AFTER_MILLISECONDS;
    const requeueAfter = isDue ? BEHIND_POLL_MILLISECONDS : POLL_MILLISECONDS;
    // An unresponsive replica does not revoke the last status.
    if (wasServed && behind.length === unresponsive.length) return { ...SERVED, requeueAfter };
    return { programmed, isDue, requeueAfter };
  }
}

const SERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'Programmed', message: 'Every replica serves it before it takes requests.' },
  isDue: true,
  requeueAfter: undefined,
};

const NOT_OBSERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'NotObserved', message: 'No addresses of replicas are configured.' },
  isDue: true,
  requeueAfter: undefined,
};

const NO_REPLICAS: Programmed = { status: 'Unknown', reason: 'NoReplicas', message: 'No replica takes requests.' };

function pendingOn(behind: readonly string[]): Programmed {
  const more = behind.length > REPLICAS_NAMED ? ` and ${behind.length - REPLICAS_NAMED} more` : '';
  const message = `Not served yet by ${behind.slice(0, REPLICAS_NAMED).join(', ')}${more}.`;
  return { status: 'False', reason: 'Pending', message };
}
