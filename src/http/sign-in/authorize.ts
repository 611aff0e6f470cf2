// GET /authorize (RFC 6749 §4.1.1): validates the request. The answer is the login page without a session that will do, a
// redirect to the consent page where consent is needed, and a redirect to the client with a code otherwise. A silent
// request (OpenID Connect Core §3.1.2.1) gets an error in place of a page.

import { consentNeeded } from '../../oauth/access/consent.ts';
import { maySignIn } from '../../oauth/access/sign-in-limits.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { asksForAccount, asksForSignIn, isSilent, needsSignIn } from '../../oauth/endpoints/openid-request.ts';
import type { Parameters } from '../../oauth/values/parameters.ts';
import type { AccountChoice } from '../cookies/sealed-request.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { redirectsBeforeSignIn, sendErrorLink } from './error-link.ts';
import { sendLoginPage } from './login-step.ts';
import { refuseAtClient, refuseUnseen } from './refusal-at-client.ts';
import { refusePerson } from './refused-person.ts';
import { accepted, answerFaultsAtClient, isOutdated, openInteraction, type SignInFlow } from './sign-in-flow.ts';
import { onlyProvider, startSignIn } from './upstream-sign-in.ts';

/** The authorization endpoint. HEAD must never issue anything: 405. */
export function authorizeEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'authorize',
    path: '/authorize',
    handlers: { GET: (exchange) => authorize(flow, exchange) },
    isPostedQuery: hasOpenid,
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

/** Only OpenID Connect has the POST (Core §3.1.2.1). */
function hasOpenid(form: Parameters): boolean {
  return form.all('scope').some((scope) => scope.split(' ').includes('openid'));
}

async function authorize(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, parameters, log } = exchange;
  const checked = flow.authorization.check(parameters, flow.registry.current);
  if (checked.kind === 'refused' && checked.reason === 'redirect_uri_mismatch' && checked.clientId !== undefined) {
    flow.onRedirectMismatch(checked.clientId);
  }
  if (checked.kind === 'redirect') {
    flow.metrics.tokenErrors.inc({ endpoint: 'authorize', error: checked.error, reason: checked.reason });
    if (!redirectsBeforeSignIn(request, checked) && (await flow.sessions.current(request)) === undefined) {
      sendErrorLink(flow, exchange, checked);
      return;
    }
  }
  const check = accepted(checked, exchange, 302);
  if (!check) return;
  if (redirectsBeforeSignIn(request, check.client)) answerFaultsAtClient(flow, exchange, check);

  const signedIn = await flow.sessions.current(request);
  if (signedIn) answerFaultsAtClient(flow, exchange, check);
  const goal = { ...check, selectsAccount: asksForAccount(parameters) };
  if (!signedIn) return await askToSignIn(flow, exchange, goal, 'not_signed_in');
  const { session, person } = signedIn;
  const isStale = goal.selectsAccount || needsSignIn(check.request, session, flow.clock.now());
  if (isStale || (await isOutdated(flow, session, check.client.uid))) {
    return await askToSignIn(flow, exchange, goal, 'sign_in_needed');
  }

  if (!maySignIn(check.client, person)) return refusePerson(flow, exchange, check, person);
  flow.authorization.limit(check, session);
  const given = await flow.consents.read(session.subject, check.client.uid);
  if (consentNeeded(check, given).ask) {
    if (isSilent(check.request)) return refuseAtClient(flow, exchange, check, 'consent_needed');
    log.outcome = 'consent_needed';
    reply.redirect(await openInteraction(flow, check, session), 302);
    return;
  }
  const location = await flow.authorization.issue(check, session);
  if (location === undefined) return await askToSignIn(flow, exchange, goal, 'sign_in_needed');
  log.outcome = 'issued';
  reply.redirect(location, 302);
}

/** The login page, or the only provider at once; for a silent request the error in their place, which sets no cookie. */
async function askToSignIn(
  flow: SignInFlow,
  exchange: Exchange,
  goal: AcceptedAuthorization & AccountChoice,
  reason: 'not_signed_in' | 'sign_in_needed',
): Promise<void> {
  if (isSilent(goal.request)) {
    const refuse = reason === 'not_signed_in' ? refuseUnseen : refuseAtClient;
    refuse(flow, exchange, goal, reason);
    return;
  }
  const only = goal.selectsAccount || asksForSignIn(goal.request) ? undefined : onlyProvider(flow, goal);
  if (only !== undefined) return await startSignIn(flow, exchange, goal, only);
  sendLoginPage(flow, exchange, goal);
}
