// The web application of the notes in Chromium, by either library: people sign in, see their notes, stay signed in when an access
// token ends, and are signed out at both; and what comes back from the issuer is refused where it is not the answer to the request.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { endAll, Issuer } from '../examples/notes-servers.ts';
import { until } from '../until.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';

const WAYS = [
  { library: 'openid-client', args: [], action: '/sign-in', callback: '/callback', tabs: [0, 1], ownSignOut: [] },
  // Its cookies hold one request.
  {
    library: 'Auth.js',
    args: ['--auth-js'],
    action: '/auth/signin/grantry',
    callback: '/auth/callback/grantry',
    tabs: [1],
    ownSignOut: ['/auth/signout'],
  },
] as const;

/** A server before the API that keeps which token each request had, and how it was answered. */
class ApiCalls {
  readonly seen: { readonly token: string; readonly status: number }[] = [];
  readonly #server: Server;
  #isLate = false;
  #accepted = Promise.withResolvers<void>();

  constructor(api: string) {
    this.#server = createServer(async (request, response) => {
      const { authorization = '', 'content-type': type = '' } = request.headers;
      const answer = await fetch(`${api}${request.url}`, {
        method: request.method ?? 'GET',
        headers: { authorization, ...(type && { 'content-type': type }) },
        ...(request.method === 'POST' && { body: await text(request) }),
      });
      this.seen.push({ token: authorization.replace('Bearer ', ''), status: answer.status });
      if (answer.ok) this.#accepted.resolve();
      else if (this.#isLate) {
        this.#isLate = false;
        await this.#accepted.promise;
      }
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, 'localhost');
    await once(this.#server, 'listening');
    return `http://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Keeps the next refusal back until another request is accepted. */
  delayRefusal(): void {
    this.#isLate = true;
    this.#accepted = Promise.withResolvers();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

describe.skipIf(NO_CHROMIUM).each(WAYS)('the web application by $library in Chromium', (way) => {
  let browser: Browser;
  let issuer: Issuer;
  let calls: ApiCalls;
  let web: string;
  let context: BrowserContext;
  let page: Page;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    [browser, issuer] = await Promise.all([launchChromium(), Issuer.start()]);
    calls = new ApiCalls(await issuer.startApi('--introspect'));
    ({ web } = await issuer.startWeb('--api', await calls.listen(), ...way.args));
  });
  afterAll(async () => {
    await browser?.close();
    calls?.close();
    await endAll();
  });
  beforeEach(async () => {
    context = await newContext();
    page = await context.newPage();
    calls.seen.length = 0;
  });
  afterEach(() => Promise.all(contexts.splice(0).map((each) => each.close())));

  /** A browser without a cookie. */
  async function newContext(): Promise<BrowserContext> {
    const created = await browser.newContext({ locale: 'en-US' });
    created.setDefaultTimeout(20_000);
    contexts.push(created);
    return created;
  }

  function button(name: string, on = page) {
    return on.getByRole('button', { name });
  }

  /** Types the password of `demo`. */
  async function login(on = page): Promise<void> {
    await on.getByLabel('Username').fill('demo');
    await on.getByLabel('Password').fill('demo');
    await button('Sign in', on).click();
  }

  /** The way of a person: the button of the application, the password, and consent where it is asked for. */
  async function signIn(on = page): Promise<void> {
    await on.goto(web);
    await button('Sign in', on).click();
    await login(on);
    await button('Allow', on).or(button('Sign out', on)).first().waitFor();
    if (await button('Allow', on).isVisible()) await button('Allow', on).click();
    await button('Sign out', on).waitFor();
  }

  async function isSignedIn(of = context): Promise<boolean> {
    const answer = await of.request.get(`${web}/`);
    return (await answer.text()).includes('Sign out');
  }

  function untilEnded(token: string): Promise<void> {
    return until('the access token has ended', async () => {
      const answer = await issuer.post('/introspect', 'notes-web', { token });
      return ((await answer.json()) as { readonly active: boolean }).active === false;
    });
  }

  /** What the application sends this browser to the issuer with. */
  async function authorizationRequest(of = context): Promise<URL> {
    const answer = await of.request.post(`${web}${way.action}`, { headers: { origin: web }, maxRedirects: 0 });
    const request = new URL(answer.headers().location ?? '');
    expect(request.origin).toBe(issuer.issuer);
    return request;
  }

  /** An answer to this browser that the application has not got yet: its person is signed in at the issuer alone. */
  async function pendingAnswer(changes: Readonly<Record<string, string>> = {}): Promise<URL> {
    await signIn();
    await context.clearCookies({ name: /notes|authjs/ });
    const request = await authorizationRequest();
    for (const [name, value] of Object.entries(changes)) request.searchParams.set(name, value);
    const { location = '' } = (await context.request.get(request.href, { maxRedirects: 0 })).headers();
    const answer = new URL(location);
    expect(answer.href).toContain(`${web}${way.callback}?`);
    return answer;
  }

  async function expectNotSignedIn(sentence: string, on = page): Promise<void> {
    await on.getByRole('heading', { name: 'You are not signed in' }).waitFor();
    expect(await on.getByRole('main').innerText()).toContain(sentence);
    expect(await isSignedIn(on.context())).toBe(false);
  }

  it('a sign-in → the name of the person, and notes that are added by the API', async () => {
    await page.goto(web);
    expect(await axeFindings(page)).toEqual([]);
    await signIn();
    await page.getByRole('heading', { name: 'Notes of demo' }).waitFor();
    const note = `<b>By ${way.library}</b>`;
    await page.getByLabel('A new note').fill(note);
    await button('Add').click();
    await page.getByText(note, { exact: true }).waitFor();
    expect(calls.seen.map(({ status }) => status)).toEqual([200, 201, 200]);
    expect(await axeFindings(page)).toEqual([]);
    await page.screenshot({ path: `${SCREENSHOTS}notes-web-${way.library}.png` });
  });

  it('a request of a sign-in has PKCE, state and nonce; no cookie that scripts can read, and none with a token', async () => {
    const { searchParams } = await authorizationRequest();
    for (const name of ['code_challenge', 'state', 'nonce']) expect(searchParams.get(name)).toMatch(/^[\w.-]{43,}$/);
    await signIn();
    const cookies = (await context.cookies()).filter(({ name }) => /notes|authjs/.test(name));
    expect(cookies.filter(({ httpOnly, sameSite }) => !httpOnly || sameSite !== 'Lax')).toEqual([]);
    expect(cookies.filter(({ value }) => value.includes(calls.seen[0]?.token ?? ''))).toEqual([]);
  });

  it('an access token that the API refuses → one new token for all pages at the same time, one that is refused late too', async () => {
    await signIn();
    const [{ token } = { token: '' }] = calls.seen;
    await issuer.post('/revoke', 'notes-web', { token, token_type_hint: 'access_token' });
    await untilEnded(token);
    calls.delayRefusal();
    expect(await Promise.all([isSignedIn(), isSignedIn(), isSignedIn()])).toEqual([true, true, true]);
    expect(calls.seen.filter(({ status }) => status === 401).length).toBeGreaterThan(1);
    expect(new Set(calls.seen.map((call) => call.token)).size).toBe(2);
    expect(calls.seen.at(-1)).toEqual({ token: expect.not.stringMatching(token), status: 200 });
  });

  it('a session that ended at the issuer → the person is asked to sign in again', async () => {
    await signIn();
    const elsewhere = await context.newPage();
    await elsewhere.goto(`${issuer.issuer}/logout`);
    await button('Sign out', elsewhere).click();
    await elsewhere.getByRole('heading', { name: 'signed out' }).waitFor();
    await until('the API refuses the token', async () => {
      await page.goto(web);
      return (await button('Sign out').count()) === 0;
    });
    await expectNotSignedIn('Your sign-in is over.');
    await signIn();
  });

  it('a sign-out → no session at the application, not with the old cookies either, and none at the issuer', async () => {
    await signIn();
    const before = await context.storageState();
    await button('Sign out').click();
    await page.waitForURL(`${web}/`);
    expect(await isSignedIn()).toBe(false);
    await context.addCookies(before.cookies);
    expect(await isSignedIn()).toBe(false);
    await page.goto((await authorizationRequest()).href);
    await page.getByLabel('Password').waitFor();
    expect(calls.seen.length).toBe(1);
    await untilEnded(calls.seen[0]?.token ?? '');
  });

  it.each(way.ownSignOut)('a sign-out by %s → no session, not with the old cookies either', async (path) => {
    await signIn();
    const before = await context.cookies(web);
    await context.request.post(`${web}${path}`, { headers: { origin: web } });
    for (const cookies of [[], before]) {
      await context.addCookies(cookies);
      expect(await (await context.request.get(`${web}/auth/session`)).json()).toBeNull();
    }
  });

  it('the cookies from before a sign-in → not signed in, after it either', async () => {
    await page.goto(web);
    await button('Sign in').click();
    await page.getByLabel('Password').waitFor();
    const before = await context.cookies(web);
    await login();
    await button('Sign out').waitFor();
    const stranger = await newContext();
    await stranger.addCookies(before);
    expect([await isSignedIn(stranger), await isSignedIn()]).toEqual([false, true]);
  });

  it('a person who allows nothing → a page that says so', async () => {
    const request = await authorizationRequest();
    request.searchParams.set('prompt', 'consent');
    await page.goto(request.href);
    await login();
    await button('Deny').click();
    await expectNotSignedIn('The access was not allowed.');
    expect(await axeFindings(page)).toEqual([]);
  });

  it('an ID token with another nonce → refused', async () => {
    await page.goto((await pendingAnswer({ nonce: 'another' })).href);
    await expectNotSignedIn('The sign-in failed.');
  });

  it.each([
    ['another state', 'state', 'another'],
    ['another issuer', 'iss', 'https://id.example.com'],
    ['another code', 'code', 'another'],
  ])('an answer with %s → refused', async (_, name, value) => {
    const answer = await pendingAnswer();
    answer.searchParams.set(name, value);
    await page.goto(answer.href);
    await expectNotSignedIn('');
  });

  it('an answer in another browser → refused there, and taken once in its own', async () => {
    const answer = await pendingAnswer();
    const stranger = await (await newContext()).newPage();
    await stranger.goto(answer.href);
    await expectNotSignedIn('', stranger);
    await page.goto(answer.href);
    await button('Sign out').waitFor();
    await page.goto(answer.href);
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor();
  });

  it.each(way.tabs)('a sign-in in tab %i of two that began one → signed in', async (number) => {
    const tabs = [page, await context.newPage()];
    for (const tab of tabs) {
      await tab.goto(web);
      await button('Sign in', tab).click();
      await tab.getByLabel('Password').waitFor();
    }
    await login(tabs[number]);
    await button('Sign out', tabs[number]).waitFor();
  });

  it('a form of another site beside this one → refused, and the person stays signed in', async () => {
    await signIn();
    for (const path of ['/sign-out', '/notes', way.action]) {
      const headers = { origin: issuer.issuer };
      const answer = await context.request.post(`${web}${path}`, { headers, form: { text: 'x' }, maxRedirects: 0 });
      expect([path, answer.status()]).toEqual([path, 403]);
    }
    expect(await isSignedIn()).toBe(true);
  });
});
