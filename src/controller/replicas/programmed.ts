// The condition `Programmed`: whether every replica serves what is stored of an object. A version that all replicas were
// observed to serve is not queried again: they keep it, and a new replica has it before it takes requests.

import type { Programmed } from '../../admission/kinds/conditions.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { fraction } from '../../oauth/values/backoff.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';
import { type ObservedReplicas, replicasBehind, type ServedState } from './observed-replicas.ts';

/** How often replicas that are behind are queried, and for how long before status reports it, milliseconds. */
const POLL_MILLISECONDS = 100;
export const REPORT_AFTER_MILLISECONDS = 1000;
/** Bounds of the interval after that: it grows with the time that the replicas are behind. */
const MIN_BACKOFF_MILLISECONDS = 2000;
const MAX_BACKOFF_MILLISECONDS = 30_000;
const REPLICAS_NAMED = 3;

/** One version of an object, and how it is recognized. */
export interface StoredVersion {
  readonly uid: string;
  /** Differs for each version of the object. */
  readonly version: string;
  /** Whether a replica serves it. */
  readonly isServedBy: (replica: ServedState) => boolean;
  /** See {@link isProgrammedIn}. */
  readonly wasProgrammed: boolean;
}

/** The condition to report. */
export interface ProgrammedOutcome {
  readonly programmed: Programmed;
  /** Whether the status is to be written now: replicas that follow within a second cost no second write. */
  readonly isDue: boolean;
  /** Milliseconds until the next query; undefined: none without a change. */
  readonly requeueAfter: number | undefined;
}

export interface ProgrammedObjectsOptions {
  readonly replicas: ObservedReplicas;
  readonly clock: Clock;
  readonly random: Random;
}

export class ProgrammedObjects {
  readonly #options: ProgrammedObjectsOptions;
  /** By uid. */
  readonly #objects = new Map<string, Known>();

  constructor(options: ProgrammedObjectsOptions) {
    this.#options = options;
  }

  /** To be called when an object was deleted or refused: no replica serves it any more. */
  forget(uid: string): void {
    // A query that is running writes into its own entry, which goes with it.
    this.#objects.delete(uid);
  }

  /** To be called when replicas come and go. @returns the uids of the objects that waited for them, to be requeued */
  replicasChanged(): readonly string[] {
    const waiting = [...this.#objects].filter(([, { behindSince }]) => behindSince !== undefined);
    for (const [, known] of waiting) known.behindSince = undefined;
    return waiting.map(([uid]) => uid);
  }

  /** The condition to report, and when the replicas are queried again. */
  async report(stored: StoredVersion): Promise<ProgrammedOutcome> {
    const { clock, random } = this.#options;
    const known = this.#knownOf(stored.uid);
    const { programmed, isFinal } = await this.#observe(stored, known);
    if (isFinal) {
      known.behindSince = undefined;
      return { programmed, isDue: true, requeueAfter: undefined };
    }
    const now = clock.now();
    known.behindSince ??= now;
    const waited = now - known.behindSince;
    if (waited < REPORT_AFTER_MILLISECONDS) return { programmed, isDue: false, requeueAfter: POLL_MILLISECONDS };
    const wait = Math.min(MAX_BACKOFF_MILLISECONDS, Math.max(MIN_BACKOFF_MILLISECONDS, waited / 2));
    // With jitter: many objects may wait for the same replica.
    return { programmed, isDue: true, requeueAfter: wait * (1 - fraction(random) / 4) };
  }

  /** What the replicas serve now. */
  async of(stored: StoredVersion): Promise<Programmed> {
    return (await this.#observe(stored, this.#knownOf(stored.uid))).programmed;
  }

  #knownOf(uid: string): Known {
    const known = this.#objects.get(uid) ?? { served: undefined, behindSince: undefined };
    this.#objects.set(uid, known);
    return known;
  }

  async #observe(stored: StoredVersion, known: Known): Promise<Observed> {
    const { uid, version, isServedBy, wasProgrammed } = stored;
    if (known.served === version) return { programmed: SERVED, isFinal: true };
    const observation = await this.#options.replicas.observe([uid]);
    if (observation.outcome === 'NotObserved') return { programmed: NOT_OBSERVED, isFinal: true };
    const behind = replicasBehind(observation, isServedBy);
    if (observation.outcome === 'Observed' && behind.length === 0) {
      known.served = version;
      return { programmed: SERVED, isFinal: true };
    }
    // An unresponsive replica does not revoke the last status.
    const unresponsive = replicasBehind(observation, () => true);
    const isUnchanged = wasProgrammed && behind.length === unresponsive.length;
    return { programmed: isUnchanged ? SERVED : pendingOn(behind), isFinal: false };
  }
}

/** What is known of one object. */
interface Known {
  /** The version that all replicas serve. */
  served: string | undefined;
  /** Since when the replicas are behind. */
  behindSince: number | undefined;
}

interface Observed {
  readonly programmed: Programmed;
  /** Whether it changes only with an event. */
  readonly isFinal: boolean;
}

/** Whether a status that may be anything reports that all replicas serve this generation, as a former leader observed it. */
export function isProgrammedIn(lastStatus: unknown, generation: number): boolean {
  const { status, reason, observedGeneration } = conditionIn(lastStatus, 'Programmed') ?? {};
  return status === 'True' && reason === 'Programmed' && observedGeneration === generation;
}

/** Also where no replica takes requests, or one became unresponsive. */
export const SERVED: Programmed = {
  status: 'True',
  reason: 'Programmed',
  message: 'Every replica serves it before it takes requests.',
};

export const NOT_OBSERVED: Programmed = {
  status: 'True',
  reason: 'NotObserved',
  message: 'No addresses of replicas are configured.',
};

const NO_REPLICAS: Programmed = { status: 'Unknown', reason: 'NoReplicas', message: 'No replica takes requests.' };

/** @param behind the names of the replicas that do not serve it; none: no replica takes requests */
export function pendingOn(behind: readonly string[]): Programmed {
  if (behind.length === 0) return NO_REPLICAS;
  return { status: 'False', reason: 'Pending', message: `Not served yet by ${namesOf(behind)}.` };
}

/** Names of replicas as part of a sentence: the first three, and how many more. */
export function namesOf(replicas: readonly string[]): string {
  const more = replicas.length > REPLICAS_NAMED ? ` and ${replicas.length - REPLICAS_NAMED} more` : '';
  return `${replicas.slice(0, REPLICAS_NAMED).join(', ')}${more}`;
}
