// End-of-tick micro-batches. Requests arrive in bursts, and the CPU runs one step for all of them faster than all steps
// for one after the other: the code and data that a step loads into the caches are still there for the next request.

import type { EndOfTick } from '../ports/ports.ts';

/** Collects the callers of one tick of the event loop before a costly step. */
export class MicroBatch {
  readonly #endOfTick: EndOfTick;
  /** The batch of this tick; undefined until a caller joins it. */
  #batch: Promise<void> | undefined;

  constructor({ endOfTick }: { readonly endOfTick: EndOfTick }) {
    this.#endOfTick = endOfTick;
  }

  /**
   * Joins the batch of this tick. Resolves at the end of the tick for all its callers, which then run one right after
   * the other.
   */
  join(): Promise<void> {
    if (this.#batch !== undefined) return this.#batch;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#batch = promise;
    this.#endOfTick(() => {
      this.#batch = undefined;
      resolve();
    });
    return promise;
  }
}
