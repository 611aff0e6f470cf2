// The replay store over an ExpiringMap: records of used values, each of which may be used once. When the map is full,
// `ExpiringMap.set` throws StoreUnavailableError; no unexpired record is evicted.

import { hash } from 'node:crypto';
import type { Clock, ReplayStore } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** {@link ReplayStore} in this process. */
export class MemoryReplays implements ReplayStore {
  readonly #clock: Clock;
  readonly #used: ExpiringMap<true>;

  constructor({ clock, used }: { clock: Clock; used: ExpiringMap<true> }) {
    this.#clock = clock;
    this.#used = used;
  }

  async claim(purpose: string, value: string, expiresAt: number): Promise<'fresh' | 'seen'> {
    // Values come from requests and may be long: a digest as the key gives every record the same small size.
    const key = hash('sha256', JSON.stringify([purpose, value]), 'base64url');
    if (this.#used.get(key) === true) return 'seen';
    if (expiresAt > this.#clock.now()) this.#used.set(key, true, expiresAt);
    return 'fresh';
  }
}
