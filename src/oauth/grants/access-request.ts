// From the parameters of a token request and its client: the access that the request asks for, within the client's
// limits. `access/access.ts` narrows the grant to that access.

import { isResourceIndicator } from '../access/resource-indicator.ts';
import { OAuthError } from '../ports/error.ts';
import type { AccessRequest } from '../ports/grant-store.ts';
import type { Client } from '../registry/client.ts';
import type { Parameters } from '../values/parameters.ts';

/**
 * @param scope the scope that the request asks for; undefined for the whole scope of the grant
 * @throws OAuthError invalid_target for a malformed `resource` (RFC 8707 §2.2), or for more than one: §2 allows
 *   several, but an access token of this server has one audience
 */
export function accessRequest(
  client: Client,
  parameters: Parameters,
  scope: readonly string[] | undefined,
): AccessRequest {
  const [resource, ...more] = parameters.all('resource');
  if (more.length > 0) throw invalidTarget('resource_repeated');
  if (resource !== undefined && !isResourceIndicator(resource)) throw invalidTarget('resource_malformed');
  return {
    scope,
    resource,
    allowedScopes: client.scopes,
    allowedAudiences: client.audiences,
    defaultAudience: client.defaultAudience,
    at: undefined,
  };
}

/**
 * The error for a request that exceeds its grant. Called when a store action answers so; that action wrote nothing.
 * @param refusedScope for the log line: the first scope that is not allowed, where it is known
 */
export function accessExceededError(outcome: 'scope_exceeded' | 'target_exceeded', refusedScope?: string): OAuthError {
  if (outcome === 'target_exceeded') return invalidTarget(outcome);
  return new OAuthError('invalid_scope', 'The scope exceeds what was granted.', {
    reason: outcome,
    detail: refusedScope,
  });
}

function invalidTarget(reason: string): OAuthError {
  return new OAuthError('invalid_target', 'The resource is not valid for this grant.', { reason });
}
