// Narrows a grant to the access of one token: a scope and one audience. Stores call it inside redeem and rotate, so
// that a refused request consumes nothing.

import type { AccessRequest, Grant } from '../ports/grant-store.ts';

export type NarrowedAccess =
  | { readonly outcome: 'granted'; readonly scope: readonly string[]; readonly audience: string }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

/**
 * Narrows a grant to the request (RFC 6749 §6, RFC 8707 §2.2) and to what its client may still have: a scope or
 * audience that left the manifest since the grant was made is not in new tokens.
 * Without `resource` the audience is the client's default if the grant covers it, else the grant's first that is still
 * allowed.
 */
export function narrowAccess(grant: Pick<Grant, 'scope' | 'audiences'>, request: AccessRequest): NarrowedAccess {
  const allowed = grant.scope.filter((token) => request.allowedScopes.includes(token));
  const scope = request.scope ?? allowed;
  if (scope.length === 0 || !scope.every((token) => allowed.includes(token))) return { outcome: 'scope_exceeded' };

  const audiences = grant.audiences.filter((audience) => request.allowedAudiences.includes(audience));
  const preferred = audiences.find((audience) => audience === request.defaultAudience) ?? audiences[0];
  const audience = request.resource ?? preferred;
  if (audience === undefined || !audiences.includes(audience)) return { outcome: 'target_exceeded' };
  return { outcome: 'granted', scope, audience };
}
