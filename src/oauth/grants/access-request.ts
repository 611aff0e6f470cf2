// Reads the access that a token request asks for from its parameters and its client. `access/access.ts` narrows the
// grant to it.

import { isResourceIndicator } from '../access/resource-indicator.ts';
import { OAuthError } from '../ports/error.ts';
import type { AccessRequest } from '../ports/grant-store.ts';
import type { Client } from '../registry/client.ts';
import type { Parameters } from '../values/parameters.ts';

/**
 * @param scope the narrower scope asked for; undefined for all of the grant's
 * @throws OAuthError invalid_target for more than one `resource` or a malformed one (RFC 8707 §2.2)
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
  };
}

/** The error for access that the grant does not cover; the store changed nothing. */
export function exceeded(outcome: 'scope_exceeded' | 'target_exceeded'): OAuthError {
  if (outcome === 'target_exceeded') return invalidTarget(outcome);
  return new OAuthError('invalid_scope', 'The scope exceeds what was granted.', { reason: outcome });
}

function invalidTarget(reason: string): OAuthError {
  return new OAuthError('invalid_target', 'The resource is not valid for this grant.', { reason });
}
