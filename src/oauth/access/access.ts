// Which part of a grant a token request gets: narrowed scope and one audience. Stores call it inside redeem and rotate,
// so that a refused request consumes nothing.

import type { AccessRequest, Grant } from '../ports/grant-store.ts';

export type NarrowedAccess =
  | { readonly outcome: 'granted'; readonly scope: readonly string[]; readonly audience: string }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

/**
 * Narrows a grant to what is asked (RFC 6749 §6, RFC 8707 §2.2) and to what its client may still have: a scope or audience
 * that left the manifest since the grant was made is not in new tokens.
 * Without `resource` the audience is the client's default if the grant covers it, else the grant's first living one.
 */
export function narrowAccess(grant: Pick<Grant, 'scope' | 'audiences'>, request: AccessRequest): NarrowedAccess {
  const living = grant.scope.filter((token) => request.allowedScopes.includes(token));
  const scope = request.scope ?? living;
  if (scope.length === 0 || !scope.every((token) => living.includes(token))) return { outcome: 'scope_exceeded' };

  const audiences = grant.audiences.filter((audience) => request.allowedAudiences.includes(audience));
  const preferred = audiences.find((audience) => audience === request.defaultAudience) ?? audiences[0];
  const audience = request.resource ?? preferred;
  if (audience === undefined || !audiences.includes(audience)) return { outcome: 'target_exceeded' };
  return { outcome: 'granted', scope, audience };
}
