// GET /login/callback/:name, where an identity provider sends a browser back to: the answer of the provider becomes a session.

import type { AssertedPerson, AssertionRefusal, ProviderAnswer } from '../../oauth/ports/upstream-provider.ts';
import type { IdentityProvider } from '../../oauth/registry/identity-provider.ts';
import { issuerOf } from '../../oauth/registry/upstream-providers.ts';
import type { SealedSignIn } from '../cookies/pending-sign-ins.ts';
import type { ProviderProblem } from '../pages/login-page.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { goalOf } from './login-form.ts';
import { sendLoginPage } from './login-step.ts';
import { refuseUnseen } from './refusal-at-client.ts';
import { type SignInFlow, startAgain } from './sign-in-flow.ts';
import type { SignInGoal } from './sign-in-goal.ts';
import { answerSignedIn } from './signed-in.ts';
import { callbackUrl, servedProvider } from './upstream-sign-in.ts';

/** How far the clock of a provider may be from ours, milliseconds. */
const CLOCK_TOLERANCE = 60_000;

export function upstreamCallbackEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'login-callback',
    path: '/login/callback/:name',
    handlers: { GET: (exchange) => comeBack(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

async function comeBack(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, address } = exchange;
  // 1. The provider, and the pending sign-in of this browser that this callback completes: until here no call leaves the server
  const provider = servedProvider(flow, exchange);
  const sealed = takePending(flow, exchange, provider);

  // 2. Limits, and the client as it is now
  const seconds = await flow.loginLimit.beginCallback(address);
  const goal = goalOf(flow, exchange, sealed.destination);
  if (goal === undefined) return;
  if (seconds > 0) return refuse(flow, exchange, goal, { problem: { kind: 'tooMany', seconds }, provider });

  // 3. What the provider says
  const returned = {
    pending: sealed.pending,
    callbackUrl: callbackUrl(flow, provider.name),
    parameters: new URL(request.url, flow.issuer).searchParams,
  };
  const answer = (await flow.providers.upstream(provider.name)?.finish(returned)) ?? unreached(flow, provider);
  // A provider that throttles this server is unavailable: made-up codes must not keep it so.
  const isBelieved = answer.outcome !== 'invalid' && answer.outcome !== 'unavailable';
  if (isBelieved) await flow.loginLimit.refundCallback(address);
  if (answer.outcome !== 'asserted') return refuse(flow, exchange, goal, refusalOf(answer, provider));
  if (goal.kind === 'accepted' && !isFresh(goal, answer.person, sealed)) {
    return refuseUnseen(flow, exchange, goal, 'sign_in_needed');
  }
  await welcome(flow, exchange, goal, { person: answer.person, provider });
}

function unreached({ providers }: SignInFlow, { name }: IdentityProvider): ProviderAnswer {
  return { outcome: 'unavailable', detail: providers.faultOf(name) };
}

/** @throws OAuthError as {@link startAgain}; the cookies of the pending sign-in are cleared in each case */
function takePending(flow: SignInFlow, exchange: Exchange, provider: IdentityProvider): SealedSignIn {
  const { request, parameters } = exchange;
  const browser = flow.sessions.browser(request);
  const [state, ...others] = parameters.all('state');
  const sealed = browser && state !== undefined && flow.pendingSignIns.take(exchange, browser, state);
  const isDoubled = others.length > 0 || ['code', 'iss', 'error'].some((name) => parameters.all(name).length > 1);
  if (!sealed || isDoubled) throw startAgain('interaction_upstream_unknown');
  const { name, uid, issuer } = sealed.provider;
  const isOfProvider = name === provider.name && uid === provider.uid && issuer === issuerOf(provider);
  if (!isOfProvider) throw startAgain('interaction_upstream_unknown');
  return sealed;
}

/** Whether the person has signed in at the provider as lately as the client asks; a provider that does not say has not. */
function isFresh(
  { request }: Extract<SignInGoal, { kind: 'accepted' }>,
  { authTime }: AssertedPerson,
  { leftAt }: SealedSignIn,
): boolean {
  const { prompt = [], maxAge } = request.openid ?? {};
  const oldest = prompt.includes('login') || maxAge === 0 ? leftAt : maxAge !== undefined && leftAt - maxAge * 1000;
  return oldest === false || (authTime !== undefined && authTime >= oldest - CLOCK_TOLERANCE);
}

interface Welcomed {
  readonly person: AssertedPerson;
  readonly provider: IdentityProvider;
}

/** The limits and kill switches of the person, then the session. */
async function welcome(
  flow: SignInFlow,
  exchange: Exchange,
  goal: SignInGoal,
  { person, provider }: Welcomed,
): Promise<void> {
  const { providers, loginLimit } = flow;
  const seconds = await loginLimit.signedIn(person.subject);
  if (seconds > 0) return refuse(flow, exchange, goal, { problem: { kind: 'tooMany', seconds }, provider, person });
  const recorded = await providers.remember(person, provider);
  if (recorded === undefined) {
    const refused = { outcome: 'refused', reason: 'person_not_permitted', username: person.username } as const;
    return refuse(flow, exchange, goal, { ...refusalOf(refused, provider), person });
  }
  const { subject, username, displayName = username } = recorded;
  const owner = { subject, username, displayName, credential: undefined };
  const upstream = { provider: provider.name, upstreamAuthTime: person.authTime };
  await answerSignedIn(flow, exchange, goal, { owner, upstream });
}

interface Refused {
  readonly problem: ProviderProblem;
  readonly provider: IdentityProvider;
  readonly reason?: AssertionRefusal;
  readonly person?: AssertedPerson;
  /** See {@link OAuthErrorDetails.detail}. */
  readonly detail?: string | undefined;
}

function refusalOf(answer: Exclude<ProviderAnswer, { outcome: 'asserted' }>, provider: IdentityProvider): Refused {
  const { displayName } = provider;
  if (answer.outcome !== 'refused') {
    const detail = answer.outcome === 'cancelled' ? undefined : answer.detail;
    return { problem: { kind: answer.outcome, provider: displayName }, provider, detail };
  }
  const { username, reason } = answer;
  return { problem: { kind: 'notPermitted', provider: displayName, username }, provider, reason };
}

/** The login page again, with the request still open. What the provider wrote is in no page and no log. */
function refuse(flow: SignInFlow, exchange: Exchange, goal: SignInGoal, refused: Refused): void {
  const { problem, provider, person, detail } = refused;
  const { log, address } = exchange;
  sendLoginPage(flow, exchange, goal, { problem });
  if (refused.reason !== undefined) log.reason = refused.reason;
  if (detail !== undefined) log.detail = detail;
  flow.audit.record({
    type: problem.kind === 'notPermitted' ? 'person.refused' : 'login.failed',
    subject: person?.subject,
    clientId: goal.kind === 'accepted' ? goal.client.clientId : undefined,
    reason: log.reason,
    provider: provider.name,
    address,
  });
}
