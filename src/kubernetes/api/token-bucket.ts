// A limit on our own calls, so that a fault of ours is no flood for the API server: so many at once, so many per second.

/** First come, first served. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  /** When the bucket would be full again, on the clock of `performance.now()`. */
  #fullAt = 0;

  constructor({ perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
    this.#perSecond = perSecond;
    this.#burst = burst;
  }

  /** Takes one, now or from what will be there. @returns milliseconds to wait until it may be used */
  take(): number {
    const now = performance.now();
    const each = 1000 / this.#perSecond;
    this.#fullAt = Math.max(this.#fullAt, now) + each;
    return Math.max(0, this.#fullAt - now - this.#burst * each);
  }

  /** Takes one if there is one now. */
  tryTake(): boolean {
    const now = performance.now();
    const each = 1000 / this.#perSecond;
    const fullAt = Math.max(this.#fullAt, now) + each;
    if (fullAt - now > this.#burst * each) return false;
    this.#fullAt = fullAt;
    return true;
  }
}
