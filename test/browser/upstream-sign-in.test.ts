// A sign-in by an identity provider as a browser goes through it, with scripts off: tabs, the way back, and an attack by the callback,
// the session or the cookies of another browser.

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LocalUsers } from '../../src/login/local/local-users.ts';
import { type Grantry, PKCE, startGrantry, TestClock } from '../grantry.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { json, ScriptedProvider } from '../login/upstream/scripted-provider.ts';
import { launchChromium, NO_CHROMIUM } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';
import { PARENT, SiblingSites } from './sibling-sites.ts';

type Name = 'ada' | 'mallory';

describe.skipIf(NO_CHROMIUM)('a sign-in by a provider in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;
  let upstream: ScriptedProvider;
  let siblings: SiblingSites;
  let grantry: Grantry;
  /** That of an https issuer. */
  let secured: Grantry;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    [browser, site, upstream, siblings] = await Promise.all([
      launchChromium(),
      startClientSite(),
      ScriptedProvider.start(),
      SiblingSites.start(),
    ]);
    askWhoComes(upstream);
    [grantry, secured] = await Promise.all([startServer(), startServer(siblings.issuer)]);
    siblings.grantryPort = secured.port;
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    upstream?.stop();
    siblings?.stop();
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });

  /** All sign in by the provider. */
  async function startServer(issuer?: string): Promise<Grantry> {
    const clock = new TestClock();
    clock.run();
    const redirectUris = [`http://localhost:${site.port}/callback`];
    const secret = 'the secret of the shop!!!!!!!!!!';
    const clients = [{ clientId: 'shop', secret, redirectUris, consent: 'Skip' as const }];
    const owners = new LocalUsers({ clock, users: [] });
    const server = await startGrantry(Object.assign({ clock, owners, clients }, issuer && { issuer }));
    await server.setProviders([anOidcProvider({ issuer: upstream.issuer })]);
    return server;
  }

  async function newContext(): Promise<BrowserContext> {
    const context = await browser.newContext({ javaScriptEnabled: false, locale: 'en-US', ignoreHTTPSErrors: true });
    contexts.push(context);
    context.setDefaultTimeout(5000);
    return context;
  }

  function authorizeUrl(changes: Readonly<Record<string, string>> = {}, { issuer } = grantry): string {
    const query = {
      response_type: 'code',
      client_id: 'shop',
      redirect_uri: `http://localhost:${site.port}/callback`,
      state: 'some-state',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    };
    return `${issuer}/authorize?${new URLSearchParams(Object.assign(query, changes))}`;
  }

  /** Says at the page of the provider who one is. @returns the status at the callback */
  async function comeAs(page: Page, name: Name): Promise<number> {
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/login/callback/')),
      page.getByRole('link', { name }).click(),
    ]);
    await page.waitForLoadState();
    return answer.status();
  }

  /** The state at the client, to which the page comes with a code. */
  async function stateAtClient(page: Page): Promise<string | null> {
    await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
    return new URL(page.url()).searchParams.get('state');
  }

  /** The person of the session, by the page of the account; undefined at the page to sign in. */
  async function personOf(page: Page, { issuer } = grantry): Promise<string | undefined> {
    await page.goto(`${issuer}/account`);
    const person = await personAt(page);
    if (person === undefined) await page.getByRole('button', { name: 'Corp' }).waitFor();
    return person;
  }

  async function personAt(page: Page): Promise<string | undefined> {
    return /\((\w+)\)/.exec(await page.locator('main').innerText())?.[1];
  }

  async function sessionOf(context: BrowserContext): Promise<string | undefined> {
    return (await context.cookies(grantry.issuer)).find(({ name }) => name === 'grantry-session')?.value;
  }

  /** An attacker who has signed in, and whose callback of a second sign-in is still to be opened. */
  async function anAttacker(server = grantry): Promise<{ context: BrowserContext; callback: string }> {
    const context = await newContext();
    const [away, page] = [await context.newPage(), await context.newPage()];
    await away.goto(authorizeUrl({}, server));
    await page.goto(authorizeUrl({}, server));
    await comeAs(page, 'mallory');
    await stateAtClient(page);
    const callback = await away.getByRole('link', { name: 'mallory' }).getAttribute('href');
    return { context, callback: callback ?? '' };
  }

  describe('begun in two tabs', () => {
    it.each([
      ['in turn', [0, 1]],
      ['the last one first', [1, 0]],
    ] as const)('and ended %s → each has a code with its own state', async (_case, order) => {
      const context = await newContext();
      const pages = [await context.newPage(), await context.newPage()];
      for (const [at, page] of pages.entries()) await page.goto(authorizeUrl({ state: `of tab ${at}` }));
      const states: (string | null)[] = [];
      for (const at of order) {
        const page = pages[at] as Page;
        expect(await comeAs(page, 'ada')).toBe(302);
        states.push(await stateAtClient(page));
      }
      expect(states).toEqual(order.map((at) => `of tab ${at}`));
    });
  });

  it('with a state of 4 KiB → has two cookies on its way, and comes back with it', async () => {
    const context = await newContext();
    const page = await context.newPage();
    const state = randomBytes(3072).toString('base64url');
    await page.goto(authorizeUrl({ state }));
    const away = (await context.cookies(grantry.issuer)).filter(({ name }) => name.includes('away'));
    expect(away).toHaveLength(2);
    await comeAs(page, 'ada');
    expect(await stateAtClient(page)).toBe(state);
  });

  it('given the way back once the code is there, and forward → the page to start again; the session stays', async () => {
    const context = await newContext();
    const page = await context.newPage();
    await page.goto(authorizeUrl());
    await comeAs(page, 'ada');
    await stateAtClient(page);
    const former = { session: await sessionOf(context), logins: logins().length, redeemed: upstream.redeemed.length };

    await page.goBack();
    expect(page.url()).toMatch(upstream.issuer);
    expect(await comeAs(page, 'ada')).toBe(400);
    await page.getByRole('heading', { name: 'This page cannot be used any more' }).waitFor();
    await page.goBack();
    expect((await page.goForward())?.status()).toBe(400);
    expect(page.url()).toContain('/login/callback/');

    const now = { session: await sessionOf(context), logins: logins().length, redeemed: upstream.redeemed.length };
    expect(now).toEqual(former);
    await page.goto(authorizeUrl({ state: 'again' }));
    expect(await stateAtClient(page)).toBe('again');
  });

  const logins = () => grantry.audits().filter(({ event }) => event === 'login.succeeded');

  describe('of an attacker, whose callback a page of another site opens in the browser of a person', () => {
    async function openFrom(context: BrowserContext, callback: string): Promise<number> {
      const page = await context.newPage();
      site.serve('/lure', `<a href="${callback.replaceAll('&', '&amp;')}">mallory</a>`);
      await page.goto(`http://localhost:${site.port}/lure`);
      return await comeAs(page, 'mallory');
    }

    it('who is at the provider → 400, nothing is redeemed, and the sign-in of the person goes on', async () => {
      const { callback } = await anAttacker();
      const context = await newContext();
      const page = await context.newPage();
      await page.goto(authorizeUrl());
      const redeemed = upstream.redeemed.length;
      expect(await openFrom(context, callback)).toBe(400);
      expect(grantry.logs().findLast(({ route }) => route === 'login-callback')).toMatchObject({
        reason: 'interaction_upstream_unknown',
      });
      expect([upstream.redeemed.length, await sessionOf(context)]).toEqual([redeemed, undefined]);
      expect(await comeAs(page, 'ada')).toBe(302);
      expect(await stateAtClient(page)).toBe('some-state');
      expect(await personOf(page)).toBe('ada');
    });

    it('who is signed in → 400, and the session stays', async () => {
      const { callback } = await anAttacker();
      const context = await newContext();
      const page = await context.newPage();
      await page.goto(authorizeUrl());
      await comeAs(page, 'ada');
      const session = await sessionOf(context);
      expect(await openFrom(context, callback)).toBe(400);
      expect([await sessionOf(context), await personOf(page)]).toEqual([session, 'ada']);
    });
  });

  it.each<[string, (attacker: BrowserContext) => Promise<string | undefined>]>([
    ['made up', async () => `000.${'A'.repeat(43)}`],
    ['of the session of an attacker', (attacker) => sessionOf(attacker)],
  ])(
    'given a cookie planted before it, %s → another one after it, and the planted one signs no browser in',
    async (_case, plant) => {
      const attacker = (await anAttacker()).context;
      const planted = (await plant(attacker)) ?? '';
      const context = await newContext();
      const page = await context.newPage();
      await page.goto(authorizeUrl());
      const cookie = { name: 'grantry-session', value: planted, url: grantry.issuer };
      await context.addCookies([cookie]);
      await comeAs(page, 'ada');
      await stateAtClient(page);
      const [shard, random] = (await sessionOf(context))?.split('.') ?? [];
      expect([shard, random]).toEqual([expect.stringMatching(/^\d{3}$/), expect.stringMatching(/^[\w-]{43}$/)]);
      expect(planted).not.toContain(random);
      expect(await personOf(page)).toBe('ada');
      await attacker.addCookies([cookie]);
      expect(await personOf(await attacker.newPage())).toBeUndefined();
    },
  );

  describe('under an https issuer, whose cookies a sibling plants for the parent domain', () => {
    const FOR_PARENT = `Domain=${PARENT}; Path=/; Secure`;
    const bare = (name: string) => name.replace('__Host-', '');

    it.each<[string, boolean, (name: string, value: string) => string]>([
      ['to the letter', false, (name, value) => `${name}=${value}; ${FOR_PARENT}`],
      ['without the prefix', true, (name, value) => `${bare(name)}=${value}; ${FOR_PARENT}`],
      ['with another prefix', true, (name, value) => `__Secure-${bare(name)}=${value}; ${FOR_PARENT}`],
      // A server that trims more than HTTP does would read the name itself.
      ['behind a no-break space', true, (name, value) => `\u00a0${name}=${value}; ${FOR_PARENT}`],
    ])('%s (sent here: %s) → none of them is read', async (_case, isSent, plant) => {
      const { context: attacker, callback } = await anAttacker(secured);
      const cookies = await attacker.cookies(siblings.issuer);
      expect(cookies.map(({ name }) => name.replace(/away-.*/, 'away')).toSorted()).toEqual(
        ['away', 'browser', 'session'].map((name) => `__Host-grantry-${name}`),
      );
      siblings.planted = cookies.map(({ name, value }) => plant(name, value));
      const context = await newContext();
      const page = await context.newPage();
      await page.goto(siblings.hostile);

      expect((await page.goto(callback))?.status()).toBe(400);
      for (const { value } of cookies) expect(siblings.sent.includes(value)).toBe(isSent);
      expect(await personOf(page, secured)).toBeUndefined();
      await page.getByRole('button', { name: 'Corp' }).click();
      expect(await comeAs(page, 'ada')).toBe(302);
      expect(await personAt(page)).toBe('ada');
    });
  });
});

/** The provider shows a page with a link for each person; the code says who came, and by which request. */
function askWhoComes(upstream: ScriptedProvider): void {
  upstream.answers.set('/authorize', (request, response) => {
    const asked = new URL(request.url ?? '', upstream.issuer).searchParams;
    const links = ['ada', 'mallory'].map((name) => {
      const answer = new URLSearchParams({ code: `${name}.${asked.get('nonce')}`, state: asked.get('state') ?? '' });
      return `<a href="${asked.get('redirect_uri')}?${`${answer}`.replaceAll('&', '&amp;')}">${name}</a>`;
    });
    response.writeHead(200, { 'content-type': 'text/html' }).end(links.join(' '));
  });
  const redeem = async (form: URLSearchParams, response: ServerResponse) => {
    const [name = '', nonce = ''] = form.get('code')?.split('.') ?? [];
    upstream.redeemed.push({ form, authorization: undefined });
    upstream.nonce = nonce;
    upstream.claims = { sub: `${name}-1`, preferred_username: name, name: name.toUpperCase() };
    upstream.userinfo = { sub: `${name}-1` };
    const id_token = await upstream.idToken();
    json(response, { access_token: 'at', token_type: 'Bearer', expires_in: 60, id_token });
  };
  upstream.answers.set('/token', (request, response) => {
    void text(request).then((form) => redeem(new URLSearchParams(form), response));
  });
}
