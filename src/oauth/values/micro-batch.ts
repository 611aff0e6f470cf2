// Turns of the event loop. Requests come in bunches, and the processor is faster at doing one thing for all of them than
// everything for one after the other: what a step has loaded into its caches, the same step of the next request finds there.

import type { EndOfTurn } from '../ports/ports.ts';

/** Where requests wait for each other before a costly step. */
export class MicroBatch {
  readonly #endOfTurn: EndOfTurn;
  #end: Promise<void> | undefined;

  constructor({ endOfTurn }: { readonly endOfTurn: EndOfTurn }) {
    this.#endOfTurn = endOfTurn;
  }

  /** Resolves at the end of this turn, for all who asked in it: each then goes as far as it can, one right after the other. */
  end(): Promise<void> {
    if (this.#end !== undefined) return this.#end;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#end = promise;
    this.#endOfTurn(() => {
      this.#end = undefined;
      resolve();
    });
    return promise;
  }
}
