// What an API demands of an access token, as a JWT (RFC 9068 §4) and as an answer of introspection (RFC 7662 §2.2): for it,
// by this issuer, and has not expired. Whether the signature is right is the business of values/key-selection.ts.

import type { JsonObject, Jwt } from '../values/jws.ts';
import type { SigningAlgorithm } from '../values/signature.ts';

/** What access tokens may be signed with. */
export const ACCESS_TOKEN_ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'ES384', 'PS256', 'RS256', 'EdDSA'];

const TYPES = ['at+jwt', 'application/at+jwt'];

/** What an access token has to be about. */
export interface TokenExpectations {
  readonly issuer: string;
  readonly audience: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** How far `exp` may be past and `iat` ahead. */
  readonly toleranceSeconds: number;
}

/** The claims that every access token has, and all others as sent. */
export interface AccessClaims extends JsonObject {
  readonly sub: string;
  readonly client_id: string;
  readonly jti: string;
  /** Epoch seconds, as `iat`. */
  readonly exp: number;
  readonly iat: number;
}

/** Why the token is none of this issuer for this API: a slug for logs and tests. */
export type TokenFault =
  | 'token_type_wrong'
  | 'algorithm_not_allowed'
  | 'key_id_missing'
  | 'issuer_mismatch'
  | 'audience_mismatch'
  | 'time_malformed'
  | 'token_expired'
  | 'issued_in_future'
  | 'not_yet_valid'
  | 'claim_missing';

/** The fault of a JWT's header as one of an access token; undefined without. */
export function headerFault({ header, algorithm }: Pick<Jwt, 'header' | 'algorithm'>): TokenFault | undefined {
  const { typ, kid } = header;
  if (typeof typ !== 'string' || !TYPES.includes(typ.toLowerCase())) return 'token_type_wrong';
  if (algorithm === undefined || !ACCESS_TOKEN_ALGORITHMS.includes(algorithm)) return 'algorithm_not_allowed';
  return kid === undefined || kid === '' ? 'key_id_missing' : undefined;
}

/** The claims of an access token that is for this API and in force, or why it is not. */
export function verifyClaims(claims: JsonObject, expected: TokenExpectations): AccessClaims | TokenFault {
  const { iss, aud } = claims;
  if (iss !== expected.issuer) return 'issuer_mismatch';
  // One API per token: with a second audience the other API could use the token here.
  const audience: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (audience !== expected.audience) return 'audience_mismatch';
  if (!hasAllClaims(claims)) return isTime(claims.exp) && isTime(claims.iat) ? 'claim_missing' : 'time_malformed';
  return timeFault(claims, expected) ?? claims;
}

/** The fault of the token's times; also for claims that were verified before. */
export function timeFault(
  { exp, iat, nbf }: JsonObject & Pick<AccessClaims, 'exp' | 'iat'>,
  { now, toleranceSeconds }: Pick<TokenExpectations, 'now' | 'toleranceSeconds'>,
): TokenFault | undefined {
  const seconds = now / 1000;
  // RFC 7519 §4.1.4: at `exp` itself a token is expired already.
  if (seconds >= exp + toleranceSeconds) return 'token_expired';
  if (iat > seconds + toleranceSeconds) return 'issued_in_future';
  if (nbf === undefined) return undefined;
  if (!isTime(nbf)) return 'time_malformed';
  return nbf > seconds + toleranceSeconds ? 'not_yet_valid' : undefined;
}

/** The values of a `scope` claim (RFC 9068 §2.2.3); none for a claim that is absent or no text. */
export function scopeOf({ scope }: JsonObject): readonly string[] {
  return typeof scope === 'string' ? scope.split(' ').filter((value) => value !== '') : [];
}

function hasAllClaims(claims: JsonObject): claims is AccessClaims {
  const { sub, client_id: clientId, jti, exp, iat } = claims;
  return isText(sub) && isText(clientId) && isText(jti) && isTime(exp) && isTime(iat);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
