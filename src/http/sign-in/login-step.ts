// The answer with the login page: its first showing, and each after a refusal.

import { type LoginProblem, loginPage } from '../pages/login-page.ts';
import { pageFrame } from '../pages/page-frame.ts';
import type { Exchange } from '../server/endpoint.ts';
import { type SignInFlow, sendLeavingPage, sendOwnPage } from './sign-in-flow.ts';
import { destinationOf, type SignInGoal, waysIn } from './sign-in-goal.ts';

/** When to try a provider again that cannot be reached, seconds. */
export const UPSTREAM_RETRY_SECONDS = 10;

/** The status and content of a login page. */
export interface LoginStep {
  readonly status: 200 | 403 | 422 | 429 | 502 | 503;
  /** As typed before; undefined: that of `login_hint`, if any. */
  readonly username?: string;
  readonly problem: LoginProblem | undefined;
}

/**
 * Answers the login page; what the sign-in is for travels in it as a sealed field. A provider that cannot be used for now has no
 * button; where no other way in is left, the status is 503.
 */
export function sendLoginPage(
  flow: SignInFlow,
  { request, reply, log }: Exchange,
  goal: SignInGoal,
  { status, username, problem }: LoginStep,
): void {
  const browser = flow.sessions.ensureBrowser(request, reply);
  const isRequest = goal.kind === 'accepted';
  const { providers: open, takesPasswords } = waysIn(flow, goal);
  const providers = open.filter(({ name }) => flow.sources.source(name) !== undefined);
  const isClosedForNow = status === 200 && !takesPasswords && open.length > 0 && providers.length === 0;
  if (isClosedForNow) {
    log.reason = 'upstream_unavailable';
    reply.header('retry-after', String(UPSTREAM_RETRY_SECONDS));
  }
  // A provider would send the same person back.
  const selectsAccount = goal.selectsAccount || problem?.kind === 'notPermitted' || problem?.kind === 'notForPerson';
  const sealedRequest = flow.sealedRequests.seal(destinationOf({ ...goal, selectsAccount }), browser);
  log.outcome = 'login_page';
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
    order: flow.order,
  });
  const send = isRequest || providers.length > 0 ? sendLeavingPage : sendOwnPage;
  send(reply.code(isClosedForNow ? 503 : status), page);
}
