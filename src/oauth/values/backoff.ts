// Exponential backoff: how long a component waits between retries. Where many replicas fail together, full jitter spreads
// their retries.

import type { Random } from '../ports/ports.ts';

/** The wait after the first failure and the longest wait; milliseconds. */
export interface BackoffRange {
  readonly first: number;
  readonly longest: number;
}

/**
 * The wait without jitter: `first`, doubled with each further failure, `longest` at most.
 * @param failures further failures after the first one, from 0
 */
export function exponentialBackoff({ first, longest }: BackoffRange, failures: number): number {
  return Math.min(longest, first * 2 ** failures);
}

/** At least 0 and less than 1. */
export function fraction(random: Random): number {
  return Buffer.from(random.bytes(6)).readUIntBE(0, 6) / 2 ** 48;
}

/** Counts consecutive failures and answers each with a wait between 0 and {@link exponentialBackoff} (full jitter). */
export class Backoff {
  readonly #range: BackoffRange;
  readonly #random: Random;
  #failures = 0;

  constructor({ random, ...range }: BackoffRange & { readonly random: Random }) {
    this.#range = range;
    this.#random = random;
  }

  /** Counts a failure. @returns the wait before the retry, in milliseconds */
  next(): number {
    const ceiling = exponentialBackoff(this.#range, this.#failures);
    this.#failures += 1;
    return fraction(this.#random) * ceiling;
  }

  reset(): void {
    this.#failures = 0;
  }
}
