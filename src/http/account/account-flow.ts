// What the pages of a person's account share: the visit, which leads to the login page without a valid session, the question
// before something ends, and the check of their forms. What a form does stands in the file of its page.

import { asksForAccount } from '../../oauth/endpoints/openid-request.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Session, UseStore } from '../../oauth/ports/login-stores.ts';
import type { SignedIn } from '../cookies/browser-session.ts';
import type { OwnPath } from '../cookies/sealed-request.ts';
import { type PageFrame, pageFrame } from '../pages/page-frame.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { isOwnForm } from '../sign-in/form-origin.ts';
import { sendLoginPage } from '../sign-in/login-step.ts';
import { isOutdated, type SignInFlow, sendOwnPage } from '../sign-in/sign-in-flow.ts';

/** The dependencies, made once. */
export interface AccountFlow extends SignInFlow {
  readonly uses: UseStore;
}

/** The reason of the audit lines of what people do on these pages. */
export const ACCOUNT_PAGE = 'account_page';

/** A signed-in person at a page. */
export interface Visit {
  readonly exchange: Exchange;
  readonly signedIn: SignedIn;
  /** That of the page for the person. */
  readonly frame: PageFrame;
}

/** One page: what it shows, and what each of its forms does. */
export interface AccountPage {
  readonly route: string;
  readonly path: OwnPath;
  /** The page for this person. */
  readonly show: (visit: Visit) => Promise<string>;
  /** By the value of `action`. */
  readonly actions: Readonly<Record<string, AccountAction>>;
}

/** What a button of a page does. */
export interface AccountAction {
  /**
   * The page with the question, at the address of the page with `confirm` and `subject`: it alone holds the form. Undefined where
   * nothing is left to end. Absent where the page itself holds the form.
   */
  readonly ask?: (visit: Visit, subject: string) => Promise<string | undefined>;
  /** Answers by 303, and throws where it could not do all that it says. */
  readonly act: (visit: Visit, subject: string) => Promise<void>;
}

/** The endpoint of a page. */
export function accountEndpoint(flow: AccountFlow, page: AccountPage): Endpoint {
  return {
    route: page.route,
    path: page.path,
    handlers: { GET: (exchange) => visit(flow, exchange, page), POST: (exchange) => act(flow, exchange, page) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

async function visit(flow: AccountFlow, exchange: Exchange, page: AccountPage): Promise<void> {
  const { path } = page;
  const signedIn = await currentPerson(flow, exchange);
  const selectsAccount = asksForAccount(exchange.parameters);
  if (signedIn === undefined || selectsAccount) {
    sendLoginPage(flow, exchange, { kind: 'own_page', path, selectsAccount });
    return;
  }
  const shown = await pageOrQuestion(visitOf(flow, exchange, signedIn), page);
  // After the end of what it asks about, by a reload or the way back.
  if (shown === undefined) return leadTo(flow, exchange, path, 'account_page');
  exchange.log.outcome = 'account_page';
  sendOwnPage(exchange.reply.code(200), shown);
}

async function pageOrQuestion(visit: Visit, { show, actions }: AccountPage): Promise<string | undefined> {
  const { parameters } = visit.exchange;
  parameters.rejectDuplicates(['confirm', 'subject']);
  const action = parameters.get('confirm');
  if (action === undefined) return show(visit);
  const ask = actionNamed(actions, action).ask;
  if (ask === undefined) throw formRefused('account_action_unknown');
  return ask(visit, parameters.get('subject') ?? '');
}

async function act(flow: AccountFlow, exchange: Exchange, { path, actions }: AccountPage): Promise<void> {
  const { request, reply, parameters } = exchange;
  // 1. A form of this server's page
  if (!isOwnForm(request.headers, new URL(flow.issuer).origin)) throw formRefused('account_foreign_origin');
  parameters.rejectDuplicates(['csrf', 'action', 'subject']);
  // 2. The person; a session may have ended since the page was shown
  const signedIn = await currentPerson(flow, exchange);
  if (signedIn === undefined) {
    reply.redirect(`${flow.basePath}${path}`, 303);
    return;
  }
  // 3. A form that this person was shown, for this action on this subject
  const action = parameters.get('action') ?? '';
  const subject = parameters.get('subject') ?? '';
  const { act: run } = actionNamed(actions, action);
  if (!flow.formTokens.check(parameters.get('csrf'), signedIn.cookie, aboutOf(action, subject))) {
    throw formRefused('account_bad_csrf');
  }
  await run(visitOf(flow, exchange, signedIn), subject);
}

function actionNamed(actions: AccountPage['actions'], name: string): AccountAction {
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
  if (action === undefined) throw formRefused('account_action_unknown');
  return action;
}

/** What people know the identity provider by at which a session began; undefined for a password of this server. */
export function providerName({ providers }: Pick<AccountFlow, 'providers'>, { provider }: Session): string | undefined {
  return provider && (providers.provider(provider)?.displayName ?? provider);
}

/** The hidden fields of a form. @param subject what the action is about, such as one session; the form is valid for it alone */
export function formFields(
  { formTokens }: Pick<AccountFlow, 'formTokens'>,
  { cookie }: SignedIn,
  { action, subject = '' }: { readonly action: string; readonly subject?: string },
): FormFields {
  return { action, subject, csrf: formTokens.make(cookie, aboutOf(action, subject)) };
}

/** What a form of a page sends. */
export interface FormFields {
  readonly action: string;
  readonly subject: string;
  readonly csrf: string;
}

/** Answers a form: the browser goes to a page of ours. @param path below the path of the issuer */
export function leadTo({ basePath }: AccountFlow, { reply, log }: Exchange, path: string, outcome: string): void {
  log.outcome = outcome;
  reply.redirect(`${basePath}${path}`, 303);
}

/** A request that changes nothing: a 400 page that says so. */
export function formRefused(reason: `account_${string}`): OAuthError {
  return new OAuthError('invalid_request', 'The form is not one of the account page.', { reason });
}

/** The person of this browser; undefined also where a revocation demands a new sign-in. */
async function currentPerson(flow: AccountFlow, { request }: Exchange): Promise<SignedIn | undefined> {
  const signedIn = await flow.sessions.current(request);
  if (signedIn === undefined) return undefined;
  return (await isOutdated(flow, signedIn.session, undefined)) ? undefined : signedIn;
}

function visitOf(flow: AccountFlow, exchange: Exchange, signedIn: SignedIn): Visit {
  return { exchange, signedIn, frame: pageFrame(flow, exchange.request.headers) };
}

function aboutOf(action: string, subject: string): string {
  return JSON.stringify(['account', action, subject]);
}
