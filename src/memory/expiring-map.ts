// A bounded map whose entries expire by the clock of the process. An expired entry is never returned, and each write
// sweeps a few entries. A full map refuses new keys, unless it was configured to forget its oldest entry. The stores
// define the values.

import { StoreUnavailableError } from '../oauth/ports/error.ts';
import type { Clock } from '../oauth/ports/ports.ts';

/** Entries that each write examines: more than one, so that the sweep outruns the growth. */
const SWEPT_PER_WRITE = 8;
/** Entries that a write to a full map examines: bounded, so that a flood cannot turn each refusal into a long scan. */
const SWEPT_WHEN_FULL = 1024;

interface Entry<Value> {
  readonly value: Value;
  readonly expiresAt: number;
}

/** A map from strings to values that expire; holds at most `capacity` entries. */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #name: string;
  readonly #whenFull: 'refuse' | 'forget-oldest';
  #cursor = this.#entries.entries();

  /** @param options.name of the store, for the error of a full one; `whenFull` is `refuse` unless given */
  constructor(options: {
    clock: Clock;
    capacity: number;
    name: string;
    whenFull?: 'refuse' | 'forget-oldest';
  }) {
    this.#clock = options.clock;
    this.#capacity = options.capacity;
    this.#name = options.name;
    this.#whenFull = options.whenFull ?? 'refuse';
  }

  /** The value, unless the entry has expired, which it has from `expiresAt` on. */
  get(key: string): Value | undefined {
    return this.#unexpired(key)?.value;
  }

  /** When an unexpired entry expires, in epoch milliseconds. */
  expiryOf(key: string): number | undefined {
    return this.#unexpired(key)?.expiresAt;
  }

  /**
   * @throws StoreUnavailableError for a new key when the map is full of unexpired entries and refuses; nothing is
   *   changed then.
   */
  set(key: string, value: Value, expiresAt: number): void {
    this.#sweep(SWEPT_PER_WRITE);
    if (!this.#entries.has(key) && this.#entries.size >= this.#capacity) {
      this.#sweep(SWEPT_WHEN_FULL);
      if (this.#entries.size >= this.#capacity) this.#makeRoom();
    }
    this.#entries.set(key, { value, expiresAt });
  }

  /** @returns whether there was an entry, expired or not */
  delete(key: string): boolean {
    return this.#entries.delete(key);
  }

  /** Every unexpired value that matches; walks the whole map. */
  valuesWhere(matches: (value: Value) => boolean): Value[] {
    const now = this.#clock.now();
    return [...this.#entries.values()].flatMap(({ value, expiresAt }) =>
      expiresAt > now && matches(value) ? [value] : [],
    );
  }

  /** Removes every entry whose value matches; walks the whole map. */
  deleteWhere(matches: (value: Value) => boolean): void {
    for (const [key, entry] of this.#entries) {
      if (matches(entry.value)) this.#entries.delete(key);
    }
  }

  /** The number of entries, including expired ones that are not swept yet. */
  get size(): number {
    return this.#entries.size;
  }

  #makeRoom(): void {
    if (this.#whenFull === 'refuse') throw new StoreUnavailableError(`${this.#name} is full`);
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  #unexpired(key: string): Entry<Value> | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresAt > this.#clock.now() ? entry : undefined;
  }

  // The cursor goes round the map across calls; a Map's iterator survives insertions and removals.
  #sweep(count: number): void {
    const now = this.#clock.now();
    for (let swept = 0; swept < count; swept++) {
      const next = this.#cursor.next();
      if (next.done === true) {
        this.#cursor = this.#entries.entries();
        continue;
      }
      const [key, entry] = next.value;
      if (entry.expiresAt <= now) this.#entries.delete(key);
    }
  }
}
