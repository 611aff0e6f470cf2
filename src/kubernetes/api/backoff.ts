// How long to wait before the next try: full jitter, so that many who failed together do not come back together.

import type { Random } from '../../oauth/ports/ports.ts';

/** At least 0 and less than 1. */
export function fraction(random: Random): number {
  return Buffer.from(random.bytes(6)).readUIntBE(0, 6) / 2 ** 48;
}

/** Grows from `first` to `longest`, doubling with each failure; the wait is anything below that. Milliseconds. */
export class Backoff {
  readonly #options: { readonly first: number; readonly longest: number; readonly random: Random };
  #failures = 0;

  constructor(options: { readonly first: number; readonly longest: number; readonly random: Random }) {
    this.#options = options;
  }

  /** Counts a failure. @returns how long to wait after it */
  next(): number {
    const { first, longest, random } = this.#options;
    const limit = Math.min(longest, first * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    return fraction(random) * limit;
  }

  reset(): void {
    this.#failures = 0;
  }
}
