// Scope: its syntax (RFC 6749 §3.3), its order-keeping set algebra, and the scope that a request asks of one client.
// `access.ts` narrows a grant at the token endpoint.

import { OAuthError } from '../ports/error.ts';
import type { ClientAccess } from './client-access.ts';

const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+(?: [\x21\x23-\x5B\x5D-\x7E]+)*$/;

/**
 * The tokens of a scope value in the order sent, duplicates collapsed; undefined when it is malformed: empty, separated
 * by anything but single spaces, or holding a character outside RFC 6749 §3.3.
 */
export function parseScope(value: string): readonly string[] | undefined {
  if (!SCOPE.test(value)) return undefined;
  return [...new Set(value.split(' '))];
}

const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/;

/** Whether a value is one scope token. */
export function isScopeToken(value: string): boolean {
  return SCOPE_TOKEN.test(value);
}

/** The wire form of scope tokens; {@link parseScope} reads it back. */
export function formatScope(scope: readonly string[]): string {
  return scope.join(' ');
}

/** Whether every member of `part` is in `whole`; case-sensitive, order does not matter. */
export function isSubset(part: readonly string[], whole: readonly string[]): boolean {
  const members = new Set(whole);
  return part.every((member) => members.has(member));
}

/**
 * The scope that a request for a new grant or client_credentials token means (RFC 6749 §3.3). Nothing is dropped silently.
 * @param requested the `scope` parameter; undefined when absent: then the default scopes that the audiences have
 * @param audiences those that the request means; the client may have all of them
 * @throws OAuthError invalid_scope: `scope_missing` (absent, and no defaults), `scope_malformed`, and as {@link checkScope}
 */
export function resolveScope(
  requested: string | undefined,
  audiences: readonly string[],
  access: ClientAccess,
): readonly string[] {
  const scope = requested === undefined ? defaultScope(audiences, access) : parseScope(requested);
  if (scope === undefined) {
    throw new OAuthError('invalid_scope', 'scope is malformed.', { reason: 'scope_malformed' });
  }
  if (scope.length === 0) {
    throw new OAuthError('invalid_scope', 'scope is missing.', { reason: 'scope_missing' });
  }
  checkScope(scope, audiences, access);
  return scope;
}

function defaultScope(audiences: readonly string[], access: ClientAccess): readonly string[] {
  const allowed = new Set(audiences.flatMap((audience) => access.scopesAt(audience)));
  return access.defaultScopes.filter((token) => allowed.has(token));
}

/** Characters of a scope that a log line shows. */
const LONGEST_SHOWN = 120;

/** The first member of `part` that is not in `whole`, as a log line shows it: scope tokens are printable ASCII. */
export function firstOutside(part: readonly string[], whole: readonly string[]): string | undefined {
  const members = new Set(whole);
  return part.find((member) => !members.has(member))?.slice(0, LONGEST_SHOWN);
}

/**
 * @throws OAuthError invalid_scope, unless the client may have all of this scope today: `scope_not_registered` for one that
 *   it may have nowhere, `scope_not_of_resource` for one that it may have at other audiences only
 */
export function checkScope(scope: readonly string[], audiences: readonly string[], access: ClientAccess): void {
  refuseOutside(scope, access.scopes, 'scope_not_registered');
  refuseOutside(
    scope,
    audiences.flatMap((audience) => access.scopesAt(audience)),
    'scope_not_of_resource',
  );
}

function refuseOutside(scope: readonly string[], allowed: readonly string[], reason: string): void {
  const detail = firstOutside(scope, allowed);
  if (detail === undefined) return;
  throw new OAuthError('invalid_scope', 'scope has a value that the client may not request.', { reason, detail });
}
