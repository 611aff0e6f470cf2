// A cache of verified JWTs: an API that introspects the same token at each of its requests costs one verification.
// Only the result of the signature check is cached; revocation is checked every time.

import { hash } from 'node:crypto';
import type { Clock } from '../ports/ports.ts';
import type { KeyRing } from '../registry/keys.ts';
import type { AccessTokenClaims } from './access-token-claims.ts';

/** The capacity of the cache; the oldest entry is evicted first. */
export const VERIFIED_TOKENS = 4096;

/** Claims by the hash of their token, for one key ring. The tokens themselves are not kept. */
export class VerifiedTokens {
  readonly #clock: Clock;
  readonly #claims = new Map<string, AccessTokenClaims>();
  #keys: KeyRing | undefined;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** The claims of a token that was verified with these very keys and has not expired since. */
  find(token: string, keys: KeyRing): AccessTokenClaims | undefined {
    if (keys !== this.#keys) return undefined;
    const claims = this.#claims.get(nameOf(token));
    // RFC 7519 §4.1.4: at `exp` itself a token is expired already.
    return claims !== undefined && claims.exp > Math.floor(this.#clock.now() / 1000) ? claims : undefined;
  }

  /** Caches the result of a verification with these keys; entries of another key ring are dropped. */
  add(token: string, keys: KeyRing, claims: AccessTokenClaims): void {
    if (keys !== this.#keys) {
      this.#claims.clear();
      this.#keys = keys;
    }
    this.#claims.set(nameOf(token), claims);
    const [oldest] = this.#claims.keys();
    if (this.#claims.size > VERIFIED_TOKENS && oldest !== undefined) this.#claims.delete(oldest);
  }
}

function nameOf(token: string): string {
  return hash('sha256', token, 'base64url');
}
