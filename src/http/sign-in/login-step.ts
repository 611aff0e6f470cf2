// The answer with the login page: its first showing, and each after a refusal.

import type { Opened, RefusedForm } from '../cookies/sealed-request.ts';
import { type LoginProblem, loginPage } from '../pages/login-page.ts';
import { pageFrame } from '../pages/page-frame.ts';
import type { Exchange } from '../server/endpoint.ts';
import { goalOf, openSealed } from './login-form.ts';
import { type SignInFlow, sendLeavingPage, sendOwnPage, startAgain } from './sign-in-flow.ts';
import { destinationOf, type SignInGoal, waysIn } from './sign-in-goal.ts';

/** When to try a provider again that cannot be reached, seconds. */
const UPSTREAM_RETRY_SECONDS = 10;

/** Of the sealed text in an address: all headers of the redirect fit into the 4 KiB that proxies reserve by default. */
const REFUSED_CHARACTERS_MAX = 3072;

/** By the problem: the status of the page, and the reason in the log. */
const PROBLEMS = {
  missing: { status: 422, reason: 'credentials_missing' },
  wrong: { status: 422, reason: 'credentials_wrong' },
  cancelled: { status: 422, reason: 'upstream_cancelled' },
  notPermitted: { status: 403, reason: 'person_not_permitted' },
  notForPerson: { status: 403, reason: 'person_not_permitted' },
  notOpen: { status: 403, reason: 'source_not_permitted' },
  tooMany: { status: 429, reason: 'login_rate_limited' },
  invalid: { status: 502, reason: 'upstream_answer_invalid' },
  busy: { status: 503, reason: 'login_busy' },
  outdated: { status: 503, reason: 'users_outdated' },
  unavailable: { status: 503, reason: 'upstream_unavailable' },
} as const satisfies Record<LoginProblem['kind'], { readonly status: number; readonly reason: string }>;

/** What a login page shows beside the ways to sign in; nothing at first. The name is `login_hint` where none is given. */
export type LoginStep = Partial<RefusedForm>;

/**
 * Answers the login page, and logs the problem. To a form that is refused the answer is a redirect to the page: the browser has
 * nothing to send again when the person reloads it or comes back to it.
 */
export function sendLoginPage(flow: SignInFlow, exchange: Exchange, goal: SignInGoal, step: LoginStep = {}): void {
  const { username, problem } = step;
  if (problem === undefined) {
    renderLoginPage(flow, exchange, goal, step);
    return;
  }
  const { reply, log } = exchange;
  const { kind } = problem;
  // A provider would send the same person back.
  const selectsAccount = goal.selectsAccount || kind === 'notPermitted' || kind === 'notForPerson';
  const next = { ...goal, selectsAccount };
  const location = addressOfRefused(flow, exchange, next, { username, problem });
  if (location === undefined) renderLoginPage(flow, exchange, next, step);
  else reply.redirect(location, 303);
  const { reason } = PROBLEMS[kind];
  if (kind === 'tooMany') flow.metrics.rateLimited.inc({ limit: reason });
  log.outcome = 'refused';
  log.reason = reason;
}

/** Undefined for what is no form, and for more than fits into an address. */
function addressOfRefused(
  { sessions, sealedRequests, basePath }: SignInFlow,
  { request, reply }: Exchange,
  goal: SignInGoal,
  refused: RefusedForm,
): string | undefined {
  if (request.method !== 'POST') return undefined;
  const sealed = sealedRequests.seal(destinationOf(goal), sessions.ensureBrowser(request, reply), refused);
  return sealed.length > REFUSED_CHARACTERS_MAX ? undefined : `${basePath}/login?refused=${sealed}`;
}

/**
 * Answers the page of a form that was refused. It counts no attempt, and once the person has waited long enough there is no
 * problem on it.
 * @throws OAuthError as {@link startAgain}, for the address of another browser, and an expired one
 */
export function sendRefusedForm(flow: SignInFlow, exchange: Exchange): void {
  const { request, parameters } = exchange;
  parameters.rejectDuplicates(['refused']);
  const browser = flow.sessions.browser(request);
  const opened = browser && openSealed(flow, exchange, parameters.get('refused') ?? '', browser);
  if (!opened || opened.isExpired) throw startAgain('interaction_expired');
  const goal = goalOf(flow, exchange, opened.destination);
  if (goal !== undefined) renderLoginPage(flow, exchange, goal, stillRefused(opened, flow.clock.now()));
}

function stillRefused({ refused, sealedAt }: Opened, now: number): LoginStep {
  if (refused === undefined) return {};
  const { username, problem } = refused;
  // Another version of this server may have sealed a problem that this one has no words for.
  if (!Object.hasOwn(PROBLEMS, problem.kind)) return { username };
  const passed = Math.floor((now - sealedAt) / 1000);
  // The cause may be gone by then: the next try says so.
  if (problem.kind === 'unavailable') return passed < UPSTREAM_RETRY_SECONDS ? refused : { username };
  if (!('seconds' in problem) || problem.seconds === undefined) return refused;
  const seconds = problem.seconds - passed;
  return seconds > 0 ? { username, problem: { ...problem, seconds } } : { username };
}

/**
 * The page. What the sign-in is for travels in it as a sealed field. A provider that cannot be used for now has no button; where
 * no other way in is left, the status is 503.
 */
function renderLoginPage(
  flow: SignInFlow,
  { request, reply, log }: Exchange,
  goal: SignInGoal,
  { username, problem }: LoginStep,
): void {
  const isRequest = goal.kind === 'accepted';
  const { providers: open, takesPasswords } = waysIn(flow, goal);
  const providers = open.filter(({ name }) => flow.providers.upstream(name) !== undefined);
  const isClosedForNow = !takesPasswords && open.length > 0 && providers.length === 0;
  const kind = problem?.kind ?? (isClosedForNow ? 'unavailable' : undefined);
  const wait = problem !== undefined && 'seconds' in problem ? problem.seconds : undefined;
  const seconds = kind === 'unavailable' ? UPSTREAM_RETRY_SECONDS : wait;
  if (seconds !== undefined) reply.header('retry-after', String(seconds));
  log.outcome = 'login_page';
  if (kind !== undefined) log.reason = PROBLEMS[kind].reason;
  const browser = flow.sessions.ensureBrowser(request, reply);
  const sealedRequest = flow.sealedRequests.seal(destinationOf(goal), browser);
  const page = loginPage({
    frame: pageFrame(flow, request.headers, isRequest ? goal.request.uiLocales : undefined),
    host: new URL(flow.issuer).host,
    clientName: isRequest ? goal.client.displayName : undefined,
    sealedRequest,
    csrf: flow.formTokens.make(browser, sealedRequest),
    username: username ?? (isRequest ? goal.request.openid?.loginHint : undefined) ?? '',
    problem,
    takesPasswords,
    providers,
    isClosedForNow,
    order: flow.order,
  });
  const send = isRequest || providers.length > 0 ? sendLeavingPage : sendOwnPage;
  send(reply.code(kind === undefined ? 200 : PROBLEMS[kind].status), page);
}
