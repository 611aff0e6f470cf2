// The revocations of the last minute and a half, to be applied again after a fail-over: the server that took over may not
// have them. They only ever make things deader, so that applying them again, late or in any order, is right.

import type { Clock } from '../../oauth/ports/ports.ts';
import type { Action } from '../scripts/script.ts';

/** How long a write is remembered while all is well, in milliseconds: until the watch over the shards tells a loss by itself. */
const WINDOW = 90_000;

/** The most that is remembered of each script; its oldest goes first: a flood of one kind must not displace the others. */
const CAPACITY = 10_000;

/** What one script wrote, by name, oldest first. */
type Kind = Map<string, { readonly write: Action; readonly time: number }>;

export class RecentRevocations {
  readonly #clock: Clock;
  /** By the name of the script. */
  readonly #kinds = new Map<string, Kind>();
  /** The names of those not yet applied again. */
  readonly #due = new Set<string>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  /** Due at once: the server it was written to may have been replaced already, without any connection telling. */
  remember(write: Action): void {
    const name = nameOf(write);
    const kind = this.#kinds.get(write.script.name) ?? new Map();
    this.#kinds.set(write.script.name, kind);
    kind.delete(name);
    kind.set(name, { write, time: this.#clock.now() });
    this.#due.add(name);
    if (kind.size > CAPACITY) this.#forgetOldest(kind);
  }

  /** Takes out what is due, or everything: it is due no longer. Oldest first within a script. */
  take(which: 'all' | 'due'): readonly Action[] {
    const remembered = [...this.#kinds.values()].flatMap((kind) => [...kind]);
    const taken = remembered.filter(([name]) => which === 'all' || this.#due.has(name));
    this.#due.clear();
    return taken.map(([, { write }]) => write);
  }

  /** It could not be applied: it is due again. */
  failed(write: Action): void {
    const name = nameOf(write);
    if (this.#kinds.get(write.script.name)?.has(name)) this.#due.add(name);
  }

  /** Forgets what is older than that. Only for times when all is well: an outage makes nothing old. */
  forgetOld(): void {
    const limit = this.#clock.now() - WINDOW;
    for (const kind of this.#kinds.values()) {
      for (const { time } of kind.values()) {
        if (time > limit) break;
        this.#forgetOldest(kind);
      }
    }
  }

  #forgetOldest(kind: Kind): void {
    const [oldest] = kind.keys();
    if (oldest === undefined) return;
    kind.delete(oldest);
    this.#due.delete(oldest);
  }
}

function nameOf({ script, keys, args }: Action): string {
  return JSON.stringify([script.name, keys, args]);
}
