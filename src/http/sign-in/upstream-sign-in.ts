// POST /login/upstream/:name, the buttons of the login page: sends the browser to an identity provider. GET /authorize does the
// same at once where there is no choice.

import type { OpenidRequest } from '../../oauth/ports/login-stores.ts';
import type { SignInRequest } from '../../oauth/ports/upstream-provider.ts';
import type { IdentityProvider } from '../../oauth/registry/identity-provider.ts';
import { issuerOf } from '../../oauth/registry/upstream-providers.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { TransportError } from '../server/errors.ts';
import { openLoginForm } from './login-form.ts';
import { sendLoginPage } from './login-step.ts';
import { refuseSource } from './refused-person.ts';
import { leadingTo, type SignInFlow } from './sign-in-flow.ts';
import { destinationOf, isOpenFor, type SignInGoal, waysIn } from './sign-in-goal.ts';

export function upstreamSignInEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'login-upstream',
    path: '/login/upstream/:name',
    handlers: { GET: leadingTo(flow, '/account'), POST: (exchange) => leave(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: true,
  };
}

async function leave(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const provider = servedProvider(flow, exchange);
  const goal = openLoginForm(flow, exchange);
  if (goal === undefined) return;
  if (!isOpenFor(goal, provider.name)) return refuseSource(flow, exchange, goal);
  await startSignIn(flow, exchange, goal, provider);
}

/**
 * The provider that the path names.
 * @throws TransportError not_found for an unknown or suspended one
 */
export function servedProvider({ providers }: SignInFlow, { request }: Exchange): IdentityProvider {
  const { name } = request.params as { readonly name: string };
  const provider = providers.provider(name);
  if (provider === undefined || provider.isSuspended) throw new TransportError('not_found');
  return provider;
}

/** The one provider that all people sign in by to reach this goal; undefined where there is a choice. */
export function onlyProvider(flow: SignInFlow, goal: SignInGoal): IdentityProvider | undefined {
  const { providers, takesPasswords } = waysIn(flow, goal);
  const [only, ...others] = providers;
  return others.length > 0 || takesPasswords ? undefined : only;
}

/**
 * Sends the browser to a provider, and keeps what has to come back in a cookie.
 * @throws OAuthError invalid_request, `request_too_long_for_upstream`
 */
export async function startSignIn(
  flow: SignInFlow,
  exchange: Exchange,
  goal: SignInGoal,
  provider: IdentityProvider,
): Promise<void> {
  const { request, reply, log } = exchange;
  const started = await flow.providers.upstream(provider.name)?.begin(signInRequest(flow, goal, provider));
  if (started === undefined || started === 'unavailable') {
    const problem = { kind: 'unavailable', provider: provider.displayName } as const;
    const detail = flow.providers.faultOf(provider.name);
    if (detail !== undefined) log.detail = detail;
    sendLoginPage(flow, exchange, goal, { problem });
    return;
  }
  const browser = flow.sessions.ensureBrowser(request, reply);
  const { location, ...pending } = started;
  const { name, uid } = provider;
  const sealed = { destination: destinationOf(goal), provider: { name, uid, issuer: issuerOf(provider) }, pending };
  flow.pendingSignIns.keep(exchange, browser, sealed);
  log.outcome = 'left_for_provider';
  reply.redirect(location, request.method === 'POST' ? 303 : 302);
}

/** Where a provider sends people back to. */
export function callbackUrl({ issuer }: Pick<SignInFlow, 'issuer'>, name: string): string {
  return `${issuer}/login/callback/${name}`;
}

function signInRequest(flow: SignInFlow, goal: SignInGoal, { name }: IdentityProvider): SignInRequest {
  const request = goal.kind === 'accepted' ? goal.request : undefined;
  const openid = request?.openid;
  return {
    callbackUrl: callbackUrl(flow, name),
    prompt: promptOf(goal, openid),
    maxAge: openid?.maxAge,
    loginHint: openid?.loginHint,
    uiLocales: request?.uiLocales?.join(' '),
  };
}

/** What of the client's `prompt` is passed on; the page for `consent` is ours. */
function promptOf({ selectsAccount }: SignInGoal, openid: OpenidRequest | undefined): SignInRequest['prompt'] {
  // The page of a repeated sign-in takes another name, too; not every provider takes both values.
  if (openid?.prompt.includes('login')) return 'login';
  return selectsAccount ? 'select_account' : undefined;
}
