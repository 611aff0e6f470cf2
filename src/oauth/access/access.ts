// Narrows a grant to the access of one token: a scope, one audience, and how long a token for that may live. Stores call
// it inside redeem and rotate, so that a refused request consumes nothing.

import type { AccessRequest, Grant } from '../ports/grant-store.ts';
import type { NewAccessToken } from '../ports/token-stores.ts';

export type NarrowedAccess =
  | { readonly outcome: 'granted'; readonly scope: readonly string[]; readonly audience: string }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

type Covered = Pick<Grant, 'scope' | 'audiences'>;

/**
 * Narrows a grant to the request (RFC 6749 §6, RFC 8707 §2.2) and to what its client may still have: a scope or
 * audience that the client lost since the grant was made is not in new tokens.
 * The audience comes first. Without `resource` it is the client's default if the grant covers it, else the grant's first
 * that is still allowed. The scope is that of this audience: a scope that the grant has at another one is left out, unless
 * that leaves none.
 */
export function narrowAccess(grant: Covered, request: AccessRequest): NarrowedAccess {
  const audiences = grant.audiences.filter((audience) => request.allowedAudiences.includes(audience));
  const preferred = audiences.find((audience) => audience === request.defaultAudience) ?? audiences[0];
  const audience = request.resource ?? preferred;
  if (audience === undefined || !audiences.includes(audience)) return { outcome: 'target_exceeded' };

  const scopesAt = (each: string) => request.at?.[each]?.scopes ?? request.allowedScopes;
  const living = grant.scope.filter((token) => audiences.some((each) => scopesAt(each).includes(token)));
  const asked = request.scope ?? living;
  const scope = asked.filter((token) => scopesAt(audience).includes(token));
  const isCovered = scope.length > 0 && asked.every((token) => living.includes(token));
  return isCovered ? { outcome: 'granted', scope, audience } : { outcome: 'scope_exceeded' };
}

/** A token to be written for this audience: where the audience has a cap, its end and its MAC are those of the cap. */
export function cappedToken(
  { macAt, ...token }: NewAccessToken,
  audience: string,
  { at }: Pick<AccessRequest, 'at'>,
): Omit<NewAccessToken, 'macAt'> {
  const expiresAtSeconds = cappedExpiry(token, at?.[audience]?.maxLifetimeSeconds);
  const mac = macAt?.[audience] ?? token.mac;
  return expiresAtSeconds === token.expiresAtSeconds ? token : { ...token, expiresAtSeconds, mac };
}

/** When a token ends whose audience has this cap, in seconds: a cap only shortens. */
export function cappedExpiry(
  { issuedAtSeconds, expiresAtSeconds }: Pick<NewAccessToken, 'issuedAtSeconds' | 'expiresAtSeconds'>,
  maxLifetimeSeconds = Number.POSITIVE_INFINITY,
): number {
  return Math.min(expiresAtSeconds, issuedAtSeconds + maxLifetimeSeconds);
}
