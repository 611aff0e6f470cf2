// An immutable map in many small shards. The next version shares every shard that did not change: among a hundred
// thousand entries one change costs microseconds, and readers of the old version are not affected.

/** Enough that a shard of a large map is copied in microseconds, few enough that an empty map costs nothing. */
const SHARDS = 256;

const EMPTY: ReadonlyMap<string, never> = new Map<string, never>();

/** A map by strings that never changes; {@link draft} makes its successor. */
export class ShardedMap<Value> {
  readonly size: number;
  readonly #shards: readonly ReadonlyMap<string, Value>[];

  private constructor(shards: readonly ReadonlyMap<string, Value>[], size: number) {
    this.#shards = shards;
    this.size = size;
  }

  static empty<Value>(): ShardedMap<Value> {
    return new ShardedMap<Value>(new Array(SHARDS).fill(EMPTY), 0);
  }

  get(key: string): Value | undefined {
    return this.#shards[shardOf(key)]?.get(key);
  }

  *values(): Iterable<Value> {
    for (const shard of this.#shards) yield* shard.values();
  }

  /** A copy to be changed; this map stays as it is. */
  draft(): MapDraft<Value> {
    return new MapDraft(this.#shards, this.size, (shards, size) => new ShardedMap(shards, size));
  }
}

/** A builder of the next version of a map. */
class MapDraft<Value> {
  readonly #shards: ReadonlyMap<string, Value>[];
  /** The shards that this draft has copied, by number. */
  readonly #own = new Map<number, Map<string, Value>>();
  readonly #finish: (shards: readonly ReadonlyMap<string, Value>[], size: number) => ShardedMap<Value>;
  #size: number;

  constructor(
    shards: readonly ReadonlyMap<string, Value>[],
    size: number,
    finish: (shards: readonly ReadonlyMap<string, Value>[], size: number) => ShardedMap<Value>,
  ) {
    this.#shards = [...shards];
    this.#size = size;
    this.#finish = finish;
  }

  get(key: string): Value | undefined {
    return this.#shards[shardOf(key)]?.get(key);
  }

  set(key: string, value: Value): void {
    const shard = this.#ownShard(key);
    this.#size -= shard.size;
    shard.set(key, value);
    this.#size += shard.size;
  }

  delete(key: string): void {
    if (this.get(key) === undefined) return;
    this.#ownShard(key).delete(key);
    this.#size -= 1;
  }

  /** Builds the next version. The draft must not be used afterwards. */
  finish(): ShardedMap<Value> {
    return this.#finish(this.#shards, this.#size);
  }

  #ownShard(key: string): Map<string, Value> {
    const number = shardOf(key);
    const known = this.#own.get(number);
    if (known !== undefined) return known;
    const copy = new Map(this.#shards[number]);
    this.#own.set(number, copy);
    this.#shards[number] = copy;
    return copy;
  }
}

/** FNV-1a: keys that differ in their last letter only must not all be in one shard. */
function shardOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  }
  return (hash ^ (hash >>> 16)) & (SHARDS - 1);
}

export type { MapDraft };
