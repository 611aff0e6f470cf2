// Resource indicators (RFC 8707): which resources a client may ask for, and which ones a request means.
// `access.ts` narrows a grant at the token endpoint.

import { OAuthError } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';
import { isSubset } from './scope.ts';

/** Whether this is an absolute URI without fragment, written in the characters of RFC 3986 (RFC 8707 §2). */
export function isResourceIndicator(value: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/.test(value);
}

/**
 * The resources that a grant asked for at the authorization endpoint covers (RFC 8707 §2.1), duplicates collapsed.
 * Without any `resource` that is the one predefined default and not everything registered: a grant is never wider than
 * the request.
 * @throws OAuthError invalid_target: `resource_malformed`, `resource_not_registered`, `resource_missing`.
 */
export function resolveResources(values: readonly string[], client: Client): readonly string[] {
  const resources = values.length === 0 ? [defaultResource(client)] : [...new Set(values)];
  checkResources(resources, client);
  return resources;
}

/**
 * The one audience of a token that no earlier grant limits: client_credentials (RFC 8707 §2.2).
 * @throws OAuthError invalid_target: as {@link resolveResources}, and `resource_repeated`: a token has one audience.
 */
export function resolveResource(values: readonly string[], client: Client): string {
  if (values.length > 1) {
    throw new OAuthError('invalid_target', 'At most one resource may be named.', { reason: 'resource_repeated' });
  }
  const resource = values[0] ?? defaultResource(client);
  checkResources([resource], client);
  return resource;
}

// Admission demands a default where there are several; if it is missing all the same, the request is refused.
function defaultResource(client: Client): string {
  const { audiences } = client;
  const resource = client.defaultAudience ?? (audiences.length === 1 ? audiences[0] : undefined);
  if (resource === undefined) {
    throw new OAuthError('invalid_target', 'A resource is required.', { reason: 'resource_missing' });
  }
  return resource;
}

/**
 * @throws OAuthError invalid_target `resource_malformed` or `resource_not_registered`, unless the client may ask for all of
 * these resources today.
 */
export function checkResources(resources: readonly string[], client: Client): void {
  if (!resources.every(isResourceIndicator)) {
    throw new OAuthError('invalid_target', 'A resource must be an absolute URI without fragment.', {
      reason: 'resource_malformed',
    });
  }
  if (!isSubset(resources, client.audiences)) {
    throw new OAuthError('invalid_target', 'The client may not ask for this resource.', {
      reason: 'resource_not_registered',
    });
  }
}
