// Finds the one authentication method that a request tries (RFC 6749 §2.3). Verification is in `client-authentication.ts`.

import { OAuthError } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';
import { ASSERTION_PARAMETERS, presentedAssertion } from './assertion.ts';
import { CLIENT_AUTH_METHODS } from './index.ts';
import type { ClientAuthAttempt, ClientAuthMethod, Credentials } from './method.ts';

/** The form parameters that client authentication may use. */
export const CLIENT_AUTHENTICATION_PARAMETERS: readonly string[] = [
  'client_id',
  ...ASSERTION_PARAMETERS,
  ...[...CLIENT_AUTH_METHODS.values()].flatMap(({ parameters }) => parameters),
];

/** An attempt with its method; `name` is undefined where no method reads what the request presents. */
export interface Try {
  readonly name: string | undefined;
  readonly attempt: ClientAuthAttempt;
}

interface MethodTry extends Try {
  readonly name: string;
  readonly method: ClientAuthMethod;
}

/**
 * The only try of a request. A `client_id` alone is an implicit try; an Authorization header, a secret or an assertion is
 * an explicit one, and a request has at most one of those.
 * @param findClient the client of an id, to prefer its method among implicit tries
 * @throws OAuthError invalid_request for several explicit tries, or two client ids
 */
export function onlyTry(credentials: Credentials, findClient: (clientId: string) => Client | undefined): Try {
  const tries: MethodTry[] = [];
  for (const [name, method] of CLIENT_AUTH_METHODS) {
    const attempt = method.attempt(credentials);
    if (attempt) tries.push({ name, method, attempt });
  }
  const explicit = tries.filter(({ method }) => !method.implicit);
  const unread = unreadCredentials(credentials, explicit);
  if (explicit.length + unread.length > 1) {
    throw new OAuthError('invalid_request', 'The request uses more than one way to authenticate the client.', {
      reason: 'several_auth_methods',
    });
  }
  const named = credentials.parameters.get('client_id');
  if (unread[0] !== undefined) return failingTry(named, unread[0]);
  const only = explicit[0] ?? implicitTry(tries, findClient);
  if (only === undefined) return failingTry(named, 'credentials_missing');

  const claimed = only.attempt.clientId;
  if (named !== undefined && claimed !== undefined && named !== claimed) {
    throw new OAuthError('invalid_request', 'client_id names another client than the credentials do.', {
      reason: 'client_id_mismatch',
    });
  }
  return only;
}

function implicitTry(tries: readonly MethodTry[], findClient: (id: string) => Client | undefined): Try | undefined {
  const [first, ...others] = tries;
  if (first === undefined || others.length === 0) return first;
  const { clientId } = first.attempt;
  const client = clientId === undefined ? undefined : findClient(clientId);
  return tries.find(({ name }) => name === client?.authMethod) ?? first;
}

/** A try that fails whatever it presents. */
function failingTry(clientId: string | undefined, reason: string): Try {
  return { name: undefined, attempt: { clientId, malformed: reason, verify: () => ({ ok: false, reason }) } };
}

/** One reason for each credential that no attempt reads: an Authorization header, an assertion. */
function unreadCredentials({ parameters, authorization }: Credentials, explicit: readonly MethodTry[]): string[] {
  const reasons: string[] = [];
  if (authorization !== undefined && !explicit.some(({ method }) => method.usesHeader)) {
    reasons.push('auth_method_unsupported');
  }
  const assertion = presentedAssertion(parameters);
  const isRead = explicit.some(({ method }) => method.parameters.includes('client_assertion'));
  if (assertion !== undefined && !isRead) {
    reasons.push(typeof assertion === 'string' ? assertion : 'auth_method_unsupported');
  }
  return reasons;
}
