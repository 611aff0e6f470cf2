// The errors of the protocol core. The wire text of an OAuthError is fixed; logs, metrics and tests read its `reason`.
// The HTTP status of each code is in `http/server/errors.ts`.

/**
 * The errors of RFC 6749 §4.1.2.1 and §5.2, RFC 7009 §2.2.1, RFC 8707 §2, RFC 9101 §6.2, RFC 9449 §5 and §8, and OpenID
 * Connect Core §3.1.2.6.
 * `rate_limited` is in none of them: it becomes 429 with the wire word `temporarily_unavailable`.
 */
export type ErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'access_denied'
  | 'login_required'
  | 'consent_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'registration_not_supported'
  | 'server_error'
  | 'temporarily_unavailable'
  | 'rate_limited';

/** The details of an {@link OAuthError} beside its code and description. */
export interface OAuthErrorDetails {
  /** A stable snake_case slug that names the exact cause; never sent to the client. */
  readonly reason: string;
  /**
   * What the reason is about, for the log line only: the scope that is not allowed, the condition's reason of a refused
   * client, the id that no client has. Printable ASCII, at most 120 characters.
   */
  readonly detail?: string | undefined;
  /** Whole seconds after which the request may be tried again; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** The nonce that the client's next DPoP proof must hold; becomes `DPoP-Nonce` (RFC 9449 §8). */
  readonly dpopNonce?: string;
  /** The client authentication method that was tried, a name of the client-auth table; for metrics only. */
  readonly authMethod?: string;
  readonly cause?: unknown;
}

/** A request the protocol refuses. `description` is a fixed text that names the parameter, never text from the request (security row S7). */
export class OAuthError extends Error {
  readonly code: ErrorCode;
  readonly description: string;
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;
  readonly dpopNonce: string | undefined;
  readonly detail: string | undefined;
  /**
   * The registered or refused client the request came from; set once, by the first component that knows it ({@link attributeTo}).
   */
  clientId: string | undefined;
  /** The client authentication method of the request; set with the client. */
  authMethod: string | undefined;

  constructor(code: ErrorCode, description: string, details: OAuthErrorDetails) {
    super(`${code}: ${details.reason}`, { cause: details.cause });
    this.name = 'OAuthError';
    this.code = code;
    this.description = description;
    this.reason = details.reason;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.dpopNonce = details.dpopNonce;
    this.detail = details.detail;
    this.clientId = undefined;
    this.authMethod = details.authMethod;
  }
}

/**
 * The same error, naming the client its request came from and how it authenticated: for logs only, never for the wire.
 */
export function attributeTo(clientId: string, error: unknown, authMethod?: string): unknown {
  if (error instanceof OAuthError) {
    error.clientId ??= clientId;
    error.authMethod ??= authMethod;
  }
  return error;
}

/** A store cannot answer now: HTTP 503. If it is retriable nothing was consumed, and the answer has `Retry-After`. */
export class StoreUnavailableError extends Error {
  readonly operation: string;
  /** False when the credential of the request is consumed: a code that was invalidated. */
  readonly retriable: boolean;
  /** A slug for metrics, of a closed set. */
  readonly reason: string;

  constructor(
    operation: string,
    cause?: unknown,
    { retriable = true, reason = 'unavailable' }: { readonly retriable?: boolean; readonly reason?: string } = {},
  ) {
    super(`the store did not answer: ${operation}`, { cause });
    this.name = 'StoreUnavailableError';
    this.operation = operation;
    this.retriable = retriable;
    this.reason = reason;
  }
}
