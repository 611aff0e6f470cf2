// Client authentication, shared by the token, revocation and introspection endpoints: exactly one method, the
// registered one, the same answer for every failure, and a limit on failures that no right credential meets. Each
// method has its own file beside this one.

import type { Audit } from '../ports/audit.ts';
import { attributeTo, OAuthError } from '../ports/error.ts';
import { unknownClientDetail } from '../ports/error-detail.ts';
import type { AuthenticationLimiter } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Registry, RegistryRef } from '../registry/registry.ts';
import type { Credentials, ReplayMark, Verification, VerificationContext } from './method.ts';
import type { ReplayMarks } from './replay-marks.ts';
import { CLIENT_AUTHENTICATION_PARAMETERS, onlyTry, type Try } from './tries.ts';

/** One POST to an endpoint that authenticates clients, already parsed strictly. */
export interface ClientRequest extends Credentials {
  /** The IP address of the caller, as the trusted proxies report it. */
  readonly address: string;
}

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

/** What a client was refused with. */
export type Refusal = Pick<OAuthError, 'code' | 'reason'>;

export interface ClientEndpointOptions {
  readonly registry: RegistryRef;
  readonly limiter: AuthenticationLimiter;
  readonly verification: VerificationContext;
  readonly marks: ReplayMarks;
  readonly audit: Audit;
  /**
   * Called when the request of a client is refused, with the client as of its begin. Whether the client itself has made it,
   * because it has authenticated or signed what fails, or another party that knows its id, follows from the code and the
   * reason. It must not throw.
   */
  readonly onRefused?: ((client: Client, refusal: Refusal) => void) | undefined;
}

/** What an endpoint knows of a request once all that needs no store has been validated. */
export interface Prepared {
  /** The marks of further credentials that count once. */
  readonly marks: readonly ReplayMark[];
}

/** The part of a request that is the endpoint's own. */
export interface ClientExchange<Ready extends Prepared, Answer extends object> {
  /**
   * Validates, after authentication, all that can be refused without a store: a request refused here has used nothing up.
   * @throws OAuthError
   */
  prepare(client: Client): Ready;
  /** Called when all marks of the request are claimed. */
  answer(client: Client, registry: Registry, ready: Ready): Promise<Answer>;
}

/** For endpoints without further credentials. */
export const NOTHING_PREPARED: Prepared = { marks: [] };

/**
 * The steps that the three endpoints share: read one registry snapshot for the whole request, reject repeated
 * parameters, authenticate the client, prepare, claim all marks at once; then answer.
 * @param known every parameter of the endpoint ({@link knownParameters})
 * @throws OAuthError invalid_request for a repeated parameter, two methods at once or two client ids; invalid_client
 *   for every other failure, with the same text; rate_limited instead of it when this client or address has failed too
 *   often; what `prepare`, the claim and `answer` throw, attributed to the client
 */
export async function answerClient<Ready extends Prepared, Answer extends object>(
  request: ClientRequest,
  known: ReadonlySet<string>,
  options: ClientEndpointOptions,
  { prepare, answer }: ClientExchange<Ready, Answer>,
): Promise<Answer & Authenticated> {
  request.parameters.rejectDuplicates(known);
  const registry = options.registry.current;
  const { client, mark } = await authenticate(request, registry, options);
  const { clientId, authMethod } = client;
  try {
    const ready = prepare(client);
    const marks = mark === undefined ? ready.marks : [mark, ...ready.marks];
    if (marks.length > 0) await options.marks.claim(client, marks, request.address);
    return { ...(await answer(client, registry, ready)), clientId, authMethod };
  } catch (error) {
    const refusal = error instanceof OAuthError ? counted(error, client, request, options) : error;
    if (refusal instanceof OAuthError) options.onRefused?.(client, refusal);
    throw attributeTo(clientId, refusal, authMethod);
  }
}

/** A replayed assertion is a failed authentication: it is counted like a wrong secret. */
function counted(
  error: OAuthError,
  { clientId, authMethod }: Client,
  { address }: ClientRequest,
  { limiter }: ClientEndpointOptions,
): OAuthError {
  if (error.reason !== 'client_assertion_replayed') return error;
  const waitSeconds = limiter.failed(clientId, address);
  return waitSeconds > 0 ? limited(waitSeconds, authMethod) : error;
}

interface AuthenticatedClient {
  readonly client: Client;
  readonly mark: ReplayMark | undefined;
}

/** RFC 6749 §2.3, §3.2.1. The credential is verified before any limit: a flood of failures keeps no client out. */
async function authenticate(
  request: ClientRequest,
  registry: Registry,
  { limiter, verification, audit, onRefused }: ClientEndpointOptions,
): Promise<AuthenticatedClient> {
  const only = onlyTry(request, (clientId) => registry.find(clientId));
  const { clientId } = only.attempt;
  const client = clientId === undefined ? undefined : registry.find(clientId);
  const registered = client !== undefined && client.authMethod === only.name ? client : undefined;
  const attempted = only.attempt.verify(registered, verification);
  const verified = attempted instanceof Promise ? await attempted : attempted;
  if (registered && verified.ok) {
    if (verified.isLegacyAudience) {
      audit.record({ type: 'client_assertion.legacy_audience', clientId, address: request.address });
    }
    return { client: registered, mark: verified.mark };
  }

  // Every failure alike, also of an unknown id or a wrong method: 429 must not reveal which clients exist.
  const waitSeconds = limiter.failed(clientId, request.address);
  const refusal = client || clientId === undefined ? undefined : registry.refused.reasonOf(clientId);
  const error = waitSeconds > 0 ? limited(waitSeconds, only.name) : failed({ only, verified, client, refusal });
  if (registered) onRefused?.(registered, error);
  throw clientId !== undefined && (client || refusal) ? attributeTo(clientId, error) : error;
}

/** How an authentication failed; for logs only. */
interface Failure {
  readonly only: Try;
  readonly verified: Verification;
  /** The client that the request names. */
  readonly client: Client | undefined;
  /** Why a client of that id is refused. */
  readonly refusal: string | undefined;
}

function failed(failure: Failure): OAuthError {
  const { name, attempt } = failure.only;
  const reason = failureReason(failure);
  const detail = reason === 'client_unknown' ? unknownClientDetail(attempt.clientId ?? '') : failure.refusal;
  const details = { reason, detail: attempt.malformed ? undefined : detail, ...(name && { authMethod: name }) };
  return new OAuthError('invalid_client', 'Client authentication failed.', details);
}

function failureReason({ only, verified, client, refusal }: Failure): string {
  if (only.attempt.malformed) return only.attempt.malformed;
  if (client === undefined) return refusal === undefined ? 'client_unknown' : 'client_refused';
  if (client.authMethod !== only.name) return 'auth_method_mismatch';
  return verified.ok ? 'auth_method_mismatch' : verified.reason;
}

function limited(retryAfterSeconds: number, method: string | undefined): OAuthError {
  const details = { reason: 'client_authentication_limited', retryAfterSeconds, ...(method && { authMethod: method }) };
  return new OAuthError('rate_limited', 'Too many failed attempts.', details);
}
