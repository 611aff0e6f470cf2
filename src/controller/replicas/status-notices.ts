// What the replicas met with, as conditions of the clients it is about: `Denied` (requests that the owner can make good) and
// `Alert` (signs of a stolen token). Bad news that fades: gone a day after the last of it or with a new generation, and
// changed only so often. They are kept here and nowhere else; after a change of leader the replicas tell again what they
// know, and what status says stands until it fades.

import type { Condition } from '../../admission/kinds/conditions.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';

const HOUR = 3_600_000;
/** How long a notice stays. */
const FADES_MILLISECONDS = 24 * HOUR;

/** Something that happened to a client. */
export interface Happening {
  /** A CamelCase word. */
  readonly reason: string;
  /** How often, as far as is known. */
  readonly count: number;
  /** The last time, epoch milliseconds. */
  readonly lastTime: number;
}

interface Known extends Happening {
  /** The generation it is about. Undefined: whichever the client has until status tells of it, however late that is. */
  readonly generation: number | undefined;
}

interface Shown {
  readonly condition: Condition;
  readonly generation: number;
  /** The last time that it tells of. */
  readonly lastTime: number;
  /** When it began to be shown. */
  readonly at: number;
  /** When it is dropped. */
  readonly until: number;
}

/** What there is to say of one client, and when that will be something else. */
export interface Notice {
  readonly condition: Condition | undefined;
  /** Epoch milliseconds; undefined: not before something happens. */
  readonly again: number | undefined;
}

const NOTHING: Notice = { condition: undefined, again: undefined };

export interface StatusNoticesOptions {
  readonly type: 'Denied' | 'Alert';
  /** What is said of a happening; its last time is put behind. */
  readonly sentence: (happening: Happening) => string;
  /** How often it may change in status. Milliseconds. */
  readonly pace: number;
  /** What its day begins with: that it happened, or that it was told, if that was later. */
  readonly dayBegins: 'happened' | 'told';
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
   * @param generation that it is about; undefined for what must be told, whatever the client has become meanwhile
   * @returns whether this is news
   */
  note(uid: string, happening: Happening, generation?: number): boolean {
    const known = this.#known.get(uid);
    const noticed = { ...happening, generation };
    if (known !== undefined && !isLater(noticed, known)) return false;
    this.#known.set(uid, noticed);
    return true;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
    this.#shown.delete(uid);
  }

  /** The last time that a status tells of, of this generation; undefined when it tells of nothing, or of another. */
  lastTold(generation: number, status: unknown): number | undefined {
    const told = this.#shownIn(status);
    return told?.generation === generation ? told.lastTime : undefined;
  }

  /** @param before the status that is there */
  of(uid: string, generation: number, before: unknown, now: number): Notice {
    const { pace } = this.#options;
    const told = this.#shownIn(before);
    let shown = this.#shown.get(uid) ?? told;
    if (shown !== undefined && (shown.generation !== generation || now >= shown.until)) shown = undefined;
    const known = this.#knownBeside(uid, generation, told);
    const counts = known !== undefined && countsFor(known, generation, now);
    const isNews = counts && known.lastTime > (shown?.lastTime ?? 0);
    const mayChange = shown === undefined || now - shown.at >= pace;
    if (isNews && mayChange) {
      const { lastTime } = known;
      const condition = this.#condition(known, generation);
      shown = { condition, generation, lastTime, at: now, until: this.#fadesAt(lastTime, now) };
    }
    if (shown === undefined) {
      this.#shown.delete(uid);
      return NOTHING;
    }
    this.#shown.set(uid, shown);
    return { condition: shown.condition, again: isNews && !mayChange ? shown.at + pace : shown.until };
  }

  /**
   * What status tells of the generation that the client has is of that one from then on. Of another it may have been told
   * when the client was not of that any more.
   */
  #knownBeside(uid: string, generation: number, told: Shown | undefined): Known | undefined {
    const known = this.#known.get(uid);
    if (known === undefined || known.generation !== undefined || told?.generation !== generation) return known;
    if (told.lastTime < known.lastTime) return known;
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

  /** What a status says, of whichever leader. */
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
    const toldAt = Number.isNaN(since) ? lastTime : since;
    return { condition, generation, lastTime, at: lastTime, until: this.#fadesAt(lastTime, toldAt) };
  }

  #fadesAt(lastTime: number, toldAt: number): number {
    return (this.#options.dayBegins === 'told' ? Math.max(lastTime, toldAt) : lastTime) + FADES_MILLISECONDS;
  }
}

/** The clocks of replicas differ; generations do not. What is bound to one was told, and the other was not. */
function isLater(one: Known, other: Known): boolean {
  if (one.generation === undefined && other.generation !== undefined) return true;
  const isComparable = one.generation !== undefined && other.generation !== undefined;
  if (isComparable && one.generation !== other.generation) return one.generation > other.generation;
  return one.lastTime > other.lastTime;
}

function countsFor({ generation, lastTime }: Known, present: number, now: number): boolean {
  return generation === undefined || (generation === present && now - lastTime < FADES_MILLISECONDS);
}
