// Conditions of clients from the reports of the replicas: `Denied` (refused requests that the owner can fix) and
// `Alert` (signs of a stolen token). A condition expires after its TTL or with a new generation, and is updated at a
// limited rate. The state is in memory only; after a fail-over the replicas report again what they know, and a
// condition in status stays until it expires.

import type { Condition } from '../../admission/kinds/conditions.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';

const HOUR = 3_600_000;
/** How long a notice stays, from its TTL anchor. */
const TTL_MILLISECONDS = 24 * HOUR;

/** What replicas reported of a client for one reason. */
export interface Occurrence {
  /** A CamelCase word. */
  readonly reason: string;
  /** How often, as far as is known. */
  readonly count: number;
  /** The last time, epoch milliseconds. */
  readonly lastTime: number;
}

interface Known extends Occurrence {
  /** The generation it is about. Undefined: the present one of the client, until status reports it, however late. */
  readonly generation: number | undefined;
}

interface Shown {
  readonly condition: Condition;
  readonly generation: number;
  /** The last occurrence in the condition, epoch milliseconds. */
  readonly lastTime: number;
  /** When it began to be shown. */
  readonly at: number;
  /** When it is dropped. */
  readonly expiresAt: number;
}

/** The condition of one client, and when it is due to change. */
export interface Notice {
  readonly condition: Condition | undefined;
  /** Epoch milliseconds; undefined: only with a new report. */
  readonly requeueAt: number | undefined;
}

const NOTHING: Notice = { condition: undefined, requeueAt: undefined };

export interface StatusNoticesOptions {
  readonly type: 'Denied' | 'Alert';
  /** The message of an occurrence; its last time is appended. */
  readonly sentence: (occurrence: Occurrence) => string;
  /** The shortest time between two changes in status. Milliseconds. */
  readonly pace: number;
  /** Where the TTL starts: at the time of the event, or at its first report in status if that is later. */
  readonly ttlAnchor: 'event-time' | 'first-report';
}

/** The notices of one type of condition, by uid of the client. */
export class StatusNotices {
  readonly #options: StatusNoticesOptions;
  readonly #known = new Map<string, Known>();
  readonly #shown = new Map<string, Shown>();

  constructor(options: StatusNoticesOptions) {
    this.#options = options;
  }

  /**
   * @param generation that it is about; undefined for one that must be reported whichever generation the client has by
   * then
   * @returns whether it is later than what is known
   */
  note(uid: string, occurrence: Occurrence, generation?: number): boolean {
    const known = this.#known.get(uid);
    const observed = { ...occurrence, generation };
    if (known !== undefined && !isLater(observed, known)) return false;
    this.#known.set(uid, observed);
    return true;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
    this.#shown.delete(uid);
  }

  /**
   * The last occurrence that a status reports for this generation; undefined when it reports none, or another
   * generation.
   */
  lastReported(generation: number, status: unknown): number | undefined {
    const reported = this.#shownIn(status);
    return reported?.generation === generation ? reported.lastTime : undefined;
  }

  /** @param before the present status */
  of(uid: string, generation: number, before: unknown, now: number): Notice {
    const { pace } = this.#options;
    const reported = this.#shownIn(before);
    let shown = this.#shown.get(uid) ?? reported;
    if (shown !== undefined && (shown.generation !== generation || now >= shown.expiresAt)) shown = undefined;
    const known = this.#bindToGeneration(uid, generation, reported);
    const isActive = known !== undefined && isCurrent(known, generation, now);
    const isNewer = isActive && known.lastTime > (shown?.lastTime ?? 0);
    const mayChange = shown === undefined || now - shown.at >= pace;
    if (isNewer && mayChange) {
      const { lastTime } = known;
      const condition = this.#condition(known, generation);
      shown = { condition, generation, lastTime, at: now, expiresAt: this.#expiresAt(lastTime, now) };
    }
    if (shown === undefined) {
      this.#shown.delete(uid);
      return NOTHING;
    }
    this.#shown.set(uid, shown);
    return { condition: shown.condition, requeueAt: isNewer && !mayChange ? shown.at + pace : shown.expiresAt };
  }

  /**
   * Binds an occurrence to the present generation once status reports it for that one. A status of another generation
   * does not bind it: it may have been written when the client had left that generation.
   */
  #bindToGeneration(uid: string, generation: number, reported: Shown | undefined): Known | undefined {
    const known = this.#known.get(uid);
    if (known === undefined || known.generation !== undefined || reported?.generation !== generation) return known;
    if (reported.lastTime < known.lastTime) return known;
    const bound = { ...known, generation };
    this.#known.set(uid, bound);
    return bound;
  }

  #condition(known: Known, observedGeneration: number): Condition {
    const { type, sentence } = this.#options;
    const { reason, lastTime } = known;
    const message = `${sentence(known)} The last time was ${new Date(lastTime).toISOString()}.`;
    return { type, status: 'True', reason, message, observedGeneration };
  }

  /** The notice in a status, whichever leader wrote it. */
  #shownIn(status: unknown): Shown | undefined {
    const { type } = this.#options;
    const found = conditionIn(status, type) ?? {};
    const { reason, message, observedGeneration: generation } = found;
    const [, time = ''] = /The last time was (\S+)\.$/.exec(String(message)) ?? [];
    const lastTime = Date.parse(time);
    if (found.status !== 'True' || typeof reason !== 'string' || typeof generation !== 'number') return undefined;
    if (Number.isNaN(lastTime)) return undefined;
    const condition: Condition = {
      type,
      status: 'True',
      reason,
      message: String(message),
      observedGeneration: generation,
    };
    const since = Date.parse(String(found.lastTransitionTime));
    const reportedAt = Number.isNaN(since) ? lastTime : since;
    return { condition, generation, lastTime, at: lastTime, expiresAt: this.#expiresAt(lastTime, reportedAt) };
  }

  #expiresAt(lastTime: number, reportedAt: number): number {
    return (this.#options.ttlAnchor === 'first-report' ? Math.max(lastTime, reportedAt) : lastTime) + TTL_MILLISECONDS;
  }
}

/**
 * Generations decide before times, as the clocks of replicas differ. What is bound to one was reported, the other not.
 */
function isLater(one: Known, other: Known): boolean {
  if (one.generation === undefined && other.generation !== undefined) return true;
  const isComparable = one.generation !== undefined && other.generation !== undefined;
  if (isComparable && one.generation !== other.generation) return one.generation > other.generation;
  return one.lastTime > other.lastTime;
}

function isCurrent({ generation, lastTime }: Known, present: number, now: number): boolean {
  return generation === undefined || (generation === present && now - lastTime < TTL_MILLISECONDS);
}
