// The revocations of the last minute and a half, for replay after a fail-over: the new primary may have lost them. They
// are idempotent and never restore anything, so that a replay is right at any time and in any order.

import type { Clock } from '../../oauth/ports/ports.ts';
import type { Action } from '../scripts/script.ts';

/**
 * How long a write is kept while all primaries are healthy, in milliseconds: until the shard watch detects a loss by
 * itself.
 */
const WINDOW = 90_000;

/**
 * The most writes kept of each script; the oldest is dropped first. A flood of one script must not displace the others.
 */
const CAPACITY = 10_000;

/** The writes of one script, by name, oldest first. */
type Kind = Map<string, { readonly write: Action; readonly time: number }>;

export class RecentRevocations {
  readonly #clock: Clock;
  /** By the name of the script. */
  readonly #kinds = new Map<string, Kind>();
  /** The names of the writes whose replay is pending. */
  readonly #pendingReplay = new Set<string>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  /** The replay is pending at once: a fail-over may have happened already, without any connection having noticed. */
  recordForReplay(write: Action): void {
    const name = nameOf(write);
    const kind = this.#kinds.get(write.script.name) ?? new Map();
    this.#kinds.set(write.script.name, kind);
    kind.delete(name);
    kind.set(name, { write, time: this.#clock.now() });
    this.#pendingReplay.add(name);
    if (kind.size > CAPACITY) this.#forgetOldest(kind);
  }

  /**
   * Returns the writes whose replay is pending, or all writes; none is pending afterwards. Oldest first within a
   * script.
   */
  take(which: 'all' | 'pending'): readonly Action[] {
    const remembered = [...this.#kinds.values()].flatMap((kind) => [...kind]);
    const taken = remembered.filter(([name]) => which === 'all' || this.#pendingReplay.has(name));
    this.#pendingReplay.clear();
    return taken.map(([, { write }]) => write);
  }

  /** The replay of a write failed: it is pending again. */
  requeue(write: Action): void {
    const name = nameOf(write);
    if (this.#kinds.get(write.script.name)?.has(name)) this.#pendingReplay.add(name);
  }

  /**
   * Forgets writes older than {@link WINDOW}. To be called only while all primaries are healthy, so that an outage ages
   * nothing.
   */
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
    this.#pendingReplay.delete(oldest);
  }
}

function nameOf({ script, keys, args }: Action): string {
  return JSON.stringify([script.name, keys, args]);
}
