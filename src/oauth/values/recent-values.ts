// What was worked out a moment ago and is likely to be wanted again: values by name, bounded, the longest unused gone first.

/**
 * A map that forgets. The `least` names that were used last are always known, and never more than twice as many: they are
 * kept in two generations, so that to use one that is known moves nothing.
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
