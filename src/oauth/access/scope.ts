// Scope: its syntax (RFC 6749 §3.3), its order-keeping set algebra, and the scope that a request asks of one client.
// `access.ts` narrows a grant at the token endpoint.

import { OAuthError } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';

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
  return part.every((member) => whole.includes(member));
}

/**
 * The scope a request for a new grant or client_credentials token means (RFC 6749 §3.3). Nothing is dropped silently.
 * @param requested the `scope` parameter; undefined when absent: then the client's default scopes.
 * @throws OAuthError invalid_scope: `scope_missing` (absent, and no defaults), `scope_malformed`, `scope_not_registered`.
 */
export function resolveScope(requested: string | undefined, client: Client): readonly string[] {
  const scope = requested === undefined ? client.defaultScopes : parseScope(requested);
  if (scope === undefined) {
    throw new OAuthError('invalid_scope', 'The scope is malformed.', { reason: 'scope_malformed' });
  }
  if (scope.length === 0) {
    throw new OAuthError('invalid_scope', 'A scope is required.', { reason: 'scope_missing' });
  }
  checkScope(scope, client);
  return scope;
}

/** Characters of a scope that a log line shows. */
const LONGEST_SHOWN = 120;

/** The first member of `part` that is not in `whole`, as a log line shows it: scope tokens are printable ASCII. */
export function firstOutside(part: readonly string[], whole: readonly string[]): string | undefined {
  return part.find((member) => !whole.includes(member))?.slice(0, LONGEST_SHOWN);
}

/** @throws OAuthError invalid_scope `scope_not_registered`, unless the client may have all of this scope today. */
export function checkScope(scope: readonly string[], client: Client): void {
  const detail = firstOutside(scope, client.scopes);
  if (detail === undefined) return;
  const reason = 'scope_not_registered';
  throw new OAuthError('invalid_scope', 'The client may not ask for this scope.', { reason, detail });
}
