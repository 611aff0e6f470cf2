// Access tokens that are JWTs, verified by the keys of the issuer without asking it (RFC 9068 §4).

import { hash } from 'node:crypto';
import {
  ACCESS_TOKEN_ALGORITHMS,
  type AccessClaims,
  headerFault,
  type TokenExpectations,
  timeFault,
  verifyClaims,
} from '../oauth/resource/access-token.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { parseJwt } from '../oauth/values/jws.ts';
import { verifyWithKeys } from '../oauth/values/key-selection.ts';
import { RecentValues } from '../oauth/values/recent-values.ts';
import { frozen } from './access.ts';
import { InvalidTokenError } from './access-denied.ts';
import type { IssuerKeys } from './issuer-keys.ts';

/** Where the claims of an access token come from. */
export interface TokenSource {
  /**
   * @throws InvalidTokenError where the token is not valid now
   * @throws UnavailableError where that cannot be said
   */
  claimsOf(token: string, expected: TokenExpectations): Promise<AccessClaims>;
}

/** So many verified tokens are kept at least, and twice as many at most. */
const KEPT_TOKENS = 500;

interface VerifiedToken {
  readonly kid: string;
  readonly claims: AccessClaims;
}

/** Verifies tokens, and keeps the result as long as the issuer publishes the same keys. */
export class LocalTokens implements TokenSource {
  readonly #keys: IssuerKeys;
  /** By the hash of the token. */
  #verified = new RecentValues<VerifiedToken>(KEPT_TOKENS);
  #verifiedBy: readonly VerificationKey[] | undefined;

  constructor({ keys }: { readonly keys: IssuerKeys }) {
    this.#keys = keys;
  }

  async claimsOf(token: string, expected: TokenExpectations): Promise<AccessClaims> {
    const name = hash('sha256', token, 'base64url');
    const kept = this.#verified.get(name);
    if (kept === undefined) return await this.#verify(token, name, expected);
    const fault = timeFault(kept.claims, expected);
    if (fault !== undefined) throw new InvalidTokenError(fault);
    // The keys may be others by now: then what they verified is void.
    const keys = await this.#keys.keysFor(kept.kid);
    return keys === this.#verifiedBy ? kept.claims : await this.#verify(token, name, expected);
  }

  async #verify(token: string, name: string, expected: TokenExpectations): Promise<AccessClaims> {
    const jwt = parseJwt(token);
    if (typeof jwt === 'string') throw new InvalidTokenError(`token_${jwt}`);
    // The checks without a signature come first: a token for another API costs no fetch.
    const fault = headerFault(jwt);
    if (fault !== undefined) throw new InvalidTokenError(fault);
    const claims = verifyClaims(jwt.claims, expected);
    if (typeof claims === 'string') throw new InvalidTokenError(claims);
    const { kid = '' } = jwt.header;
    const keys = await this.#keys.keysFor(kid);
    const signer = verifyWithKeys(jwt, { keys, algorithms: ACCESS_TOKEN_ALGORITHMS });
    if (typeof signer === 'string') throw new InvalidTokenError(signer);
    if (keys !== this.#verifiedBy) {
      this.#verified = new RecentValues(KEPT_TOKENS);
      this.#verifiedBy = keys;
    }
    this.#verified.set(name, { kid, claims: frozen(claims) });
    return claims;
  }
}
