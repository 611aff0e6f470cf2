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

/** The code and the reason of an error, without its text. */
export type ErrorSummary = Pick<OAuthError, 'code' | 'reason'>;

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
  readonly onRefused?: ((client: Client, error: ErrorSummary) => void) | undefined;
}

/** A request whose client has authenticated. */
export interface AuthenticatedRequest {
  readonly client: Client;
  /** The snapshot of the registry for the whole request. */
  readonly registry: Registry;
  /**
   * Claims the mark of the client's credential, and those of further credentials that count once, together. All that can be
   * refused without a store is validated before: a request refused there has used nothing up.
   * @throws OAuthError for one that is replayed
   * @throws StoreUnavailableError
   */
  claim(marks?: readonly ReplayMark[]): Promise<void>;
  /** What to throw in place of an error of the request: it is counted, reported, and attributed to the client. */
  attribute(error: unknown): unknown;
}

/**
 * The steps that the three endpoints begin with: read one registry snapshot for the whole request, reject repeated
 * parameters, authenticate the client. What follows is in one `try` whose errors go through `attribute`.
 * @param known every parameter of the endpoint ({@link knownParameters})
 * @throws OAuthError invalid_request for a repeated parameter, two methods at once or two client ids; invalid_client
 *   for every other failure, with the same text; rate_limited instead of it when this client or address has failed too
 *   often
 */
export async function authenticate(
  request: ClientRequest,
  known: ReadonlySet<string>,
  options: ClientEndpointOptions,
): Promise<AuthenticatedRequest> {
  request.parameters.rejectDuplicates(known);
  const registry = options.registry.current;
  const { client, mark } = await verifyClient(request, registry, options);
  return {
    client,
    registry,
    async claim(further = []) {
      const marks = mark === undefined ? further : [mark, ...further];
      if (marks.length > 0) await options.marks.claim(client, marks, request.address);
    },
    attribute(error) {
      const refusal = error instanceof OAuthError ? counted(error, client, request, options) : error;
      if (refusal instanceof OAuthError) options.onRefused?.(client, refusal);
      return attributeTo(client.clientId, refusal, client.authMethod);
    },
  };
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

interface VerifiedClient {
  readonly client: Client;
  readonly mark: ReplayMark | undefined;
}

/** RFC 6749 §2.3, §3.2.1. The credential is verified before any limit: a flood of failures keeps no client out. */
async function verifyClient(
  request: ClientRequest,
  registry: Registry,
  { limiter, verification, audit, onRefused }: ClientEndpointOptions,
): Promise<VerifiedClient> {
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
