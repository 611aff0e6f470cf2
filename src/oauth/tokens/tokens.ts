// Makes and verifies JWT access tokens (RFC 9068), and prepares opaque ones before the store action that writes them.
// The grant decides on the scope and audience of a token.

import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import { cappedExpiry } from '../access/access.ts';
import { formatScope } from '../access/scope.ts';
import { OAuthError } from '../ports/error.ts';
import type { Clock, EndOfTick, Person, Random } from '../ports/ports.ts';
import type { Confirmation, NewAccessToken } from '../ports/token-stores.ts';
import type { Client } from '../registry/client.ts';
import type { KeyRing } from '../registry/keys.ts';
import { decodedBase64url } from '../values/base64url.ts';
import { confirmationClaim } from '../values/confirmation.ts';
import { type AccessTokenClaims, newTokenId } from './access-token-claims.ts';
import type { Handles } from './handles.ts';
import { JwtSigner } from './jwt-signer.ts';
import { VerifiedTokens } from './verified-tokens.ts';

/** What of a grant an ID token reports (OpenID Connect Core §2). */
export interface ReportedLogin {
  /** With `openid`: the scope whose claims it has. */
  readonly scope: readonly string[];
  readonly sid: string;
  readonly nonce: string | undefined;
}

/** The result of a grant. Issuer, client, times and id of a token are not in it, so that no grant can forge them. */
export interface Authorization {
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: string;
  /** Undefined for client_credentials. */
  readonly grantId: string | undefined;
  /** Epoch milliseconds of the person's login, as it is reported; undefined where no person was involved. */
  readonly authTime: number | undefined;
  /** The person, as found for the exchange; undefined for client_credentials. */
  readonly person?: Person | undefined;
  /** The sign-in that an ID token reports; undefined where none is to be issued. */
  readonly openid?: ReportedLogin | undefined;
  /** The refresh token that goes with the access token, if any. */
  readonly refreshToken: string | undefined;
}

/**
 * The times and the name of an access token, fixed before the grant is exchanged so that a store action can write it.
 */
export interface PreparedAccessToken {
  readonly issuedAtSeconds: number;
  /** When a token for this audience ends, epoch seconds. */
  expiresAt(audience: string): number;
  /** What the token is bound to, if anything. */
  readonly confirmation: Confirmation | undefined;
  /** Set for opaque tokens: its name in the store, once it is known which grant it belongs to. */
  opaque(grantId: string | undefined): NewAccessToken | undefined;
  /** The token itself. Call after the exchange. */
  issue(authorization: Authorization): Promise<string>;
}

/** What differs from the plain tokens of a client. */
export interface TokenRestrictions {
  /** What the token is bound to. */
  readonly confirmation?: Confirmation | undefined;
  /** The cap of an audience on the life of its tokens, in seconds: `maxLifetimeSeconds` of its rules. */
  readonly maxLifetimeAt?: ((audience: string) => number | undefined) | undefined;
}

/** Makes and reads access tokens. */
export class AccessTokens {
  readonly #issuer: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #handles: Handles;
  readonly #verified: VerifiedTokens;
  readonly #signer: JwtSigner;

  constructor({
    issuer,
    clock,
    random,
    handles,
    endOfTick,
  }: {
    readonly issuer: string;
    readonly clock: Clock;
    readonly random: Random;
    readonly handles: Handles;
    readonly endOfTick: EndOfTick;
  }) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#random = random;
    this.#handles = handles;
    this.#signer = new JwtSigner({ type: 'at+jwt', endOfTick });
    this.#verified = new VerifiedTokens({ clock });
  }

  /**
   * Prepares a token for this client. A missing key fails here, before the grant is consumed.
   * @throws OAuthError temporarily_unavailable when a JWT is wanted and no key signs
   */
  prepare(client: Client, keys: KeyRing, restrictions: TokenRestrictions = {}): PreparedAccessToken {
    const issuedAtSeconds = Math.floor(this.#clock.now() / 1000);
    const times = { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + client.tokens.accessTokenLifetimeSeconds };
    const { confirmation, maxLifetimeAt } = restrictions;
    const expiresAt = (audience: string) => cappedExpiry(times, maxLifetimeAt?.(audience));
    const named = { issuedAtSeconds, expiresAt, confirmation };
    if (client.tokens.accessTokenFormat === 'opaque') return { ...named, ...this.#prepareOpaque(times, confirmation) };
    const key = keys.signing;
    if (key === undefined) {
      throw new OAuthError('temporarily_unavailable', 'The service cannot issue tokens right now.', {
        reason: 'no_signing_key',
        retryAfterSeconds: 5,
      });
    }
    return {
      ...named,
      opaque: () => undefined,
      issue: (authorization) => this.#signer.sign(this.#claims(client, authorization, named), key),
    };
  }

  /**
   * The claims of a JWT access token that this issuer made with a key of the ring and that has not expired; undefined
   * for anything else. Revocation is not checked here.
   */
  async verify(token: string, keys: KeyRing): Promise<AccessTokenClaims | undefined> {
    const known = this.#verified.find(token, keys);
    if (known !== undefined) return known;
    const claims = await this.#verifySignature(token, keys);
    if (claims !== undefined) this.#verified.add(token, keys, claims);
    return claims;
  }

  async #verifySignature(token: string, keys: KeyRing): Promise<AccessTokenClaims | undefined> {
    const key = keys.find(kidOf(token) ?? '');
    if (key === undefined || !hasOneSpelling(token)) return undefined;
    try {
      // Expired, so the signature does not matter: verifying it costs more than the rest of the request, and APIs ask
      // about expired tokens again.
      const { exp } = decodeJwt(token);
      if (exp !== undefined && exp * 1000 <= this.#clock.now()) return undefined;
      const { payload } = await jwtVerify<AccessTokenClaims>(token, key.publicKey, {
        algorithms: [key.algorithm],
        typ: 'at+jwt',
        issuer: this.#issuer,
        requiredClaims: ['sub', 'aud', 'client_id', 'iat', 'exp', 'jti', 'scope'],
        currentDate: new Date(this.#clock.now()),
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  #prepareOpaque(
    times: { issuedAtSeconds: number; expiresAtSeconds: number },
    confirmation: Confirmation | undefined,
  ): Pick<PreparedAccessToken, 'opaque' | 'issue'> {
    let made: { readonly token: string; readonly tokenId: string } | undefined;
    return {
      opaque: (grantId) => {
        made = this.#handles.newAccessToken(grantId);
        const { tokenId } = made;
        return confirmation === undefined ? { ...times, tokenId } : { ...times, tokenId, confirmation };
      },
      issue: async () => {
        if (made === undefined) throw new TypeError('an opaque token must be written before it is issued');
        return made.token;
      },
    };
  }

  #claims(
    client: Client,
    authorization: Authorization,
    { issuedAtSeconds, expiresAt, confirmation }: Omit<PreparedAccessToken, 'opaque' | 'issue'>,
  ): AccessTokenClaims {
    const { authTime, grantId } = authorization;
    return {
      iss: this.#issuer,
      sub: authorization.subject,
      aud: authorization.audience,
      client_id: client.clientId,
      iat: issuedAtSeconds,
      exp: expiresAt(authorization.audience),
      jti: newTokenId(client, this.#random),
      scope: formatScope(authorization.scope),
      ...(authTime !== undefined && { auth_time: Math.floor(authTime / 1000) }),
      ...(grantId !== undefined && { grant_id: grantId }),
      ...(confirmation !== undefined && { cnf: confirmationClaim(confirmation) }),
    };
  }
}

/** Whether the signature is canonical base64url: its last character has spare bits that decoding ignores. */
function hasOneSpelling(token: string): boolean {
  const signature = token.slice(token.lastIndexOf('.') + 1);
  return decodedBase64url(signature) !== undefined;
}

function kidOf(token: string): string | undefined {
  try {
    return decodeProtectedHeader(token).kid;
  } catch {
    return undefined;
  }
}
