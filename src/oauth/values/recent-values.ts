// A bounded cache of computed values by key. Evicts by generation, approximately LRU.

/**
 * A map in two generations. The `guaranteed` most recently used entries are always held, and never more than twice as
 * many. A hit in the newer generation costs one lookup.
 */
export class RecentValues<Value extends {}> {
  readonly #guaranteed: number;
  #newer = new Map<string, Value>();
  #older: ReadonlyMap<string, Value> = new Map();

  constructor(guaranteed: number) {
    this.#guaranteed = guaranteed;
  }

  get(key: string): Value | undefined {
    const newer = this.#newer.get(key);
    if (newer !== undefined) return newer;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: Value): void {
    this.#newer.set(key, value);
    if (this.#newer.size < this.#guaranteed) return;
    this.#older = this.#newer;
    this.#newer = new Map();
  }
}
