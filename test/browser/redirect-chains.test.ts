// Where a form of ours ends in Chromium, which holds the whole chain of redirects after it against `form-action`: at the last
// address of an application or a provider that redirects on, and nowhere else from a page whose forms end at ours.

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { CertificateMaker } from '../client-certificates.ts';
import { type Grantry, PKCE, startGrantry } from '../grantry.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { ScriptedProvider } from '../login/upstream/scripted-provider.ts';
import { aClient } from '../oauth/a-client.ts';
import { until } from '../until.ts';
import { launchChromium, NO_CHROMIUM } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';

const PASSWORD = 'correct horse battery';

describe.skipIf(NO_CHROMIUM)('a form of ours in Chromium', () => {
  let browser: Browser;
  /** The application, over https. */
  let application: ClientSite;
  let elsewhere: ClientSite;
  let upstream: ScriptedProvider;
  let grantry: Grantry;
  let passwordHash: string;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    const maker = new CertificateMaker();
    const { certificate: cert, key } = maker.make({ extensions: ['subjectAltName=DNS:*.shop.localhost'] });
    maker.remove();
    [browser, application, elsewhere, upstream] = await Promise.all([
      launchChromium(),
      startClientSite({ cert, key }),
      startClientSite(),
      ScriptedProvider.start(),
    ]);
    upstream.answers.set('/authorize', (_request, response) =>
      response.writeHead(302, { location: atApp('/hop') }).end(),
    );
    passwordHash = await hashPassword(PASSWORD);
  });
  // A server for each test: consent that one person gave would let the next test through.
  beforeEach(async ({ onTestFinished }) => {
    onTestFinished(() => grantry.stop());
    const client = aClient({
      redirectUris: [atApp('/hop')],
      postLogoutRedirectUris: [atApp('/hop')],
      scopes: ['openid', 'shop/read'],
    });
    grantry = await startGrantry({
      owners: new LocalUsers({ clock: systemClock, users: [{ username: 'demo', passwordHash }] }),
      clients: [client],
    });
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });
  afterAll(async () => {
    await browser?.close();
    await application?.close();
    await elsewhere?.close();
    upstream?.stop();
  });

  const atApp = (path: string) => `https://app.shop.localhost:${application.port}${path}`;

  async function newPage(): Promise<{ page: Page; requested: string[]; complaints: string[] }> {
    const context = await browser.newContext({ javaScriptEnabled: false, locale: 'en-US', ignoreHTTPSErrors: true });
    contexts.push(context);
    context.setDefaultTimeout(5000);
    const page = await context.newPage();
    const requested: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => complaints.push(message.text()));
    return { page, requested, complaints };
  }

  function authorizeUrl(): string {
    const query = {
      response_type: 'code',
      client_id: 'shop.web',
      redirect_uri: atApp('/hop'),
      scope: 'openid',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    };
    return `${grantry.issuer}/authorize?${new URLSearchParams(query)}`;
  }

  const press = (page: Page, name: string) => page.getByRole('button', { name }).click({ noWaitAfter: true });

  async function signIn(page: Page, url = authorizeUrl()): Promise<void> {
    await page.goto(url);
    await page.getByLabel('Username').fill('demo');
    await page.getByLabel('Password').fill(PASSWORD);
    await press(page, 'Sign in');
  }

  /** Where an application, or a provider, sends the browser on: the last address, without the query. */
  const CHAINS: readonly [what: string, begin: () => string][] = [
    [
      'a private-use scheme',
      () => {
        application.sendOn('/hop', 'com.shop.desktop:/done');
        return 'com.shop.desktop:/done';
      },
    ],
    [
      'http at another port',
      () => {
        const end = `http://app.shop.localhost:${elsewhere.port}/done`;
        application.sendOn('/hop', end);
        return end;
      },
    ],
    [
      'another host, and from there to a third one',
      () => {
        const end = `http://[::1]:${elsewhere.port}/done`;
        application.sendOn('/hop', `https://other.shop.localhost:${application.port}/hop2`);
        application.sendOn('/hop2', end);
        return end;
      },
    ],
  ];

  /** The last press of a person, and what the address then holds. */
  const WAYS: readonly [what: string, holds: string, go: (page: Page) => Promise<void>][] = [
    [
      'Allow',
      'code=',
      async (page) => {
        await signIn(page);
        await press(page, 'Allow');
      },
    ],
    [
      'Deny',
      'error=access_denied',
      async (page) => {
        await signIn(page);
        await press(page, 'Deny');
      },
    ],
    [
      'a sign-in with remembered consent',
      'code=',
      async (page) => {
        const former = await page.context().newPage();
        await signIn(former);
        await press(former, 'Allow');
        await until('the first code', () => grantry.logs().some(({ route }) => route === 'resume'));
        await page.context().clearCookies();
        await signIn(page);
      },
    ],
    [
      'a sign-out',
      'state=s',
      async (page) => {
        await signIn(page, `${grantry.issuer}/account`);
        await page.getByRole('heading', { name: 'Your account' }).waitFor();
        const query = { client_id: 'shop.web', post_logout_redirect_uri: atApp('/hop'), state: 's' };
        await page.goto(`${grantry.issuer}/logout?${new URLSearchParams(query)}`);
        await press(page, 'Sign out');
      },
    ],
    [
      'the button of a provider',
      '',
      async (page) => {
        await grantry.setProviders([anOidcProvider({ issuer: upstream.issuer })]);
        await page.goto(`${grantry.issuer}/account`);
        await press(page, 'Corp');
      },
    ],
  ];

  describe.each(CHAINS)('redirected on to %s', (_chain, begin) => {
    it.each(WAYS)('after %s → ends there', async (_way, holds, go) => {
      const end = begin();
      const { page, requested, complaints } = await newPage();
      await go(page);
      const ends = () => requested.filter((url) => url.startsWith(end));
      await until('it ends there', () => ends().some((url) => url.includes(holds)) || complaints.length > 0);
      expect(complaints.filter((complaint) => complaint.includes('form'))).toEqual([]);
      expect(ends().at(-1)).toContain(holds);
    });
  });

  /** The pages of ours come through a proxy that puts a form into them. */
  async function inject(page: Page, action: string): Promise<void> {
    await page.route(`${grantry.issuer}/**`, async (route) => {
      if (route.request().method() !== 'GET' || route.request().resourceType() !== 'document') return route.fallback();
      const response = await route.fetch();
      const form = `<form method="post" action="${action}"><input name="q" value="stolen"><button>Win</button></form>`;
      await route.fulfill({ response, body: (await response.text()).replace('<main', `${form}<main`) });
    });
  }

  it.each(['/account', '/account/sessions', '/account/applications', '/logout'])(
    'that is injected into %s → posts nowhere',
    async (path) => {
      const { page, requested, complaints } = await newPage();
      await signIn(page, `${grantry.issuer}/account`);
      await page.getByRole('heading', { name: 'Your account' }).waitFor();
      await inject(page, `http://127.0.0.1:${elsewhere.port}/stolen`);
      await page.goto(`${grantry.issuer}${path}`);
      await press(page, 'Win');
      await until('Chromium refuses', () => complaints.some((complaint) => complaint.includes('form-action')));
      expect([...requested, ...elsewhere.seen].filter((url) => url.includes('/stolen'))).toEqual([]);
      expect(page.url()).toBe(`${grantry.issuer}${path}`);
    },
  );
});
