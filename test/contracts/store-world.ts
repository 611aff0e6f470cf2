// What a store contract runs against: fresh stores, and a clock that only the test moves.

import type { Stores } from '../../src/oauth/ports/ports.ts';

export interface StoreWorld {
  readonly stores: Stores;
  /** Epoch milliseconds, as the stores see them. */
  now(): number;
  advance(milliseconds: number): void;
  /** The smallest step that shows. */
  readonly tick: number;
  dispose(): Promise<void>;
}

/** A world for one test alone. */
export type MakeStores = () => Promise<StoreWorld>;
