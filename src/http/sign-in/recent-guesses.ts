// Counts guesses over an hour in the memory of one replica. They are not in the store: counters that strangers make
// by the thousand would live there for the whole hour. A key counts by its digest: it may hold a name of any length.

import { hash } from 'node:crypto';

export interface RecentGuessesOptions {
  readonly windowMilliseconds: number;
  /** The most keys; above it the one that was least recently counted is evicted. */
  readonly most: number;
}

/** A sliding window for each key. */
export class RecentGuesses {
  readonly #options: RecentGuessesOptions;
  /** By digest, least recently counted first: the times of the guesses within the window, epoch ms, oldest first. */
  readonly #byKey = new Map<string, readonly number[]>();

  constructor(options: RecentGuessesOptions) {
    this.#options = options;
  }

  /**
   * Counts one guess, unless the window is full.
   * @param bounds.limit the most guesses of the key within any window
   * @param bounds.now epoch milliseconds
   * @returns whole seconds to wait if the window is full, else 0
   */
  count(key: string, { limit, now }: { readonly limit: number; readonly now: number }): number {
    const { windowMilliseconds, most } = this.#options;
    const digest = digestOf(key);
    const times = (this.#byKey.get(digest) ?? []).filter((time) => time > now - windowMilliseconds);
    const [oldest] = times;
    if (oldest !== undefined && times.length >= limit) return Math.ceil((oldest + windowMilliseconds - now) / 1000);
    this.#byKey.delete(digest);
    this.#byKey.set(digest, [...times, now]);
    for (const [first, of] of this.#byKey) {
      const isOver = (of.at(-1) ?? 0) <= now - windowMilliseconds;
      if (!isOver && this.#byKey.size <= most) break;
      this.#byKey.delete(first);
    }
    return 0;
  }

  /** How many keys are kept; those whose window is over go with the next count. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Removes the latest guess: it was right, or it was not verified. */
  refund(key: string): void {
    const digest = digestOf(key);
    const times = this.#byKey.get(digest)?.slice(0, -1) ?? [];
    if (times.length === 0) this.#byKey.delete(digest);
    else this.#byKey.set(digest, times);
  }
}

function digestOf(key: string): string {
  return hash('sha256', key, 'base64url');
}
