// The store of revoked JWT access tokens over a Map: a mark on each `jti`. A mark expires with its token.

import type { RevokedTokenStore } from '../oauth/ports/token-stores.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** {@link RevokedTokenStore} in this process. */
export class MemoryRevokedTokens implements RevokedTokenStore {
  readonly #marks: ExpiringMap<true>;

  constructor({ marks }: { marks: ExpiringMap<true> }) {
    this.#marks = marks;
  }

  async mark(jti: string, expiresAtSeconds: number): Promise<void> {
    const expiresAt = Math.max(expiresAtSeconds * 1000, this.#marks.expiryOf(jti) ?? 0);
    this.#marks.set(jti, true, expiresAt);
  }

  async has(jti: string): Promise<boolean> {
    return this.#marks.get(jti) === true;
  }
}
