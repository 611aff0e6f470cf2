// A token bucket, the client-side rate limit of calls to the API server: a fault of grantry must not overload it.

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

  /** Takes one token, present or future. @returns milliseconds to wait until the token may be used */
  take(): number {
    const now = performance.now();
    const each = 1000 / this.#perSecond;
    this.#fullAt = Math.max(this.#fullAt, now) + each;
    return Math.max(0, this.#fullAt - now - this.#burst * each);
  }

  /** Takes one token if one is present. @returns whether it did */
  tryTake(): boolean {
    const now = performance.now();
    const each = 1000 / this.#perSecond;
    const fullAt = Math.max(this.#fullAt, now) + each;
    if (fullAt - now > this.#burst * each) return false;
    this.#fullAt = fullAt;
    return true;
  }
}
