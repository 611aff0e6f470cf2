// Client authentication as token, revocation and introspection share it: exactly one method, the registered one, the same
// answer for every failure, and a limit on guesses. What a single method does is in `client-auth/`.

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
  /** Where the request came from, as the trusted proxies tell it. */
  readonly address: string;
}

/** Credentials that RFC 7521 §4.2 names; until a method of the table reads them they are a try that must fail. */
const ASSERTION_PARAMETERS = ['client_assertion', 'client_assertion_type'];

/** The form parameters client authentication may use; none of them may be doubled. */
const CLIENT_AUTHENTICATION_PARAMETERS = [
  'client_id',
  ...ASSERTION_PARAMETERS,
  ...[...CLIENT_AUTH_METHODS.values()].flatMap(({ parameters }) => parameters),
];

/** Every form parameter of an endpoint that authenticates clients. */
export function knownParameters(own: Iterable<string>): ReadonlySet<string> {
  return new Set([...CLIENT_AUTHENTICATION_PARAMETERS, ...own]);
}

/** Whom an answer or an error came about for; for logs and metrics. */
export interface Authenticated {
  readonly clientId: string;
  /** A key of the client-auth table. */
  readonly authMethod: string;
}

export interface ClientEndpointOptions {
  readonly registry: RegistryRef;
  readonly limiter: AuthenticationLimiter;
  /** Told of each refusal of an authenticated client, as it was when its request began. It must not throw. */
  readonly onRefused?: ((client: Client, code: ErrorCode) => void) | undefined;
}

/**
 * What token, revocation and introspection do before anything of their own: one consistent world for the whole request, no
 * doubled parameter, an authenticated client; then `answer`.
 * @param known every parameter of the endpoint ({@link knownParameters})
 * @throws OAuthError invalid_request for a doubled parameter, two methods at once or two client ids; invalid_client for every
 *   other failure, with the same text; rate_limited when this client or address has failed too often; what `answer` throws,
 *   attributed to the client
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

/** RFC 6749 §2.3, §3.2.1. */
async function authenticate(
  request: ClientRequest,
  registry: Registry,
  limiter: AuthenticationLimiter,
): Promise<Client> {
  const { name, attempt } = onlyTry(request);
  const client = attempt.clientId === undefined ? undefined : registry.find(attempt.clientId);
  const waitSeconds = limiter.waitSeconds(client?.clientId, request.address);
  if (waitSeconds > 0) throw limited(waitSeconds, name, client);

  const registered = client?.authMethod === name ? client : undefined;
  const judged = attempt.verify(registered);
  // Requests come in bunches: one that waited here would let the whole bunch pass the limit before the first is counted.
  const verified = typeof judged === 'boolean' ? judged : await judged;
  if (registered && verified) return registered;

  const reason = failureReason(attempt, client, registered);
  // A wrong method is not a failed secret: libraries that probe for the method must not lock themselves out.
  if (reason !== 'auth_method_mismatch') limiter.failed(client?.clientId, request.address);
  throw refuse(reason, name, client);
}

interface Try {
  readonly name: string;
  readonly method: ClientAuthMethod;
  readonly attempt: Attempt;
}

/** RFC 6749 §2.3: a client must not use more than one method in a request. Only to name itself is no second one. */
function onlyTry(request: ClientRequest): Try {
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
  if (unread > 0) throw refuse('auth_method_unsupported', undefined, undefined);
  const only = proofs[0] ?? tries[0];
  if (only === undefined) throw refuse('credentials_missing', undefined, undefined);

  const named = request.parameters.get('client_id');
  const claimed = only.attempt.clientId;
  if (named !== undefined && claimed !== undefined && named !== claimed) {
    throw new OAuthError('invalid_request', 'The request names two clients.', { reason: 'client_id_mismatch' });
  }
  return only;
}

/** How many credentials the request carries of kinds that none of its tries reads: an Authorization header, an assertion. */
function unreadCredentials({ parameters, authorization }: ClientRequest, proofs: readonly Try[]): number {
  const header = authorization !== undefined && !proofs.some(({ method }) => method.usesHeader);
  const assertion = ASSERTION_PARAMETERS.some(
    (name) => parameters.get(name) !== undefined && !proofs.some(({ method }) => method.parameters.includes(name)),
  );
  return Number(header) + Number(assertion);
}

function failureReason(attempt: Attempt, client: Client | undefined, registered: Client | undefined): string {
  if (attempt.malformed) return attempt.malformed;
  if (client === undefined) return 'client_unknown';
  return registered === undefined ? 'auth_method_mismatch' : 'secret_mismatch';
}

function refuse(reason: string, method: string | undefined, client: Client | undefined): unknown {
  const details = { reason, ...(method && { authMethod: method }) };
  const error = new OAuthError('invalid_client', 'Client authentication failed.', details);
  return client ? attributeTo(client.clientId, error) : error;
}

function limited(retryAfterSeconds: number, authMethod: string, client: Client | undefined): unknown {
  const details = { reason: 'client_authentication_limited', retryAfterSeconds, authMethod };
  const error = new OAuthError('rate_limited', 'Too many failed attempts.', details);
  return client ? attributeTo(client.clientId, error) : error;
}
