// A browser at the grantry of the ledger: the steps of a sign-in, each up to the request that is counted.

import { PKCE } from '../../grantry.ts';
import { answerOf, hidden, type Page, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import type { Caller } from './clients.ts';
import type { Prepared } from './costs.ts';
import { PASSWORD } from './people.ts';
import { CALLBACK, type CostWorld } from './world.ts';

/** A request of a client in the name of a person. */
export interface Wish {
  readonly caller: Caller;
  readonly scope: string;
  readonly resource?: string;
  readonly username: string;
}

/** Where a browser stands: the page or the redirect that it got last. */
export interface Visit {
  readonly browser: TestBrowser;
  readonly page: Page;
}

/** A browser that has never been here. */
export function newBrowser({ grantry }: CostWorld): TestBrowser {
  return new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
}

/** The path of a request of the client. */
export function authorizePath({ caller, scope, resource }: Omit<Wish, 'username'>): string {
  const request = {
    response_type: 'code',
    client_id: caller.clientId,
    redirect_uri: CALLBACK,
    scope,
    state: 'a-state-of-the-client',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
    ...(resource !== undefined && { resource }),
  };
  return `/authorize?${new URLSearchParams(request)}`;
}

/** The login page. */
export async function atLogin(world: CostWorld, wish: Wish): Promise<Visit> {
  const browser = newBrowser(world);
  return { browser, page: await browser.get(authorizePath(wish)) };
}

/** A browser at a page that it can open again. */
export interface VisitOf extends Visit {
  readonly path: string;
}

/** The page of consent, just signed in. */
export async function atConsent(world: CostWorld, wish: Wish): Promise<VisitOf> {
  const visit = await atLogin(world, wish);
  return await goingOn(visit.browser, await submittingLogin(visit, wish)());
}

/** The page that a redirect leads to. */
export async function goingOn(browser: TestBrowser, { location: path = '' }: Page): Promise<VisitOf> {
  return { browser, path, page: await browser.get(path) };
}

/** A browser whose person agrees to what is asked on the page of consent. */
export async function agreed(asked: VisitOf): Promise<TestBrowser> {
  let page = await allowing(asked)();
  while (page.location?.startsWith('/')) page = await asked.browser.get(page.location);
  answerOf(page);
  return asked.browser;
}

export function submittingLogin({ browser, page }: Visit, { username }: Wish): () => Promise<Page> {
  const fields = { username, password: PASSWORD, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return expecting(303, () => browser.submit('/login', fields));
}

export function allowing({ browser, path, page }: VisitOf): () => Promise<Page> {
  const fields = { decision: 'allow', csrf: hidden(page, 'csrf') };
  return expecting(303, () => browser.submit(path, fields));
}

/** A GET that ends at the client, with a code. */
export function returning(browser: TestBrowser, path: string): Prepared {
  return async () => {
    const page = await browser.get(path);
    if (answerOf(page).code === undefined) throw new Error(`no code but status ${page.status}: ${page.location}`);
  };
}

/** A request to be answered with this status. */
export function expecting(status: number, send: () => Promise<Page>): () => Promise<Page> {
  return async () => {
    const page = await send();
    if (page.status !== status) throw new Error(`answered ${page.status}, not ${status}`);
    return page;
  };
}
