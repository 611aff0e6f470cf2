// The tokens whose signature was found right a moment ago: an API that asks about the same token at each of its requests
// costs one verification. Only what a signature proves is kept; whether a token is still alive is asked anew every time.

import { hash } from 'node:crypto';
import type { Clock } from '../ports/ports.ts';
import type { KeyRing } from '../registry/keys.ts';
import type { AccessTokenClaims } from './access-token-claims.ts';

/** How many tokens are kept; the one that was verified first goes first. */
export const VERIFIED_TOKENS = 4096;

/** Claims by token, as long as the keys stay what they were. The tokens themselves are not kept. */
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
    // RFC 7519 §4.1.4: on its expiry a token is dead already.
    return claims !== undefined && claims.exp > Math.floor(this.#clock.now() / 1000) ? claims : undefined;
  }

  /** Keeps what a verification with these keys came to; whatever other keys proved is forgotten. */
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
