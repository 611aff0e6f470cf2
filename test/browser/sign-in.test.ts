import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { type Grantry, PKCE, startGrantry } from '../grantry.ts';
import { aClient } from '../oauth/a-client.ts';
import { aResource } from '../oauth/a-resource.ts';
import { until } from '../until.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';

const PASSWORD = 'correct horse battery';

const NATIVE = aClient({
  uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0002',
  clientId: 'shop.native',
  displayName: 'Shop for the desk',
  authMethod: 'none',
  grantTypes: ['authorization_code', 'refresh_token'],
  redirectUris: ['http://127.0.0.1/callback', 'http://[::1]/callback', 'com.example.app:/callback'],
});

const NOTES = aResource({
  displayName: { text: 'Notes', translations: { de: 'Notizen' } },
  scopes: [
    { name: 'notes.read', description: { text: 'Read your notes', translations: { de: 'Ihre Notizen lesen' } } },
    { name: 'notes.write', description: { text: undefined, translations: {} } },
  ],
});
const PHOTOS = aResource({
  name: 'photos',
  identifier: 'https://a-rather-long-name-of-a-host.photos.example/with/a/path/too',
  displayName: { text: 'Photos \u05d0\u05d1\u05d2', translations: {} },
  scopes: [{ name: 'photos.read', description: { text: 'See your photos', translations: { de: 'Ihre Fotos sehen' } } }],
});

/** As long as they may be, with nothing to break a line at. */
const EMAIL = `${'demo.'.repeat(12)}person@shop.example`;
const GROUPS = ['g'.repeat(254), ...Array.from({ length: 24 }, (_, index) => `team-${index}`)];

function web(port: number) {
  return aClient({
    displayName: 'Shop & Sons',
    redirectUris: [`http://localhost:${port}/callback`],
    clientUri: 'https://shop.example/',
    policyUri: 'https://shop.example/privacy',
    tosUri: 'https://shop.example/terms',
    scopes: ['openid', 'profile', 'email', 'groups', 'shop/read', 'shop/write'],
    defaultAudience: 'https://api.shop.example/',
    resources: [NOTES, PHOTOS].map(({ name }) => ({ namespace: undefined, name, scopes: undefined })),
  });
}

describe.skipIf(NO_CHROMIUM)('a sign-in in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;
  let grantry: Grantry;
  let passwordHash: string;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    [browser, site] = await Promise.all([launchChromium(), startClientSite()]);
    passwordHash = await hashPassword(PASSWORD);
  });

  // A server for each test: consent that one person gave would let the next test through. It ends after the oracle spoke.
  beforeEach(async ({ onTestFinished }) => {
    onTestFinished(() => grantry.stop());
    grantry = await startGrantry({
      owners: new LocalUsers({
        clock: systemClock,
        users: [
          { username: 'demo', displayName: 'Demo Person', passwordHash, email: EMAIL, groups: GROUPS },
          { username: 'ada', displayName: 'Ada', passwordHash, email: 'ada@shop.example', groups: ['engineering'] },
        ],
      }),
      rateLimits: true,
      clients: [web(site.port), NATIVE],
      resources: [NOTES, PHOTOS],
    });
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });

  /** A fresh browser profile; without scripts by default. Collects what Chromium complains about. */
  async function newPage(
    options: Parameters<Browser['newContext']>[0] = {},
  ): Promise<{ page: Page; complaints: string[] }> {
    const context = await browser.newContext({ javaScriptEnabled: false, ...options });
    contexts.push(context);
    context.setDefaultTimeout(5000);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    return { page, complaints };
  }

  function authorizeUrl(changes: Readonly<Record<string, string>> = {}, resources: readonly string[] = []): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'shop.web',
      redirect_uri: `http://localhost:${site.port}/callback`,
      scope: 'shop/read',
      state: 'some-state',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
      ...changes,
    });
    for (const resource of resources) query.append('resource', resource);
    return `${grantry.issuer}/authorize?${query}`;
  }

  async function signIn(page: Page, password = PASSWORD): Promise<void> {
    await page.getByLabel('Username', { exact: true }).fill('demo');
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  async function atConsent(page: Page, changes: Readonly<Record<string, string>> = {}): Promise<void> {
    await page.goto(authorizeUrl(changes));
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  }

  const BOTH = [NOTES.identifier, PHOTOS.identifier];
  const AT_BOTH = { scope: 'notes.read notes.write photos.read' };

  async function atGermanConsent(page: Page): Promise<void> {
    await page.goto(authorizeUrl(AT_BOTH, BOTH));
    await page.getByLabel('Benutzername', { exact: true }).fill('demo');
    await page.getByLabel('Passwort', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByRole('button', { name: 'Erlauben' }).waitFor();
  }

  it('speaks German to a browser that does, also of the resources', async () => {
    const { page } = await newPage({ locale: 'de-AT' });
    await atGermanConsent(page);
    const headings = await page.getByRole('heading', { level: 3 }).allInnerTexts();
    expect(headings.map((heading) => heading.split('\n')[0]?.trim())).toEqual(['Notizen', 'Photos \u05d0\u05d1\u05d2']);
    await page.locator('section').getByText('Ihre Notizen lesen').waitFor();
    await page.getByText('Einzelheiten').click();
    await page.getByText(PHOTOS.identifier).waitFor();
    await page.getByRole('button', { name: 'Erlauben' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
  });

  it('goes from the login over the consent page to the client, without scripts', async () => {
    const { page, complaints } = await newPage();
    await atConsent(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    const said = new URL(page.url()).searchParams;
    expect(said.get('code')).toMatch(/^ac1\./);
    expect(said.get('state')).toBe('some-state');
    expect(said.get('iss')).toBe(grantry.issuer);
    expect(complaints).toEqual([]);
  });

  it('says what is wrong with a wrong password, in focus, and lets the person try again', async () => {
    const { page } = await newPage();
    await page.goto(authorizeUrl());
    await signIn(page, 'wrong');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await page.locator(':focus').getAttribute('role')).toBe('alert');
    expect(await page.getByLabel('Username', { exact: true }).inputValue()).toBe('demo');
    expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('');
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  });

  it('given a wrong password, the right one, the ways back and a reload → each page again; what was sent is not sent again', async () => {
    const { page } = await newPage();
    await page.goto(authorizeUrl());
    await signIn(page, 'wrong');
    await page.getByRole('alert').waitFor();
    await page.reload();
    await page.getByRole('alert').waitFor();
    const refused = page.url();
    expect(refused).toMatch(/\/login\?refused=[\w-]+$/);
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await page.goBack();
    expect(page.url()).toBe(refused);
    await page.reload();
    expect(await page.getByRole('textbox', { name: 'Username' }).inputValue()).toBe('demo');
    await page.goForward();
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await page.goBack();
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
    const outcomes = grantry
      .logs()
      .flatMap(({ route, method, reason }) => (route === 'login' ? [[method, reason]] : []));
    expect(outcomes.filter(([method]) => method === 'POST')).toEqual([
      ['POST', 'credentials_wrong'],
      ['POST', undefined],
      ['POST', undefined],
    ]);
  });

  it('works by keyboard alone', async () => {
    const { page } = await newPage();
    await page.goto(authorizeUrl());
    expect(await page.locator(':focus').getAttribute('name')).toBe('username');
    await page.keyboard.type('demo');
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    const reached: (string | null)[] = [];
    for (let presses = 0; presses < 3; presses += 1) {
      await page.keyboard.press('Tab');
      const focused = page.locator(':focus');
      reached.push((await focused.getAttribute('value')) ?? (await focused.getAttribute('href')));
    }
    expect(reached).toEqual(['other_account', 'deny', 'allow']);
    await page.keyboard.press('Enter');
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
  });

  it('comes back with access_denied after Deny', async () => {
    const { page } = await newPage();
    await atConsent(page);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    const said = new URL(page.url()).searchParams;
    expect([said.get('error'), said.get('state'), said.has('code')]).toEqual(['access_denied', 'some-state', false]);
  });

  it('starts over with another account, for the same request', async () => {
    const { page } = await newPage();
    await atConsent(page);
    await page.getByRole('button', { name: 'Use another account' }).click();
    await page.getByLabel('Password', { exact: true }).waitFor();
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    expect(new URL(page.url()).searchParams.get('state')).toBe('some-state');
  });

  it('gives no second code for the way back', async () => {
    const { page } = await newPage();
    await atConsent(page);
    const consent = page.url();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    const repeat = await page.goto(consent.replace('/consent/', '/authorize/resume/'));
    expect(repeat?.status()).toBe(400);
    await page.getByRole('heading', { name: 'This page cannot be used any more' }).waitFor();
  });

  describe('is not decided from elsewhere', () => {
    /** A page elsewhere whose one button posts the decision with the right csrf value, as if that had leaked. */
    async function attack(page: Page, host: string, policy: string): Promise<number | undefined> {
      const consent = page.url();
      const csrf = await page.locator('form.choices input[name=csrf]').getAttribute('value');
      const target = `<form method="post" action="${consent}"><input type="hidden" name="csrf" value="${csrf}">`;
      const button = '<button name="decision" value="allow">You have won</button></form>';
      site.serve('/attack', `<meta name="referrer" content="${policy}">${target}${button}`);
      await page.goto(`http://${host}:${site.port}/attack`);
      const [answer] = await Promise.all([
        page.waitForResponse((response) => response.request().method() === 'POST'),
        page.getByRole('button').click(),
      ]);
      await page.goto(consent.replace('/consent/', '/authorize/resume/'));
      expect(page.url()).not.toContain('code=');
      return answer.status();
    }

    it.each([
      ['another site', 'localhost', 'unsafe-url'],
      ['another site that hides its origin', 'localhost', 'no-referrer'],
      ['another origin of the same site', '127.0.0.1', 'unsafe-url'],
      ['another origin of the same site that hides it', '127.0.0.1', 'no-referrer'],
    ])('%s', async (_what, host, policy) => {
      const { page } = await newPage();
      await atConsent(page);
      expect(await attack(page, host, policy)).toBe(400);
    });
  });

  it('begun by a form on another site → has the session, by the redirect to the GET', async () => {
    const { page, complaints } = await newPage();
    await atConsent(page, { scope: 'openid' });
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    const fields = [...new URL(authorizeUrl({ scope: 'openid', prompt: 'none' })).searchParams].map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
    );
    const form = `<form method="post" action="${grantry.issuer}/authorize">${fields.join('')}<button>Go</button></form>`;
    site.serve('/start', form);
    await page.goto(`http://localhost:${site.port}/start`);
    await page.getByRole('button', { name: 'Go' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
    expect(complaints).toEqual([]);
  });

  describe('reaches the redirect address through the content security policy', () => {
    const native = (redirectUri: string) => ({ client_id: 'shop.native', redirect_uri: redirectUri });

    it.each(['127.0.0.1', '[::1]'])('http at %s', async (host) => {
      const { page, complaints } = await newPage();
      await atConsent(page, native(`http://${host}:${site.port}/callback`));
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.waitForURL(`http://${host}:${site.port}/callback?code=**`);
      expect(complaints).toEqual([]);
    });

    it('straight from the login form, when consent was given before', async () => {
      const { page, complaints } = await newPage();
      await atConsent(page);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.waitForURL(`http://localhost:${site.port}/callback?**`);
      await page.context().clearCookies();
      await page.goto(authorizeUrl());
      await signIn(page);
      await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
      expect(complaints).toEqual([]);
    });

    it('the private-use scheme of an app', async () => {
      const { page } = await newPage();
      await atConsent(page, native('com.example.app:/callback'));
      const tried: string[] = [];
      page.on('requestfailed', (request) => tried.push(request.url()));
      await page.getByRole('button', { name: 'Allow' }).click();
      await until('it goes there', () => tried.length > 0);
      expect(tried[0]).toMatch(/^com\.example\.app:\/callback\?code=ac1\./);
    });
  });

  describe('looks like a product', () => {
    const scopes = { scope: 'openid email shop/read shop/write' };
    const views: Readonly<Record<string, (page: Page) => Promise<void>>> = {
      login: async (page) => {
        await page.goto(authorizeUrl());
      },
      'login-wrong-password': async (page) => {
        await page.goto(authorizeUrl());
        await signIn(page, 'wrong');
        await page.getByRole('alert').waitFor();
      },
      'login-empty': async (page) => {
        await page.goto(authorizeUrl());
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('alert').waitFor();
      },
      'login-too-many': async (page) => {
        await page.goto(authorizeUrl());
        for (let attempt = 0; attempt < 6; attempt += 1) await signIn(page, 'wrong');
        await page.getByText('too many attempts').waitFor();
      },
      consent: (page) => atConsent(page, scopes),
      'consent-native': (page) =>
        atConsent(page, { client_id: 'shop.native', redirect_uri: 'com.example.app:/callback' }),
      'consent-resource': async (page) => {
        await page.goto(authorizeUrl({ scope: 'notes.read notes.write' }, [NOTES.identifier]));
        await signIn(page);
        await page.getByRole('button', { name: 'Allow' }).waitFor();
      },
      'consent-person': (page) => atConsent(page, { scope: 'openid profile email groups' }),
      'consent-resources-de': atGermanConsent,
      'consent-wider': async (page) => {
        await atConsent(page, { scope: 'openid shop/read' });
        await page.getByRole('button', { name: 'Allow' }).click();
        await page.waitForURL(`http://localhost:${site.port}/callback?**`);
        await page.goto(authorizeUrl(scopes));
      },
      'error-redirect-address': async (page) => {
        await page.goto(authorizeUrl({ redirect_uri: 'https://evil.example/' }));
      },
      'error-start-again': async (page) => {
        await page.goto(`${grantry.issuer}/consent/${'A'.repeat(43)}`);
      },
      'error-not-found': async (page) => {
        await page.goto(`${grantry.issuer}/nowhere`);
      },
    };
    const looks = [
      ['light', 'light', { width: 1280, height: 860 }],
      ['dark', 'dark', { width: 1280, height: 860 }],
      ['narrow', 'light', { width: 320, height: 640 }],
    ] as const;

    it.each(Object.keys(views))(
      '%s: axe finds nothing in light and dark, and nothing is cut off at 320 px',
      async (view) => {
        // axe itself is a script, so this one context has them; the page has none.
        const locale = view.endsWith('-de') ? 'de-AT' : 'en-US';
        const { page, complaints } = await newPage({ javaScriptEnabled: true, locale });
        await views[view]?.(page);
        for (const [look, colorScheme, viewport] of looks) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(viewport);
          await page.screenshot({ path: `${SCREENSHOTS}${view}-${look}.png`, fullPage: true });
          if (look !== 'narrow') expect(await axeFindings(page)).toEqual([]);
          const size: unknown = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]');
          expect(size).toEqual([viewport.width, viewport.width]);
        }
        expect(complaints.filter((complaint) => !/status of (400|404|422|429)/.test(complaint))).toEqual([]);
      },
    );

    it.each([
      [1280, 800],
      [375, 667],
    ])('given the four scopes of a plain sign-in at %d × %d → Allow is above the fold', async (width, height) => {
      const { page } = await newPage({ viewport: { width, height } });
      await page.goto(authorizeUrl({ scope: 'openid profile email groups' }));
      await page.getByLabel('Username', { exact: true }).fill('ada');
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
      const box = await page.getByRole('button', { name: 'Allow' }).boundingBox();
      expect((box?.y ?? height) + (box?.height ?? 0)).toBeLessThanOrEqual(height);
    });

    it('loads nothing from elsewhere', async () => {
      const { page } = await newPage();
      const requested: string[] = [];
      page.on('request', (request) => requested.push(new URL(request.url()).origin));
      await atConsent(page, scopes);
      expect(new Set(requested)).toEqual(new Set([grantry.issuer]));
    });
  });
});
