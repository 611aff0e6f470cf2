// What every form of the login page holds beside its own fields: the sealed destination, and the proof that this server made the
// page for this browser.

import type { Destination, Opened } from '../cookies/sealed-request.ts';
import type { Exchange } from '../server/endpoint.ts';
import { acceptedStill, requireOwnForm, type SignInFlow, startAgain, websiteOf } from './sign-in-flow.ts';
import type { SignInGoal } from './sign-in-goal.ts';

/** The fields. */
const LOGIN_FORM_FIELDS = ['csrf', 'request'] as const;

/**
 * What the sign-in is for; undefined after an error that was sent to the client by redirect.
 * @throws OAuthError as {@link startAgain}, for the form of another site or browser, and an expired one
 */
export function openLoginForm(flow: SignInFlow, exchange: Exchange): SignInGoal | undefined {
  const { request, parameters } = exchange;
  requireOwnForm(flow, request);
  parameters.rejectDuplicates(LOGIN_FORM_FIELDS);
  const browser = flow.sessions.browser(request);
  if (browser === undefined) throw startAgain('interaction_other_browser');
  const sealed = parameters.get('request');
  if (sealed === undefined) throw startAgain('interaction_request_missing');
  const opened = openSealed(flow, exchange, sealed, browser);
  if (!flow.formTokens.check(parameters.get('csrf'), browser, sealed)) throw startAgain('interaction_bad_csrf');
  if (!opened || opened.isExpired) throw startAgain('interaction_expired');
  return goalOf(flow, exchange, opened.destination);
}

/** The destination sealed for this browser, also an expired one: error pages then link to where the sign-in can begin again. */
export function openSealed(
  flow: SignInFlow,
  { request }: Exchange,
  sealed: string,
  browser: string,
): Opened | undefined {
  const opened = flow.sealedRequests.open(sealed, browser);
  if (opened === undefined) return undefined;
  const { destination } = opened;
  request.visit.start =
    'path' in destination ? `${flow.basePath}/account` : websiteOf(flow, destination.request.clientId);
  return opened;
}

/**
 * The goal of a destination that was sealed before: the client may have changed since then.
 * @returns undefined after an error that was sent to the client by redirect
 */
export function goalOf(flow: SignInFlow, exchange: Exchange, destination: Destination): SignInGoal | undefined {
  const { selectsAccount } = destination;
  if ('path' in destination) return { kind: 'own_page', path: destination.path, selectsAccount };
  const check = acceptedStill(flow, exchange, { request: destination.request, endpoint: 'login' });
  return check && { ...check, selectsAccount };
}
