// From the parameters of a token request and its client: the access that the request asks for, within the client's
// limits. `access/access.ts` narrows the grant to that access.

import type { ClientAccess } from '../access/client-access.ts';
import { isConstraintMet, isResourceIndicator, senderConstraintError } from '../access/resource-indicator.ts';
import { firstOutside } from '../access/scope.ts';
import { OAuthError } from '../ports/error.ts';
import type { AccessRequest, AudienceRules, GrantStore } from '../ports/grant-store.ts';
import type { GrantRequest } from './grant.ts';

/**
 * @param scope the scope that the request asks for; undefined for the whole scope of the grant
 * @throws OAuthError invalid_target for a malformed `resource` (RFC 8707 §2.2), or for more than one: §2 allows
 *   several, but an access token of this server has one audience; `sender_constraint_required` for one that takes only
 *   bound tokens
 */
export function accessRequest(request: GrantRequest, scope: readonly string[] | undefined): AccessRequest {
  const { access, parameters } = request;
  const [resource, ...more] = parameters.all('resource');
  if (more.length > 0) throw invalidTarget('resource_repeated');
  if (resource !== undefined && !isResourceIndicator(resource)) throw invalidTarget('resource_malformed');
  const unmet = unmetAudiences(request);
  if (resource !== undefined && unmet.includes(resource)) throw senderConstraintError();
  const { audiences, scopes, defaultAudience } = access;
  return {
    scope,
    resource,
    allowedScopes: scopes,
    allowedAudiences: unmet.length === 0 ? audiences : audiences.filter((audience) => !unmet.includes(audience)),
    defaultAudience,
    at: audienceRules(access),
    issuer: access.issuer,
  };
}

/** The audiences of the client which take only tokens that are bound in another way than this one. */
function unmetAudiences({ access, accessToken }: GrantRequest): readonly string[] {
  return access.audiences.filter((audience) => !isConstraintMet(audience, access, accessToken.confirmation));
}

/** The rules of those audiences where the client may have less than its whole scope and lifetime. */
function audienceRules(access: ClientAccess): AccessRequest['at'] {
  const rules = access.audiences.flatMap((audience): readonly [string, AudienceRules][] => {
    const scopes = access.scopesAt(audience);
    const maxLifetimeSeconds = access.ownerOf(audience)?.maxLifetimeSeconds;
    const isWhole = scopes.length === access.scopes.length && maxLifetimeSeconds === undefined;
    return isWhole ? [] : [[audience, { scopes, maxLifetimeSeconds }]];
  });
  return rules.length === 0 ? undefined : Object.fromEntries(rules);
}

/**
 * The error for a request that exceeds its grant. Called when a store action answers so; that action wrote nothing.
 * @param asked the scope that the request asks for; undefined for the whole scope of the grant
 */
export async function accessExceededError(
  outcome: 'scope_exceeded' | 'target_exceeded',
  request: GrantRequest,
  {
    grantId,
    asked,
    grants,
  }: {
    readonly grantId: string;
    readonly asked: readonly string[] | undefined;
    readonly grants: GrantStore;
  },
): Promise<OAuthError> {
  const grant = (await grants.read(grantId))?.grant;
  if (outcome === 'target_exceeded') {
    const isUnbound = unmetAudiences(request).some((audience) => grant?.audiences.includes(audience));
    return isUnbound ? senderConstraintError() : invalidTarget(outcome);
  }
  const granted = grant?.scope ?? [];
  const { scopes } = request.access;
  const detail = firstOutside(
    asked ?? granted,
    granted.filter((token) => scopes.includes(token)),
  );
  return new OAuthError('invalid_scope', 'scope exceeds what was granted.', { reason: outcome, detail });
}

function invalidTarget(reason: string): OAuthError {
  return new OAuthError('invalid_target', 'resource is not valid for this grant.', { reason });
}
