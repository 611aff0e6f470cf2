// The `detail` of a log line about a failed call to an identity provider: a phrase that holds the endpoint, and a status or an
// error code of the RFCs, of Node or of openid-client. No text that the provider wrote is in it.

import { UpstreamUnavailableError } from './upstream-fetch.ts';

/** The `error` of a token endpoint (RFC 6749 §5.2), of userinfo (RFC 6750 §3.1), and those of GitHub. */
const ERRORS = new Set([
  ...['invalid_request', 'invalid_client', 'invalid_grant', 'unauthorized_client', 'unsupported_grant_type'],
  ...['invalid_scope', 'invalid_target', 'invalid_token', 'insufficient_scope', 'access_denied', 'server_error'],
  ...['temporarily_unavailable', 'bad_verification_code', 'incorrect_client_credentials', 'redirect_uri_mismatch'],
]);
/** What a token endpoint answers to a code that it has not issued, once it has authenticated the client. */
const CODE_REFUSED = new Set(['invalid_grant', 'bad_verification_code']);
/** Codes of Node, undici and openid-client. */
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
/** Codes of openid-client in the words of a person who configures a provider. */
const PHRASES: Readonly<Record<string, string>> = {
  OAUTH_KEY_SELECTION_FAILED: 'the key set has no key for the ID token',
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: 'the ID token is not valid at this time',
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: 'a claim of the ID token has another value than expected',
};

/** The name of an endpoint by its address, such as `the token endpoint`. */
export type EndpointName = (url: string | undefined) => string;

/** The `error` in an answer of the provider; undefined for other faults, and for a word that no RFC has. */
function answeredError(fault: unknown): string | undefined {
  const error = chainOf(fault)
    .map((cause) => cause.error ?? challengeOf(cause.cause)?.error)
    .find((word) => typeof word === 'string');
  return typeof error === 'string' && ERRORS.has(error) ? error : undefined;
}

/** Whether the token endpoint has authenticated this client and refused the code. */
export function isCodeRefused(fault: unknown): boolean {
  return CODE_REFUSED.has(answeredError(fault) ?? '');
}

/** The phrase for what a call has thrown. */
export function faultDetail(fault: unknown, nameOf: EndpointName): string {
  const chain = chainOf(fault);
  const responses = chain.flatMap(({ response, cause }) => [response, cause]).filter(isResponse);
  const unavailable = chain.find((cause) => cause instanceof UpstreamUnavailableError);
  const name = nameOf(responses[0]?.url ?? unavailable?.url);
  const error = answeredError(fault);
  if (error !== undefined) return `${name} answered ${error}`;
  if (chain.some((cause) => cause.name === 'TimeoutError')) return `${name} did not answer in time`;
  const status = unavailable?.status ?? responses.map((response) => response.status).find((code) => code >= 300);
  if (status !== undefined) return `${name} answered status ${status}`;
  const code = chain.map((cause) => cause.code).findLast((word) => typeof word === 'string' && CODE.test(word));
  return PHRASES[String(code)] ?? (code === undefined ? `${name} failed` : `${name} failed: ${code}`);
}

interface Cause extends Error {
  readonly code?: unknown;
  readonly error?: unknown;
  readonly response?: unknown;
}

function chainOf(fault: unknown): readonly Cause[] {
  return fault instanceof Error ? [fault, ...chainOf(fault.cause)] : [];
}

function isResponse(value: unknown): value is Pick<Response, 'url' | 'status'> {
  return typeof value === 'object' && value !== null && 'headers' in value && 'status' in value && 'url' in value;
}

/** The parameters of the first challenge (RFC 9110 §11.6.1), as openid-client reads them. */
function challengeOf(challenges: unknown): { readonly error?: unknown } | undefined {
  return Array.isArray(challenges) ? challenges[0]?.parameters : undefined;
}
