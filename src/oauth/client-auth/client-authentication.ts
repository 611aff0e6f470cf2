// Client authentication, shared by the token, revocation and introspection endpoints: exactly one method, the
// registered one, the same answer for every failure, and a limit on failures that no right credential meets. Each
// method has its own file beside this one.

import { attributeTo, type ErrorCode, OAuthError } from '../ports/error.ts';
import type { AuthenticationLimiter } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Registry, RegistryRef } from '../registry/registry.ts';
import type { Parameters } from '../values/parameters.ts';
import { CLIENT_AUTH_METHODS } from './index.ts';
import type { Attempt, ClientAuthMethod, Credentials } from './method.ts';

/** One POST to an endpoint that authenticates clients, already parsed strictly. */
export interface ClientRequest extends Credentials {
  readonly parameters: Parameters;
  /** The IP address of the caller, as the trusted proxies report it. */
  readonly address: string;
}

/** Credentials of RFC 7521 §4.2. While no method of the table reads them, they count as an attempt that fails. */
const ASSERTION_PARAMETERS = ['client_assertion', 'client_assertion_type'];

/** The form parameters client authentication may use; none of them may be repeated. */
const CLIENT_AUTHENTICATION_PARAMETERS = [
  'client_id',
  ...ASSERTION_PARAMETERS,
  ...[...CLIENT_AUTH_METHODS.values()].flatMap(({ parameters }) => parameters),
];

/** Every form parameter of an endpoint that authenticates clients. */
export function knownParameters(own: Iterable<string>): ReadonlySet<string> {
  return new Set([...CLIENT_AUTHENTICATION_PARAMETERS, ...own]);
}

/** The authenticated client of a request, for logs and metrics. */
export interface Authenticated {
  readonly clientId: string;
  /** A key of the client-auth table. */
  readonly authMethod: string;
}

export interface ClientEndpointOptions {
  readonly registry: RegistryRef;
  readonly limiter: AuthenticationLimiter;
  /**
   * Called when the request of an authenticated client is refused, with the client as of its begin. It must not throw.
   */
  readonly onRefused?: ((client: Client, code: ErrorCode) => void) | undefined;
}

/**
 * The steps that the three endpoints share: read one registry snapshot for the whole request, reject repeated
 * parameters, authenticate the client; then call `answer`.
 * @param known every parameter of the endpoint ({@link knownParameters})
 * @throws OAuthError invalid_request for a repeated parameter, two methods at once or two client ids; invalid_client
 *   for every other failure, with the same text; rate_limited instead of it when this client or address has failed too
 *   often; what `answer` throws, attributed to the client
 */
export async function answerClient<Answer extends object>(
  request: ClientRequest,
  known: ReadonlySet<string>,
  { registry: { current }, limiter, onRefused }: ClientEndpointOptions,
  answer: (client: Client, registry: Registry) => Promise<Answer>,
): Promise<Answer & Authenticated> {
  request.parameters.rejectDuplicates(known);
  const client = await authenticate(request, current, limiter);
  const { clientId, authMethod } = client;
  try {
    return { ...(await answer(client, current)), clientId, authMethod };
  } catch (error) {
    if (error instanceof OAuthError) onRefused?.(client, error.code);
    throw attributeTo(clientId, error, authMethod);
  }
}

/** RFC 6749 §2.3, §3.2.1. The credential is verified before any limit: a flood of failures keeps no client out. */
async function authenticate(
  request: ClientRequest,
  registry: Registry,
  limiter: AuthenticationLimiter,
): Promise<Client> {
  const { name, attempt } = onlyTry(request);
  const client = attempt.clientId === undefined ? undefined : registry.find(attempt.clientId);
  const registered = client?.authMethod === name ? client : undefined;
  const judged = attempt.verify(registered);
  const verified = typeof judged === 'boolean' ? judged : await judged;
  if (registered && verified) return registered;

  // Every failure alike, also of an unknown id or a wrong method: 429 must not reveal which clients exist.
  const { clientId } = attempt;
  const waitSeconds = limiter.failed(clientId, request.address);
  const refusal = client || clientId === undefined ? undefined : registry.refused.reasonOf(clientId);
  const error = waitSeconds > 0 ? limited(waitSeconds, name) : failed({ attempt, method: name, client, refusal });
  throw clientId !== undefined && (client || refusal) ? attributeTo(clientId, error) : error;
}

interface Try {
  readonly name: string;
  readonly method: ClientAuthMethod;
  readonly attempt: Attempt;
}

/** A try that fails whatever it presents, as no method reads it. */
interface UnreadTry {
  readonly name: undefined;
  readonly attempt: Attempt;
}

/** RFC 6749 §2.3: a client must not use more than one method in a request. A `client_id` alone is no second method. */
function onlyTry(request: ClientRequest): Try | UnreadTry {
  const tries: Try[] = [];
  for (const [name, method] of CLIENT_AUTH_METHODS) {
    const attempt = method.attempt(request);
    if (attempt) tries.push({ name, method, attempt });
  }
  const proofs = tries.filter(({ method }) => method.confidential);
  const unread = unreadCredentials(request, proofs);
  if (proofs.length + unread > 1) {
    throw new OAuthError('invalid_request', 'The request uses more than one way to authenticate the client.', {
      reason: 'several_auth_methods',
    });
  }
  const named = request.parameters.get('client_id');
  if (unread > 0) return unreadTry(named, 'auth_method_unsupported');
  const only = proofs[0] ?? tries[0];
  if (only === undefined) return unreadTry(named, 'credentials_missing');

  const claimed = only.attempt.clientId;
  if (named !== undefined && claimed !== undefined && named !== claimed) {
    throw new OAuthError('invalid_request', 'The request names two clients.', { reason: 'client_id_mismatch' });
  }
  return only;
}

function unreadTry(clientId: string | undefined, reason: string): UnreadTry {
  return { name: undefined, attempt: { clientId, malformed: reason, verify: () => false } };
}

/** The number of credentials that no attempt of the request reads: an Authorization header, an assertion. */
function unreadCredentials({ parameters, authorization }: ClientRequest, proofs: readonly Try[]): number {
  const header = authorization !== undefined && !proofs.some(({ method }) => method.usesHeader);
  const assertion = ASSERTION_PARAMETERS.some(
    (name) => parameters.get(name) !== undefined && !proofs.some(({ method }) => method.parameters.includes(name)),
  );
  return Number(header) + Number(assertion);
}

/** How an authentication failed; for logs only. */
interface Failure {
  readonly attempt: Attempt;
  readonly method: string | undefined;
  /** The client that the request names. */
  readonly client: Client | undefined;
  /** Why a client of that id is refused. */
  readonly refusal: string | undefined;
}

function failed({ attempt, method, client, refusal }: Failure): OAuthError {
  const reason = failureReason(attempt, client, method, refusal);
  const details = { reason, detail: attempt.malformed ? undefined : refusal, ...(method && { authMethod: method }) };
  return new OAuthError('invalid_client', 'Client authentication failed.', details);
}

function failureReason(
  attempt: Attempt,
  client: Client | undefined,
  method: string | undefined,
  refusal: string | undefined,
): string {
  if (attempt.malformed) return attempt.malformed;
  if (client === undefined) return refusal === undefined ? 'client_unknown' : 'client_refused';
  return client.authMethod === method ? 'secret_mismatch' : 'auth_method_mismatch';
}

function limited(retryAfterSeconds: number, method: string | undefined): OAuthError {
  const details = { reason: 'client_authentication_limited', retryAfterSeconds, ...(method && { authMethod: method }) };
  return new OAuthError('rate_limited', 'Too many failed attempts.', details);
}
