// The single checks of the authorization endpoint. Their order, and the wire form of a failure, are in
// `authorization-endpoint.ts`; scope and resource are checked in `access/`.

import { type ErrorCode, OAuthError } from '../ports/error.ts';
import type { Confirmation } from '../ports/token-stores.ts';
import type { Client } from '../registry/client.ts';
import { keyConfirmation } from '../values/confirmation.ts';
import { type Parameters, parameterMissing } from '../values/parameters.ts';
import { isChallenge } from '../values/pkce.ts';

/** The parameters the endpoint knows; all others are ignored, also when repeated. `resource` may repeat. */
const KNOWN_PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'state',
  'resource',
  'code_challenge',
  'code_challenge_method',
  'dpop_jkt',
  'request',
  'request_uri',
  'registration',
] as const;

/** Parameters that would replace the request or the client; nothing is ever fetched. */
const UNSUPPORTED: readonly (readonly [name: string, code: ErrorCode])[] = [
  ['request', 'request_not_supported'],
  ['request_uri', 'request_uri_not_supported'],
  ['registration', 'registration_not_supported'],
];

const MAX_STATE_BYTES = 4096;

/** The state to send back: undefined when it was not sent, was sent twice, or is unreadable. */
export function readableState(parameters: Parameters): string | undefined {
  const state = parameters.get('state');
  if (state === undefined || parameters.firstDuplicate(['state']) !== undefined) return undefined;
  return isReadable(state) ? state : undefined;
}

// At most 4 KiB without control characters. A lone surrogate cannot be sent back unchanged.
function isReadable(state: string): boolean {
  return Buffer.byteLength(state) <= MAX_STATE_BYTES && state.isWellFormed() && !/\p{Cc}/u.test(state);
}

/** @throws OAuthError invalid_request */
export function rejectDuplicates(parameters: Parameters): void {
  // RFC 6749 §3.1: parameters must not be included more than once.
  parameters.rejectDuplicates(KNOWN_PARAMETERS);
}

/** @throws OAuthError invalid_request */
export function rejectUnreadableState(parameters: Parameters): void {
  // RFC 6749 §4.1.1, appendix A.5: state is returned exactly as sent, so one that cannot be returned is refused.
  const state = parameters.get('state');
  if (state !== undefined && !isReadable(state)) {
    throw new OAuthError('invalid_request', 'state is too long or has control characters.', {
      reason: 'state_unreadable',
    });
  }
}

/** @throws OAuthError request_not_supported, request_uri_not_supported, registration_not_supported */
export function rejectUnsupportedParameters(parameters: Parameters): void {
  // RFC 9101 §6, OpenID Connect Core §3.1.2.6: unsupported ways to send a request have their own errors.
  for (const [name, code] of UNSUPPORTED) {
    if (parameters.get(name) !== undefined) {
      throw new OAuthError(code, `${name} is not supported.`, { reason: code });
    }
  }
}

/** @throws OAuthError unauthorized_client */
export function rejectUnauthorizedClient(client: Client): void {
  // RFC 6749 §4.1.2.1: the client must be allowed to ask for a code.
  if (!client.grantTypes.includes('authorization_code')) {
    throw new OAuthError('unauthorized_client', 'The client may not use this grant.', {
      reason: 'grant_type_not_registered',
    });
  }
}

/** @throws OAuthError invalid_request, unsupported_response_type */
export function requireResponseTypeCode(parameters: Parameters): void {
  // RFC 6749 §3.1.1: required; `code` is the only one (no implicit flow, RFC 9700 §2.1.2).
  const responseType = parameters.require('response_type');
  if (responseType !== 'code') {
    throw new OAuthError('unsupported_response_type', 'response_type is not supported.', {
      reason: 'response_type_unsupported',
    });
  }
}

/** @throws OAuthError invalid_request */
export function requireResponseModeQuery(parameters: Parameters): void {
  // OAuth 2.0 Multiple Response Type Encoding Practices §2.1: `query` is the default for code, and the only one here.
  const responseMode = parameters.get('response_mode');
  if (responseMode !== undefined && responseMode !== 'query') {
    throw new OAuthError('invalid_request', 'response_mode is not supported.', {
      reason: 'response_mode_unsupported',
    });
  }
}

/**
 * The S256 code challenge, which every client must send.
 * @throws OAuthError invalid_request
 */
export function requireChallenge(parameters: Parameters): string {
  // RFC 7636 §4.3, §4.4.1, RFC 9700 §2.1.1: an absent method means `plain`, which is refused like any other but S256.
  const challenge = parameters.require('code_challenge');
  if (parameters.get('code_challenge_method') !== 'S256') {
    throw new OAuthError('invalid_request', 'code_challenge_method must be S256.', {
      reason: 'code_challenge_method_unsupported',
    });
  }
  if (!isChallenge(challenge)) {
    throw new OAuthError('invalid_request', 'code_challenge is malformed.', { reason: 'code_challenge_malformed' });
  }
  return challenge;
}

const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;

/**
 * The key that the code is bound to, where the client asks for that.
 * @throws OAuthError invalid_request
 */
export function keyOfCode(parameters: Parameters): Confirmation | undefined {
  // RFC 9449 §10: the base64url SHA-256 thumbprint of the key.
  const thumbprint = parameters.get('dpop_jkt');
  if (thumbprint === undefined) return undefined;
  if (!THUMBPRINT.test(thumbprint)) {
    throw new OAuthError('invalid_request', 'dpop_jkt is malformed.', { reason: 'dpop_jkt_malformed' });
  }
  return keyConfirmation(thumbprint);
}

/** @throws OAuthError invalid_request */
export function requireStateWhereDemanded(state: string | undefined, client: Client): void {
  // RFC 6749 §10.12: PKCE protects already (RFC 9700 §4.7.1); a client can demand state on top.
  if (client.requireState && state === undefined) throw parameterMissing('state');
}
