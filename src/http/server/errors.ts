// Maps errors to the wire: one table of protocol code → status and `error` (RFC 6749 §5.2), one of requests that HTTP
// itself refuses (RFC 9110 §15). `error-writer.ts` sends the answer.

import { type ErrorCode, OAuthError, StoreUnavailableError } from '../../oauth/ports/error.ts';
import { AccessRefused } from '../../oauth/resource/access-refused.ts';
import { type BearerError, bearerErrorAnswer, bearerErrorDescription } from '../../oauth/resource/bearer-error.ts';
import type { Endpoint } from './endpoint.ts';

interface Wire {
  readonly status: number;
  /** The `error` member. */
  readonly error: string;
}

/** The wire form of each protocol code at a JSON endpoint. */
const PROTOCOL: Readonly<Record<ErrorCode, Wire>> = {
  invalid_request: { status: 400, error: 'invalid_request' },
  invalid_client: { status: 401, error: 'invalid_client' },
  invalid_grant: { status: 400, error: 'invalid_grant' },
  unauthorized_client: { status: 400, error: 'unauthorized_client' },
  unsupported_grant_type: { status: 400, error: 'unsupported_grant_type' },
  unsupported_response_type: { status: 400, error: 'unsupported_response_type' },
  invalid_scope: { status: 400, error: 'invalid_scope' },
  invalid_target: { status: 400, error: 'invalid_target' },
  invalid_dpop_proof: { status: 400, error: 'invalid_dpop_proof' },
  use_dpop_nonce: { status: 400, error: 'use_dpop_nonce' },
  access_denied: { status: 403, error: 'access_denied' },
  login_required: { status: 400, error: 'login_required' },
  consent_required: { status: 400, error: 'consent_required' },
  request_not_supported: { status: 400, error: 'request_not_supported' },
  request_uri_not_supported: { status: 400, error: 'request_uri_not_supported' },
  registration_not_supported: { status: 400, error: 'registration_not_supported' },
  server_error: { status: 500, error: 'server_error' },
  temporarily_unavailable: { status: 503, error: 'temporarily_unavailable' },
  rate_limited: { status: 429, error: 'temporarily_unavailable' },
};

/** The requests that HTTP itself refuses; the key is the reason. */
const TRANSPORT = {
  not_found: { status: 404, error: 'not_found', description: 'There is nothing at this address.' },
  method_not_allowed: { status: 405, error: 'invalid_request', description: 'The method is not allowed here.' },
  request_timeout: { status: 408, error: 'invalid_request', description: 'The request took too long to arrive.' },
  content_too_large: { status: 413, error: 'invalid_request', description: 'The request body is too large.' },
  unsupported_media_type: {
    status: 415,
    error: 'invalid_request',
    description: 'The request body must be application/x-www-form-urlencoded in UTF-8.',
  },
  headers_too_large: { status: 431, error: 'invalid_request', description: 'The request headers are too large.' },
  malformed_http: { status: 400, error: 'invalid_request', description: 'The request is not valid HTTP.' },
} as const;

export type TransportReason = keyof typeof TRANSPORT;

/** A request refused by HTTP before the protocol saw it. */
export class TransportError extends Error {
  readonly reason: TransportReason;
  /** The methods of the resource, for 405. */
  readonly allow: string | undefined;

  constructor(reason: TransportReason, allow?: string) {
    super(reason);
    this.name = 'TransportError';
    this.reason = reason;
    this.allow = allow;
  }
}

/** One error, ready for the wire and for the log. */
export interface ErrorAnswer {
  readonly status: number;
  /** Undefined for a request without credentials: its answer has no code and no body (RFC 6750 §3.1). */
  readonly error: string | undefined;
  readonly description: string;
  /** A slug; for logs and metrics only. */
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Seconds after which a request that a store could not answer may be tried again. */
const STORE_RETRY_SECONDS = 1;

/**
 * The answer to an error. An unknown error is a fault of the server: 500 without any detail.
 * @param challenge that of an endpoint that takes access tokens
 */
export function describeError(error: unknown, issuer: string, challenge?: Endpoint['challenge']): ErrorAnswer {
  const bearerError = challenge && bearerErrorOf(error);
  if (challenge && bearerError) return describeBearerError(bearerError, challenge);
  if (error instanceof OAuthError) {
    const { description, reason, retryAfterSeconds, dpopNonce } = error;
    return {
      ...PROTOCOL[error.code],
      description,
      reason,
      headers: {
        ...(error.code === 'invalid_client' && { 'www-authenticate': basicChallenge(issuer) }),
        ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
        ...(dpopNonce !== undefined && { 'dpop-nonce': dpopNonce }),
      },
    };
  }
  if (error instanceof StoreUnavailableError) {
    const headers: Record<string, string> = error.retriable ? { 'retry-after': String(STORE_RETRY_SECONDS) } : {};
    const description = 'The server cannot answer now.';
    return { ...PROTOCOL.temporarily_unavailable, description, reason: 'store_unavailable', headers };
  }
  if (error instanceof TransportError) {
    return { ...TRANSPORT[error.reason], reason: error.reason, headers: error.allow ? { allow: error.allow } : {} };
  }
  const reason = frameworkReason(error);
  if (reason !== undefined) return { ...TRANSPORT[reason], reason, headers: {} };
  return { ...PROTOCOL.server_error, description: 'The server failed.', reason: 'unexpected', headers: {} };
}

/** The error that an endpoint that takes access tokens puts into a challenge; undefined for every other error. */
function bearerErrorOf(error: unknown): BearerError | undefined {
  if (error instanceof AccessRefused) return error.bearerError;
  if (!(error instanceof OAuthError)) return undefined;
  const { code, reason } = error;
  if (code === 'invalid_request') return { code, reason };
  return code === 'invalid_dpop_proof' ? { code, reason, scheme: 'DPoP' } : undefined;
}

function describeBearerError(
  bearerError: BearerError,
  { facts, scope }: NonNullable<Endpoint['challenge']>,
): ErrorAnswer {
  const { code, reason } = bearerError;
  const { status, headers } = bearerErrorAnswer(bearerError, scope, facts);
  return { status, error: code, description: code === undefined ? '' : bearerErrorDescription(code), reason, headers };
}

/** RFC 7235 §2.2; the error parameter keeps client libraries reading the JSON body. */
function basicChallenge(issuer: string): string {
  return `Basic realm="${issuer}", error="invalid_client"`;
}

/** The reasons for errors of Fastify and Node. */
function frameworkReason(error: unknown): TransportReason | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return 'content_too_large';
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return 'unsupported_media_type';
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return 'not_found';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'ECONNRESET':
      return 'malformed_http';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request_timeout';
    case 'HPE_HEADER_OVERFLOW':
      return 'headers_too_large';
    default:
      return typeof code === 'string' && code.startsWith('HPE_') ? 'malformed_http' : undefined;
  }
}

/** The body of an error at a JSON endpoint: these two members and no other (RFC 6749 §5.2). */
export function errorBody(answer: ErrorAnswer): string {
  return JSON.stringify({ error: answer.error, error_description: answer.description });
}
