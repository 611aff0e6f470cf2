// Validates a request to sign out (OpenID Connect RP-Initiated Logout 1.0 §2, §3): which client sends the person, where the
// browser may be sent afterwards, and what the session of the browser makes of it.

import { attributeTo, OAuthError } from '../ports/error.ts';
import type { Session } from '../ports/login-stores.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import { type IdTokenHint, readIdTokenHint } from '../tokens/id-token-hint.ts';
import type { Parameters } from '../values/parameters.ts';
import { appendParameters } from '../values/redirect-uri.ts';

/** The parameters that are read; all others are ignored. */
export const LOGOUT_PARAMETERS = [
  'id_token_hint',
  'client_id',
  'post_logout_redirect_uri',
  'state',
  'ui_locales',
] as const;

/** A request that may be answered. */
export interface LogoutRequest {
  /** The sign-in that the client means; undefined where it does not say. */
  readonly hint: IdTokenHint | undefined;
  readonly client: Client | undefined;
  /** Where the browser goes afterwards, with `state`; undefined for a page. */
  readonly location: string | undefined;
}

/**
 * Validates the parameters. The address is compared as text with the registered ones: one that is not among them is never
 * followed.
 * @throws OAuthError invalid_request: `duplicate_parameter`, `id_token_hint_invalid`, `client_id_mismatch`, `client_unknown`,
 *   `post_logout_redirect_uri_without_client`, `post_logout_redirect_uri_mismatch`
 */
export function validateLogout(
  parameters: Parameters,
  { issuer, registry }: { readonly issuer: string; readonly registry: Registry },
): LogoutRequest {
  parameters.rejectDuplicates(LOGOUT_PARAMETERS);
  const hint = hintOf(parameters, issuer, registry);
  const named = parameters.get('client_id');
  if (hint !== undefined && named !== undefined && named !== hint.clientId) throw refusal('client_id_mismatch');
  const clientId = named ?? hint?.clientId;
  const client = clientId === undefined ? undefined : registry.find(clientId);
  if (clientId !== undefined && client === undefined) throw refusal('client_unknown');
  return { hint, client, location: locationOf(parameters, client) };
}

/** What becomes of the session of the browser, or of the one that the hint names. */
export type LogoutAnswer = 'end' | 'ask' | 'end_hinted' | 'nothing';

/** A person who did not ask for it must not be signed out by a link: only the client's own hint proves that one did. */
export function answerLogout({ hint }: LogoutRequest, session: Pick<Session, 'subject'> | undefined): LogoutAnswer {
  if (session === undefined) return hint === undefined ? 'nothing' : 'end_hinted';
  return hint?.subject === session.subject ? 'end' : 'ask';
}

function hintOf(parameters: Parameters, issuer: string, { keys }: Registry): IdTokenHint | undefined {
  const sent = parameters.get('id_token_hint');
  if (sent === undefined) return undefined;
  const hint = readIdTokenHint(sent, { issuer, keys });
  if (hint === undefined) throw refusal('id_token_hint_invalid');
  return hint;
}

function locationOf(parameters: Parameters, client: Client | undefined): string | undefined {
  const address = parameters.get('post_logout_redirect_uri');
  if (address === undefined) return undefined;
  if (client === undefined) throw refusal('post_logout_redirect_uri_without_client');
  if (!client.postLogoutRedirectUris.includes(address)) {
    throw attributeTo(client.clientId, refusal('post_logout_redirect_uri_mismatch'));
  }
  const state = parameters.get('state');
  return state === undefined ? address : appendParameters(address, { state });
}

function refusal(reason: string): OAuthError {
  return new OAuthError('invalid_request', 'The request to sign out cannot be answered.', { reason });
}
