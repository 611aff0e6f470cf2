// The store of opaque access tokens over a Map. The grant store writes those of a grant into the same map, within its
// own action.

import type { AccessTokenStore, StoredAccessToken } from '../oauth/ports/token-stores.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** Keeps a token until its `exp`. @throws StoreUnavailableError when the map is full. */
export function keepAccessToken(tokens: ExpiringMap<StoredAccessToken>, token: StoredAccessToken): void {
  tokens.set(token.tokenId, token, token.expiresAtSeconds * 1000);
}

/** {@link AccessTokenStore} in this process. */
export class MemoryAccessTokens implements AccessTokenStore {
  readonly #tokens: ExpiringMap<StoredAccessToken>;

  constructor({ tokens }: { tokens: ExpiringMap<StoredAccessToken> }) {
    this.#tokens = tokens;
  }

  async write(token: StoredAccessToken): Promise<void> {
    keepAccessToken(this.#tokens, token);
  }

  async read(tokenId: string): Promise<StoredAccessToken | undefined> {
    return this.#tokens.get(tokenId);
  }

  async revoke(tokenId: string): Promise<void> {
    this.#tokens.delete(tokenId);
  }
}
