// GET /authorize (RFC 6749 §4.1.1): judges the request. The answer is the login page without a session, a redirect to
// the consent page where consent is needed, and a redirect to the client with a code otherwise.

import { consentNeeded } from '../../oauth/access/consent.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { redirectsBeforeSignIn, sendErrorLink } from './error-link.ts';
import {
  accepted,
  answerFaultsAtClient,
  isOutdated,
  openInteraction,
  type SignInFlow,
  sendLoginPage,
} from './sign-in-flow.ts';

/** The authorization endpoint. HEAD must never issue anything: 405. */
export function authorizeEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'authorize',
    path: '/authorize',
    handlers: { GET: (exchange) => authorize(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

async function authorize(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, parameters, log } = exchange;
  const judged = flow.authorization.check(parameters, flow.registry.current);
  if (judged.kind === 'refused' && judged.reason === 'redirect_uri_mismatch' && judged.clientId !== undefined) {
    flow.onRedirectMismatch(judged.clientId);
  }
  if (judged.kind === 'redirect') {
    flow.metrics.tokenErrors.inc({ endpoint: 'authorize', error: judged.error, reason: judged.reason });
    if (!redirectsBeforeSignIn(request, judged) && (await flow.sessions.current(request)) === undefined) {
      sendErrorLink(exchange, judged, flow.basePath);
      return;
    }
  }
  const check = accepted(judged, exchange, 302);
  if (!check) return;
  if (redirectsBeforeSignIn(request, check.client)) answerFaultsAtClient(flow, exchange, check);

  const session = (await flow.sessions.current(request))?.session;
  if (session) answerFaultsAtClient(flow, exchange, check);
  if (!session || (await isOutdated(flow, session, check.client.uid))) {
    sendLoginPage(flow, exchange, check, { status: 200, username: '', problem: undefined });
    return;
  }

  flow.authorization.limit(check, session);
  const given = await flow.consents.read(session.subject, check.client.uid);
  if (consentNeeded(check, given).ask) {
    log.outcome = 'consent_needed';
    reply.redirect(await openInteraction(flow, check, session), 302);
    return;
  }
  const location = await flow.authorization.issue(check, session);
  if (location === undefined) {
    sendLoginPage(flow, exchange, check, { status: 200, username: '', problem: undefined });
    return;
  }
  log.outcome = 'issued';
  reply.redirect(location, 302);
}
