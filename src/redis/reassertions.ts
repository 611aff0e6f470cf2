// The revocations of the last minute and a half, to be applied again after a fail-over: the server that took over may not
// have them. They only ever make things deader, so that applying them again, late or in any order, is right.

import type { Clock } from '../oauth/ports.ts';
import type { Script } from './connection.ts';

/** A write that may be applied again at any time. */
export interface Reassertion {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** How long a write is remembered while all is well, in milliseconds: until the watch over the shards tells a loss by itself. */
const WINDOW = 90_000;

/** The most that is remembered; the oldest goes first. */
const CAPACITY = 10_000;

export class Reassertions {
  readonly #clock: Clock;
  /** By what they write, oldest first. */
  readonly #remembered = new Map<string, { readonly write: Reassertion; readonly time: number }>();
  /** Those not yet applied again. */
  readonly #due = new Set<string>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  /** Due at once: the server it was written to may have been replaced already, without any connection telling. */
  remember(write: Reassertion): void {
    const name = nameOf(write);
    this.#remembered.delete(name);
    this.#remembered.set(name, { write, time: this.#clock.now() });
    this.#due.add(name);
    if (this.#remembered.size > CAPACITY) this.#forgetOldest();
  }

  /** Takes out what is due, or everything: it is due no longer. Oldest first. */
  take(which: 'all' | 'due'): readonly Reassertion[] {
    const taken = [...this.#remembered].filter(([name]) => which === 'all' || this.#due.has(name));
    this.#due.clear();
    return taken.map(([, { write }]) => write);
  }

  /** It could not be applied: it is due again. */
  failed(write: Reassertion): void {
    const name = nameOf(write);
    if (this.#remembered.has(name)) this.#due.add(name);
  }

  /** Forgets what is older than that. Only for times when all is well: an outage makes nothing old. */
  forgetOld(): void {
    const limit = this.#clock.now() - WINDOW;
    for (const { time } of this.#remembered.values()) {
      if (time > limit) return;
      this.#forgetOldest();
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#remembered.keys();
    if (oldest === undefined) return;
    this.#remembered.delete(oldest);
    this.#due.delete(oldest);
  }
}

function nameOf({ script, keys, args }: Reassertion): string {
  return JSON.stringify([script.name, keys, args]);
}
