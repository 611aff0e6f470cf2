// Narrows a grant to the access of one token: a scope, one audience, and how long a token for that may live. Stores call
// it inside redeem and rotate, so that a refused request consumes nothing.

import type { AccessRequest, Grant } from '../ports/grant-store.ts';
import type { NewAccessToken } from '../ports/token-stores.ts';
import { isSubset } from './scope.ts';

export type NarrowedAccess =
  | { readonly outcome: 'granted'; readonly scope: readonly string[]; readonly audience: string }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

type Covered = Pick<Grant, 'scope' | 'audiences'>;

/**
 * Narrows a grant to the request (RFC 6749 §6, RFC 8707 §2.2) and to what its client may still have: a scope or
 * audience that the client lost since the grant was made is not in new tokens.
 * Without `resource` the audience is the first that has anything of the scope: the client's default if the grant covers it,
 * then those of the grant that are still allowed. The scope is that of this audience: a scope that the grant has at another
 * one is left out, unless that leaves none.
 */
export function narrowAccess(grant: Covered, request: AccessRequest): NarrowedAccess {
  const { resource, defaultAudience, at, allowedScopes, issuer } = request;
  const audiences = grant.audiences.filter((audience) => request.allowedAudiences.includes(audience));
  if (resource === undefined ? audiences.length === 0 : !audiences.includes(resource)) {
    return { outcome: 'target_exceeded' };
  }

  const scopesAt = (audience: string) => at?.[audience]?.scopes ?? allowedScopes;
  const allowed = new Set(audiences.flatMap(scopesAt));
  const permitted = grant.scope.filter((token) => allowed.has(token));
  const asked = request.scope ?? permitted;
  if (!isSubset(asked, permitted)) return { outcome: 'scope_exceeded' };
  const ofIssuer = new Set(issuer !== undefined && audiences.includes(issuer) ? scopesAt(issuer) : []);
  const preferred = audiences.filter((audience) => audience === defaultAudience);
  for (const audience of resource === undefined ? [...preferred, ...audiences] : [resource]) {
    const here = new Set(scopesAt(audience));
    const scope = asked.filter((token) => here.has(token) && (audience === issuer || !ofIssuer.has(token)));
    if (scope.length > 0) return { outcome: 'granted', scope, audience };
  }
  return { outcome: 'scope_exceeded' };
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
