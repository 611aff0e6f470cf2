// The rate limit store over a Map: attempt counters. A fixed window per key begins with the key's first hit.

import { hash } from 'node:crypto';
import type { Clock, RateLimitStore } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** Hits in one window. */
interface Window {
  readonly count: number;
  readonly endsAt: number;
}

/** {@link RateLimitStore} in this process. */
export class MemoryRateLimits implements RateLimitStore {
  readonly #clock: Clock;
  readonly #windows: ExpiringMap<Window>;

  constructor({ clock, windows }: { clock: Clock; windows: ExpiringMap<Window> }) {
    this.#clock = clock;
    this.#windows = windows;
  }

  async hit(key: string, limit: number, windowMilliseconds: number): Promise<number> {
    const now = this.#clock.now();
    const window = this.#windows.get(digest(key)) ?? { count: 0, endsAt: now + windowMilliseconds };
    const count = window.count + 1;
    this.#keep(key, { ...window, count });
    return count > limit ? Math.ceil((window.endsAt - now) / 1000) : 0;
  }

  async refund(key: string): Promise<void> {
    const window = this.#windows.get(digest(key));
    if (window === undefined) return;
    if (window.count > 1) this.#keep(key, { ...window, count: window.count - 1 });
    else this.#windows.delete(digest(key));
  }

  #keep(key: string, window: Window): void {
    this.#windows.set(digest(key), window, window.endsAt);
  }
}

// Keys hold what people typed: a digest makes every counter the same small size.
function digest(key: string): string {
  return hash('sha256', key, 'base64url');
}
