// GET /logout (OpenID Connect RP-Initiated Logout 1.0): ends the session of the person at once where the client proves by
// an ID token that it means this person, else after a question. POST /logout/confirm answers the question. No answer
// waits for the logouts of clients that the end makes pending.

import { answerLogout, LOGOUT_PARAMETERS, type LogoutRequest, validateLogout } from '../../oauth/endpoints/logout.ts';
import { readUiLocales } from '../../oauth/endpoints/ui-locales.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Parameters } from '../../oauth/values/parameters.ts';
import type { SignedIn } from '../cookies/browser-session.ts';
import { logoutQuestionPage, signedOutPage } from '../pages/logout-page.ts';
import { pageFrame } from '../pages/page-frame.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { redirectsBeforeSignIn } from './error-link.ts';
import {
  leadingTo,
  requireOwnForm,
  type SignInFlow,
  sendLeavingPage,
  sendOwnPage,
  startAgain,
} from './sign-in-flow.ts';

const REASON = 'logout';

/** The endpoint that clients send people to. */
export function logoutEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'logout',
    path: '/logout',
    handlers: { GET: (exchange) => logout(flow, exchange) },
    isPostedQuery: () => true,
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

/** The form of the question. */
export function logoutConfirmEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'logout_confirm',
    path: '/logout/confirm',
    handlers: { GET: leadingTo(flow, '/logout'), POST: (exchange) => confirm(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: true,
  };
}

async function logout(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply } = exchange;
  const signedIn = await flow.sessions.current(request);
  const logoutRequest = validateOrAsk(flow, exchange, signedIn);
  if (logoutRequest === undefined) return;
  switch (answerLogout(logoutRequest, signedIn?.session)) {
    case 'ask':
      if (signedIn !== undefined) ask(flow, exchange, { signedIn, location: logoutRequest.location });
      return;
    case 'end':
      if (signedIn !== undefined) await flow.sessions.end(reply, signedIn, REASON);
      break;
    case 'end_hinted':
      if (logoutRequest.hint !== undefined) await flow.sessions.endLogin(logoutRequest.hint, REASON);
      break;
    case 'nothing':
      break;
  }
  leave(flow, exchange, { logoutRequest, signedIn, status: 302 });
}

/** A person with a session is asked also where the request is refused, without the redirect (RP-Initiated Logout 1.0 §4). */
function validateOrAsk(
  flow: SignInFlow,
  exchange: Exchange,
  signedIn: SignedIn | undefined,
): LogoutRequest | undefined {
  try {
    return validate(flow, exchange);
  } catch (error) {
    if (signedIn === undefined || !(error instanceof OAuthError)) throw error;
    ask(flow, exchange, { signedIn, refusal: error });
    return undefined;
  }
}

async function confirm(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, parameters } = exchange;
  requireOwnForm(flow, request);
  const logoutRequest = validate(flow, exchange);
  const signedIn = await flow.sessions.current(request);
  if (signedIn !== undefined) {
    if (!flow.formTokens.check(parameters.get('csrf'), signedIn.cookie, subjectOfForm(sentAgain(parameters)))) {
      throw startAgain('interaction_bad_csrf');
    }
    await flow.sessions.end(reply, signedIn, REASON);
  }
  leave(flow, exchange, { logoutRequest, signedIn, status: 303 });
}

function validate({ issuer, registry }: SignInFlow, { parameters, log }: Exchange): LogoutRequest {
  const logoutRequest = validateLogout(parameters, { issuer, registry: registry.current });
  if (logoutRequest.client !== undefined) log.clientId = logoutRequest.client.clientId;
  return logoutRequest;
}

interface Question {
  readonly signedIn: SignedIn;
  /** Where the form may end besides at ours. */
  readonly location?: string | undefined;
  /** Why the request cannot be answered: the form sends nothing of it. */
  readonly refusal?: OAuthError;
}

function ask(flow: SignInFlow, exchange: Exchange, { signedIn, location, refusal }: Question): void {
  const { request, reply, log } = exchange;
  log.outcome = 'logout_page';
  if (refusal !== undefined) {
    const { clientId = log.clientId, reason } = refusal;
    Object.assign(log, { clientId, reason, outcome: 'refused' });
  }
  const parameters = refusal === undefined ? sentAgain(exchange.parameters) : [];
  const page = logoutQuestionPage({
    frame: pageFrame(flow, request.headers, readUiLocales(exchange.parameters)),
    username: signedIn.session.username,
    csrf: flow.formTokens.make(signedIn.cookie, subjectOfForm(parameters)),
    parameters,
    refusedFor: refusal?.reason,
  });
  const send = location === undefined ? sendOwnPage : sendLeavingPage;
  send(reply.code(refusal === undefined ? 200 : 400), page);
}

interface Leaving {
  readonly logoutRequest: LogoutRequest;
  /** The person whose session has ended now. */
  readonly signedIn: SignedIn | undefined;
  readonly status: 302 | 303;
}

/**
 * The browser goes where the request says, or sees that the person is signed out. Without a session nothing shows that a person
 * asked for it, and a hint is any tenant's own: a client that only the baseline admitted gets a link (docs/adr/0032).
 */
function leave(flow: SignInFlow, exchange: Exchange, { logoutRequest, signedIn, status }: Leaving): void {
  const { client, location } = logoutRequest;
  const isLinkOnly = signedIn === undefined && client !== undefined && !redirectsBeforeSignIn(exchange.request, client);
  if (location === undefined || isLinkOnly) {
    sendSignedOut(flow, exchange, location);
    return;
  }
  exchange.log.outcome = 'signed_out';
  exchange.reply.redirect(location, status);
}

/** @param answer where the person may go on by hand */
function sendSignedOut(flow: SignInFlow, exchange: Exchange, answer: string | undefined): void {
  const { request, reply, parameters, log } = exchange;
  log.outcome = 'signed_out';
  const page = signedOutPage({ frame: pageFrame(flow, request.headers, readUiLocales(parameters)), answer });
  sendOwnPage(reply.code(200), page);
}

type SentAgain = readonly (readonly [name: string, value: string])[];

function sentAgain(parameters: Parameters): SentAgain {
  return LOGOUT_PARAMETERS.flatMap((name) => {
    const value = parameters.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** The form is valid for these parameters only. */
function subjectOfForm(parameters: SentAgain): string {
  return JSON.stringify(['logout', ...parameters]);
}
