// GET /logout (OpenID Connect RP-Initiated Logout 1.0): ends the session of the person at once where the client proves by
// an ID token that it means this person, else after a question. POST /logout/confirm answers the question. No answer
// waits for what the end owes to clients.

import type { FastifyRequest } from 'fastify';
import { answerLogout, judgeLogout, LOGOUT_PARAMETERS, type LogoutRequest } from '../../oauth/endpoints/logout.ts';
import { readUiLocales } from '../../oauth/endpoints/ui-locales.ts';
import type { Parameters } from '../../oauth/values/parameters.ts';
import type { SignedIn } from '../cookies/browser-session.ts';
import { logoutQuestionPage, signedOutPage } from '../pages/logout-page.ts';
import { pageFrame } from '../pages/page-frame.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { redirectsBeforeSignIn } from './error-link.ts';
import { requireOwnForm, type SignInFlow, sendLeavingPage, sendOwnPage, startAgain } from './sign-in-flow.ts';

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
    handlers: { POST: (exchange) => confirm(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

async function logout(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply } = exchange;
  const judged = judge(flow, exchange);
  const signedIn = await flow.sessions.current(request);
  switch (answerLogout(judged, signedIn?.session)) {
    case 'ask':
      if (signedIn !== undefined) ask(flow, exchange, judged, signedIn);
      return;
    case 'end':
      if (signedIn !== undefined) await flow.sessions.end(reply, signedIn, REASON);
      break;
    case 'end_hinted':
      if (judged.hint !== undefined) await flow.sessions.endLogin(judged.hint, REASON);
      break;
    case 'nothing':
      break;
  }
  if (signedIn === undefined && !isVouchedFor(judged, request)) sendSignedOut(flow, exchange, judged.location);
  else leave(flow, exchange, judged, 302);
}

/**
 * Whether the browser may be sent on although it has no session. A hint alone does not show that: a tenant has one
 * for itself, and would own a link on this host that lands anywhere (docs/adr/0032).
 */
function isVouchedFor({ client }: LogoutRequest, request: FastifyRequest): boolean {
  return client === undefined || redirectsBeforeSignIn(request, client);
}

async function confirm(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, parameters } = exchange;
  requireOwnForm(flow, request);
  const judged = judge(flow, exchange);
  const signedIn = await flow.sessions.current(request);
  if (signedIn !== undefined) {
    if (!flow.formTokens.check(parameters.get('csrf'), signedIn.cookie, subjectOfForm(parameters))) {
      throw startAgain('interaction_bad_csrf');
    }
    await flow.sessions.end(reply, signedIn, REASON);
  }
  leave(flow, exchange, judged, 303);
}

function judge({ issuer, registry }: SignInFlow, { parameters, log }: Exchange): LogoutRequest {
  const judged = judgeLogout(parameters, { issuer, registry: registry.current });
  if (judged.client !== undefined) log.clientId = judged.client.clientId;
  return judged;
}

function ask(flow: SignInFlow, exchange: Exchange, { location }: LogoutRequest, signedIn: SignedIn): void {
  const { request, reply, parameters, log } = exchange;
  log.outcome = 'logout_page';
  const page = logoutQuestionPage({
    frame: pageFrame(flow, request.headers, readUiLocales(parameters)),
    username: signedIn.session.username,
    csrf: flow.formTokens.make(signedIn.cookie, subjectOfForm(parameters)),
    parameters: sentAgain(parameters),
  });
  const send = location === undefined ? sendOwnPage : sendLeavingPage;
  send(reply.code(200), page);
}

/** The browser goes where the request says, or sees that the person is signed out. */
function leave(flow: SignInFlow, exchange: Exchange, { location }: LogoutRequest, status: 302 | 303): void {
  if (location === undefined) {
    sendSignedOut(flow, exchange, undefined);
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

function sentAgain(parameters: Parameters): readonly (readonly [name: string, value: string])[] {
  return LOGOUT_PARAMETERS.flatMap((name) => {
    const value = parameters.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** The form is good for these parameters only. */
function subjectOfForm(parameters: Parameters): string {
  return JSON.stringify(['logout', ...sentAgain(parameters)]);
}
