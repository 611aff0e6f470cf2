// A bounded cache of computed values by name; the least recently used values are evicted first.

/**
 * An LRU map in two generations. It always holds the `least` most recently used names, and never more than twice as
 * many; a hit in the newer generation moves nothing.
 */
export class RecentValues<Value extends {}> {
  readonly #least: number;
  #newer = new Map<string, Value>();
  #older: ReadonlyMap<string, Value> = new Map();

  constructor(least: number) {
    this.#least = least;
  }

  get(name: string): Value | undefined {
    const newer = this.#newer.get(name);
    if (newer !== undefined) return newer;
    const older = this.#older.get(name);
    if (older !== undefined) this.set(name, older);
    return older;
  }

  set(name: string, value: Value): void {
    this.#newer.set(name, value);
    if (this.#newer.size < this.#least) return;
    this.#older = this.#newer;
    this.#newer = new Map();
  }
}
