// What the replicas met with, as conditions of the clients it is about: `Denied` (requests that the owner can make good) and
// `Alert` (signs of a stolen token). Bad news that fades: at most one status write an hour for each client, gone a day after
// the last of it or with a new generation. They are kept here and nowhere else; after a change of leader the replicas tell
// again what they know, and what status says stands until it fades.

import type { Condition } from '../admission/conditions.ts';
import { conditionIn } from './client-status.ts';

const HOUR = 3_600_000;
/** How often a notice may change in status. */
const SHOWN_MILLISECONDS = HOUR;
/** How long after its last time a notice is dropped. */
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
  /** The generation the client had when this came to be known. */
  readonly generation: number;
}

interface Shown {
  readonly condition: Condition;
  readonly generation: number;
  /** The last time that it tells of. */
  readonly lastTime: number;
  /** When it began to be shown. */
  readonly at: number;
}

/** What there is to say of one client, and when that will be something else. */
export interface Notice {
  readonly condition: Condition | undefined;
  /** Epoch milliseconds; undefined: not before something happens. */
  readonly again: number | undefined;
}

const NOTHING: Notice = { condition: undefined, again: undefined };

/** The notices of one type of condition, by uid of the client. */
export class ClientNotices {
  readonly #type: 'Denied' | 'Alert';
  readonly #sentence: (happening: Happening) => string;
  readonly #known = new Map<string, Known>();
  readonly #shown = new Map<string, Shown>();

  /** @param sentence what is said of a happening; its last time is put behind */
  constructor(type: 'Denied' | 'Alert', sentence: (happening: Happening) => string) {
    this.#type = type;
    this.#sentence = sentence;
  }

  /** @returns whether this is news */
  note(uid: string, happening: Happening, generation: number): boolean {
    const known = this.#known.get(uid);
    if (known !== undefined && known.lastTime >= happening.lastTime) return false;
    this.#known.set(uid, { ...happening, generation });
    return true;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
    this.#shown.delete(uid);
  }

  /** @param before the status that is there */
  of(uid: string, generation: number, before: unknown, now: number): Notice {
    const fades = (notice: Pick<Known, 'generation' | 'lastTime'> | undefined) =>
      notice === undefined || notice.generation !== generation || now - notice.lastTime >= FADES_MILLISECONDS;
    let shown = this.#shown.get(uid) ?? this.#shownIn(before);
    const known = this.#known.get(uid);
    const isNews = known !== undefined && !fades(known) && known.lastTime > (shown?.lastTime ?? 0);
    const mayChange = shown === undefined || fades(shown) || now - shown.at >= SHOWN_MILLISECONDS;
    if (isNews && mayChange) shown = { ...known, condition: this.#condition(known), at: now };
    if (shown === undefined || fades(shown)) {
      this.#shown.delete(uid);
      return NOTHING;
    }
    this.#shown.set(uid, shown);
    const again = isNews && !mayChange ? shown.at + SHOWN_MILLISECONDS : shown.lastTime + FADES_MILLISECONDS;
    return { condition: shown.condition, again };
  }

  #condition(known: Known): Condition {
    const { reason, lastTime, generation } = known;
    const message = `${this.#sentence(known)} The last time was ${new Date(lastTime).toISOString()}.`;
    return { type: this.#type, status: 'True', reason, message, observedGeneration: generation };
  }

  /** What another leader said. */
  #shownIn(before: unknown): Shown | undefined {
    const { status, reason, message, observedGeneration: generation } = conditionIn(before, this.#type) ?? {};
    const [, time = ''] = /The last time was (\S+)\.$/.exec(String(message)) ?? [];
    const lastTime = Date.parse(time);
    if (status !== 'True' || typeof reason !== 'string' || typeof generation !== 'number') return undefined;
    if (Number.isNaN(lastTime)) return undefined;
    const condition: Condition = {
      ...{ type: this.#type, status, reason },
      ...{ message: String(message), observedGeneration: generation },
    };
    return { condition, generation, lastTime, at: lastTime };
  }
}
