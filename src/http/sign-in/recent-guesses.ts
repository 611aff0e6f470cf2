// Counts guesses over an hour in the memory of one replica. They are not in the store: counters that strangers make
// by the thousand would live there for the whole hour.

export interface RecentGuessesOptions {
  /** The most guesses of a key within any window. */
  readonly limit: number;
  readonly windowMilliseconds: number;
  /** The most keys; above it the one that was least recently counted is evicted. */
  readonly most: number;
}

/** A sliding window for each key. */
export class RecentGuesses {
  readonly #options: RecentGuessesOptions;
  /** The times of the guesses within the window, in epoch milliseconds, oldest first. */
  readonly #byKey = new Map<string, readonly number[]>();

  constructor(options: RecentGuessesOptions) {
    this.#options = options;
  }

  /**
   * Counts one guess, unless the window is full.
   * @param now epoch milliseconds
   * @returns whole seconds to wait if the window is full, else 0
   */
  count(key: string, now: number): number {
    const { limit, windowMilliseconds, most } = this.#options;
    const times = (this.#byKey.get(key) ?? []).filter((time) => time > now - windowMilliseconds);
    const [oldest] = times;
    if (oldest !== undefined && times.length >= limit) return Math.ceil((oldest + windowMilliseconds - now) / 1000);
    this.#byKey.delete(key);
    this.#byKey.set(key, [...times, now]);
    const [first] = this.#byKey.keys();
    if (this.#byKey.size > most && first !== undefined) this.#byKey.delete(first);
    return 0;
  }

  /** Removes the latest guess: it was right, or it was not judged. */
  refund(key: string): void {
    const times = this.#byKey.get(key)?.slice(0, -1) ?? [];
    if (times.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, times);
  }
}
