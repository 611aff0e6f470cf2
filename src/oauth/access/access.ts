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
 * audience that left the manifest since the grant was made is not in new tokens. A scope of another resource is left out
 * of the token, unless that leaves none.
 * Without `resource` the audience is the client's default if the grant covers it, else the grant's first that is still
 * allowed.
 */
export function narrowAccess(grant: Covered, request: AccessRequest): NarrowedAccess {
  const living = livingScope(grant, request);
  const asked = request.scope ?? living;
  if (asked.length === 0 || !asked.every((token) => living.includes(token))) return { outcome: 'scope_exceeded' };

  const audiences = livingAudiences(grant, request);
  const preferred = audiences.find((audience) => audience === request.defaultAudience) ?? audiences[0];
  const audience = request.resource ?? preferred;
  if (audience === undefined || !audiences.includes(audience)) return { outcome: 'target_exceeded' };
  const here = scopesAt(audience, request);
  const scope = asked.filter((token) => here.includes(token));
  return scope.length === 0 ? { outcome: 'scope_exceeded' } : { outcome: 'granted', scope, audience };
}

/**
 * The scopes of a grant that a token may still have, each at one of the grant's living audiences at least. Without such
 * an audience they are judged by `allowedScopes` alone.
 */
export function livingScope(grant: Covered, request: AccessRequest): readonly string[] {
  const audiences = livingAudiences(grant, request);
  const allowed = audiences.length === 0 ? [request.allowedScopes] : audiences.map((each) => scopesAt(each, request));
  return grant.scope.filter((token) => allowed.some((scopes) => scopes.includes(token)));
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

function livingAudiences(grant: Covered, request: AccessRequest): readonly string[] {
  return grant.audiences.filter((audience) => request.allowedAudiences.includes(audience));
}

function scopesAt(audience: string, { at, allowedScopes }: AccessRequest): readonly string[] {
  return at?.[audience]?.scopes ?? allowedScopes;
}
