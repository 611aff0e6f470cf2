// Signing out in a real browser: what pages of other origins can do to the session, and that the browser arrives where the client
// wants it. Clients and attackers are on another site (localhost), or on another origin of the same site (127.0.0.1).

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { secretVerifier } from '../../src/oauth/registry/client-secret.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { basic, type Grantry, PKCE, startGrantry } from '../grantry.ts';
import { aClient } from '../oauth/a-client.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';

const PASSWORD = 'correct horse battery';
const SECRET = 'a-secret-of-the-shop-that-is-long-enough';
const uid = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001';

function web(port: number) {
  return aClient({
    uid,
    secretVerifiers: [secretVerifier(uid, SECRET)],
    displayName: 'Shop & Sons',
    redirectUris: [`http://localhost:${port}/callback`],
    postLogoutRedirectUris: [`http://localhost:${port}/bye`],
    scopes: ['openid'],
    consent: 'Skip',
    idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 600 },
  });
}

describe.skipIf(NO_CHROMIUM)('a sign-out in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;
  let grantry: Grantry;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  let bye: string;

  beforeAll(async () => {
    [browser, site] = await Promise.all([launchChromium(), startClientSite()]);
    bye = `http://localhost:${site.port}/bye`;
    const users = [{ username: 'demo', passwordHash: await hashPassword(PASSWORD) }];
    grantry = await startGrantry({
      owners: new LocalUsers({ clock: systemClock, users }),
      clients: [web(site.port)],
    });
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });
  beforeEach(async () => {
    // A profile of its own, without scripts but for axe.
    context = await browser.newContext({ javaScriptEnabled: false, locale: 'en-US' });
    context.setDefaultTimeout(5000);
    page = await context.newPage();
    complaints = [];
    page.on('console', (message) => complaints.push(message.text()));
  });
  afterEach(() => context.close());

  function authorizeUrl(changes: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'shop.web',
      redirect_uri: `http://localhost:${site.port}/callback`,
      scope: 'openid',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
      ...changes,
    });
    return `${grantry.issuer}/authorize?${query}`;
  }

  /** Signs the person in. @returns the ID token that the client gets */
  async function signIn(): Promise<string> {
    await page.goto(authorizeUrl());
    await page.getByLabel('Username').fill('demo');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
    const code = new URL(page.url()).searchParams.get('code') ?? '';
    const redirect_uri = `http://localhost:${site.port}/callback`;
    const form = { grant_type: 'authorization_code', code, redirect_uri, code_verifier: PKCE.verifier };
    const headers = { authorization: basic('shop.web', SECRET) };
    const response = await grantry.post('/token', form, { headers });
    return ((await response.json()) as { readonly id_token: string }).id_token;
  }

  async function isSignedIn(): Promise<boolean> {
    await page.goto(authorizeUrl({ prompt: 'none' }));
    return new URL(page.url()).searchParams.has('code');
  }

  /** A page of another origin whose one button posts this. */
  async function postFrom(
    host: string,
    path: string,
    fields: Readonly<Record<string, string>>,
    referrer = 'unsafe-url',
  ) {
    const inputs = Object.entries(fields).map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
    );
    const form = `<form method="post" action="${grantry.issuer}${path}">${inputs.join('')}<button>Go</button></form>`;
    site.serve('/form', `<meta name="referrer" content="${referrer}">${form}`);
    await page.goto(`http://${host}:${site.port}/form`);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === 'POST'),
      page.getByRole('button', { name: 'Go' }).click(),
    ]);
    return answer.status();
  }

  const ORIGINS = [
    ['another site', 'localhost'],
    ['another origin of the same site', '127.0.0.1'],
  ] as const;

  it.each(ORIGINS)(
    'by a form of %s with the hint → ends the session, and the browser is at the client',
    async (_, host) => {
      const id_token_hint = await signIn();
      const fields = { id_token_hint, post_logout_redirect_uri: bye, state: 's' };
      expect(await postFrom(host, '/logout', fields)).toBe(303);
      await page.waitForURL(`${bye}?state=s`);
      expect(await isSignedIn()).toBe(false);
      expect(complaints).toEqual([]);
    },
  );

  it.each(ORIGINS)(
    'by a form of %s without a hint → asks, and the session lives until the person says so',
    async (_, host) => {
      await signIn();
      const fields = { client_id: 'shop.web', post_logout_redirect_uri: bye };
      expect(await postFrom(host, '/logout', fields)).toBe(303);
      await page.getByRole('heading', { name: 'Sign out?' }).waitFor();
      const question = page.url();
      expect(await isSignedIn()).toBe(true);
      await page.goto(question);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL(bye);
      expect(await isSignedIn()).toBe(false);
      expect(complaints).toEqual([]);
    },
  );

  it.each([
    ['another site', 'localhost', 'unsafe-url'],
    ['another site that hides its origin', 'localhost', 'no-referrer'],
    ['another origin of the same site', '127.0.0.1', 'unsafe-url'],
    ['another origin of the same site that hides it', '127.0.0.1', 'no-referrer'],
  ])('is not confirmed by a form of %s, with the very value of the question', async (_, host, referrer) => {
    await signIn();
    await page.goto(`${grantry.issuer}/logout`);
    const csrf = (await page.locator('input[name=csrf]').getAttribute('value')) ?? '';
    expect(await postFrom(host, '/logout/confirm', { csrf }, referrer)).toBe(400);
    expect(await isSignedIn()).toBe(true);
  });

  it('is not done, nor asked in a frame, by what a page of another origin loads', async () => {
    await signIn();
    const address = `${grantry.issuer}/logout?client_id=shop.web`;
    site.serve(
      '/loads',
      `<img src="${address}"><link rel="stylesheet" href="${address}"><iframe src="${address}"></iframe>`,
    );
    for (const [, host] of ORIGINS) {
      await page.goto(`http://${host}:${site.port}/loads`);
      for (const frame of page.frames().slice(1)) expect(await frame.getByRole('button').count()).toBe(0);
      expect(await isSignedIn()).toBe(true);
    }
  });

  it('asks and ends on pages that axe finds nothing on, in light and dark, and that fit 320 px', async () => {
    await context.close();
    context = await browser.newContext({ locale: 'en-US' });
    context.setDefaultTimeout(5000);
    page = await context.newPage();
    await signIn();
    await page.goto(`${grantry.issuer}/logout`);
    for (const view of ['logout-question', 'logout-done']) {
      for (const [look, colorScheme, width] of [
        ['light', 'light', 1280],
        ['dark', 'dark', 1280],
        ['narrow', 'light', 320],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 860 });
        await page.screenshot({ path: `${SCREENSHOTS}${view}-${look}.png`, fullPage: true });
        if (look !== 'narrow') expect(await axeFindings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      }
      if (view === 'logout-question') {
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByRole('heading', { name: 'signed out' }).waitFor();
      }
    }
  });
});
