// Resource indicators (RFC 8707): which resources a client may ask for, and which ones a request means.
// `access.ts` narrows a grant at the token endpoint.

import { OAuthError } from '../ports/error.ts';
import type { Confirmation } from '../ports/token-stores.ts';
import type { ClientAccess } from './client-access.ts';
import { isSubset } from './scope.ts';

/** Whether this is an absolute URI without fragment, written in the characters of RFC 3986 (RFC 8707 §2). */
export function isResourceIndicator(value: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/.test(value);
}

/**
 * The resources that a grant asked for at the authorization endpoint covers (RFC 8707 §2.1), duplicates collapsed.
 * Without any `resource` that is the one predefined default and not everything registered: a grant is never wider than
 * the request.
 * @throws OAuthError invalid_target: `resource_malformed`, `resource_not_registered`, `resource_missing`, `resource_not_granted`.
 */
export function resolveResources(values: readonly string[], access: ClientAccess): readonly string[] {
  const resources = values.length === 0 ? access.defaultAudiences : values;
  if (resources.length === 0) throw resourceMissing(access);
  checkResources(resources, access);
  return [...new Set([...resources, ...(access.issuer === undefined ? [] : [access.issuer])])];
}

/**
 * The one audience of a token that no earlier grant limits: client_credentials (RFC 8707 §2.2).
 * @param confirmation what the token will be bound to
 * @throws OAuthError invalid_target: as {@link resolveResources}; `resource_repeated`: a token has one audience;
 *   `sender_constraint_required`: the resource takes only tokens that are bound
 */
export function resolveResource(
  values: readonly string[],
  access: ClientAccess,
  confirmation: Confirmation | undefined,
): string {
  if (values.length > 1) {
    throw new OAuthError('invalid_target', 'resource is included more than once.', { reason: 'resource_repeated' });
  }
  const resource = values[0] ?? access.defaultAudience;
  if (resource === undefined) throw resourceMissing(access);
  checkResources([resource], access);
  if (!isConstraintMet(resource, access, confirmation)) throw senderConstraintError();
  return resource;
}

function resourceMissing({ audiences }: ClientAccess): OAuthError {
  // A client that names none, while no owner grants it one that it refers to.
  if (audiences.length === 0) {
    return new OAuthError('invalid_target', 'No resource is granted to the client.', {
      reason: 'resource_not_granted',
    });
  }
  return new OAuthError('invalid_target', 'resource is missing.', { reason: 'resource_missing' });
}

/**
 * @throws OAuthError invalid_target `resource_malformed` or `resource_not_registered`, unless the client may ask for all of
 * these resources today.
 */
export function checkResources(resources: readonly string[], access: ClientAccess): void {
  if (!resources.every(isResourceIndicator)) {
    throw new OAuthError('invalid_target', 'resource must be an absolute URI without fragment.', {
      reason: 'resource_malformed',
    });
  }
  if (!isSubset(resources, access.audiences)) {
    throw new OAuthError('invalid_target', 'resource has a value that the client may not request.', {
      reason: 'resource_not_registered',
    });
  }
}

/** Whether a token that is bound so is good at an audience (RFC 9449 §5, RFC 8705 §3). */
export function isConstraintMet(
  audience: string,
  access: ClientAccess,
  confirmation: Confirmation | undefined,
): boolean {
  switch (access.ownerOf(audience)?.senderConstraint ?? 'None') {
    case 'None':
      return true;
    case 'Any':
      return confirmation !== undefined;
    case 'DPoP':
      return confirmation?.startsWith('jkt.') ?? false;
    case 'MutualTLS':
      return confirmation?.startsWith('x5t.') ?? false;
  }
}

/** The error for a request whose token would not be bound as its resource demands. Nothing is consumed before it. */
export function senderConstraintError(): OAuthError {
  return new OAuthError('invalid_target', 'The resource takes only tokens that are bound to their sender.', {
    reason: 'sender_constraint_required',
  });
}
