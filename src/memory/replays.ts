// The replay store over a Map: marks on values that may be used once. A flood of values fills the map and is refused;
// it does not displace a mark.

import { hash } from 'node:crypto';
import type { Clock, ReplayStore } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** {@link ReplayStore} in this process. */
export class MemoryReplays implements ReplayStore {
  readonly #clock: Clock;
  readonly #marks: ExpiringMap<true>;

  constructor({ clock, marks }: { clock: Clock; marks: ExpiringMap<true> }) {
    this.#clock = clock;
    this.#marks = marks;
  }

  async claim(purpose: string, value: string, expiresAt: number): Promise<'fresh' | 'seen'> {
    // Values come from requests: a digest makes every mark the same small size.
    const key = hash('sha256', JSON.stringify([purpose, value]), 'base64url');
    if (this.#marks.get(key) === true) return 'seen';
    if (expiresAt > this.#clock.now()) this.#marks.set(key, true, expiresAt);
    return 'fresh';
  }
}
