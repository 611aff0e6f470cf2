// Conditions of clients from the reports of the replicas: `Denied` (refused requests that the owner can fix) and
// `Alert` (signs of a stolen token). A condition expires after its TTL or with a new generation, and is updated at a
// limited rate. The state is in memory only; after a fail-over the replicas report again what they know, and a
// condition in status stays until it expires.

import type { Condition } from '../../admission/kinds/conditions.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';

const HOUR = 3_600_000;
/** How long a notice stays, from the last time. */
const TTL_MILLISECONDS = 24 * HOUR;

/** What replicas reported of a client for one reason. */
export interface Occurrence {
  /** A CamelCase word. */
  readonly reason: string;
  /** How often, as far as is known. */
  readonly count: number;
  /** The last time, epoch milliseconds. */
  readonly lastTime: number;
  /** The generation it is about. */
  readonly generation: number;
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
}

/** The notices of one type of condition, by uid of the client. */
export class StatusNotices {
  readonly #options: StatusNoticesOptions;
  /** By uid, then reason. */
  readonly #known = new Map<string, Map<string, Occurrence>>();
  readonly #shown = new Map<string, Shown>();

  constructor(options: StatusNoticesOptions) {
    this.#options = options;
  }

  /** @returns whether it is later than what is known for its reason */
  note(uid: string, occurrence: Occurrence): boolean {
    const known = this.#known.get(uid) ?? new Map<string, Occurrence>();
    const before = known.get(occurrence.reason);
    if (before !== undefined && !isLater(occurrence, before)) return false;
    this.#known.set(uid, known.set(occurrence.reason, occurrence));
    return true;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
    this.#shown.delete(uid);
  }

  /** Whether a status reports what was at a time, or something later. */
  isReported(status: unknown, generation: number, time: number): boolean {
    const reported = this.#shownIn(status);
    return reported?.generation === generation && reported.lastTime >= time;
  }

  /** @param before the present status */
  of(uid: string, generation: number, before: unknown, now: number): Notice {
    const { pace } = this.#options;
    let shown = this.#shown.get(uid) ?? this.#shownIn(before);
    if (shown !== undefined && (shown.generation !== generation || now >= shown.expiresAt)) shown = undefined;
    const known = latestOf(this.#known.get(uid));
    const isActive = known !== undefined && isCurrent(known, generation, now);
    const isNewer = isActive && known.lastTime > (shown?.lastTime ?? 0);
    const mayChange = shown === undefined || now - shown.at >= pace;
    if (isNewer && mayChange) {
      const { lastTime } = known;
      const condition = this.#condition(known, generation);
      shown = { condition, generation, lastTime, at: now, expiresAt: lastTime + TTL_MILLISECONDS };
    }
    if (shown === undefined) {
      this.#shown.delete(uid);
      return NOTHING;
    }
    this.#shown.set(uid, shown);
    return { condition: shown.condition, requeueAt: isNewer && !mayChange ? shown.at + pace : shown.expiresAt };
  }

  #condition(known: Occurrence, observedGeneration: number): Condition {
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
    return { condition, generation, lastTime, at: lastTime, expiresAt: lastTime + TTL_MILLISECONDS };
  }
}

function latestOf(occurrences: ReadonlyMap<string, Occurrence> = new Map()): Occurrence | undefined {
  return [...occurrences.values()].toSorted((one, other) => (isLater(one, other) ? -1 : 1))[0];
}

/** Generations decide before times, as the clocks of replicas differ. */
function isLater(one: Occurrence, other: Occurrence): boolean {
  return one.generation === other.generation ? one.lastTime > other.lastTime : one.generation > other.generation;
}

function isCurrent({ generation, lastTime }: Occurrence, present: number, now: number): boolean {
  return generation === present && now - lastTime < TTL_MILLISECONDS;
}
