// Token buckets by name: each refills evenly over time, and their number is bounded.

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** Buckets of one capacity; the least recently used is evicted first. */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>();
  readonly #capacity: number;
  readonly #refillMilliseconds: number;
  readonly #most: number;

  /** @param options.refillMilliseconds in which an empty bucket becomes full; `most` is the number of buckets */
  constructor(options: { readonly capacity: number; readonly refillMilliseconds: number; readonly most: number }) {
    this.#capacity = options.capacity;
    this.#refillMilliseconds = options.refillMilliseconds;
    this.#most = options.most;
  }

  /** Whole seconds until a token is there; 0 when one is. @param now epoch milliseconds */
  waitSeconds(name: string, now: number): number {
    const missing = 1 - this.#left(name, now);
    return missing <= 0 ? 0 : Math.ceil((missing * this.#refillMilliseconds) / this.#capacity / 1000);
  }

  /** Takes a token; an empty bucket stays empty. */
  take(name: string, now: number): void {
    const left = Math.max(0, this.#left(name, now) - 1);
    this.#buckets.delete(name);
    this.#buckets.set(name, { left, at: now });
    if (this.#buckets.size > this.#most) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
  }

  #left(name: string, now: number): number {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return this.#capacity;
    const refilled = (Math.max(0, now - bucket.at) * this.#capacity) / this.#refillMilliseconds;
    return Math.min(this.#capacity, bucket.left + refilled);
  }
}
