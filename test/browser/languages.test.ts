// Every page in the languages that are not English, with a brand and all that belongs to it, as a person walks through them in Chromium: light and dark, narrow
// and wide. On a machine without a Chinese font the characters are boxes, of about the same width.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { accentedStylesheet } from '../../src/http/pages/accent.ts';
import { brandLogo } from '../../src/http/pages/brand.ts';
import { GERMAN } from '../../src/http/pages/german.ts';
import { SIMPLIFIED_CHINESE } from '../../src/http/pages/simplified-chinese.ts';
import type { Texts } from '../../src/http/pages/texts.ts';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { isUser } from '../../src/login/local/user-entry.ts';
import { parseUsers } from '../../src/login/local/users-yaml.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { type Grantry, PKCE, startGrantry } from '../grantry.ts';
import { SVG } from '../http/pages/logos.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { ScriptedProvider } from '../login/upstream/scripted-provider.ts';
import { aClient } from '../oauth/a-client.ts';
import { aResource } from '../oauth/a-resource.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';

const PASSWORD = 'correct horse battery';
/** As long as it may be, with nothing to break a line at. */
const GROUP = 'g'.repeat(254);
const NOTES = aResource({
  identifier: 'https://a-rather-long-name-of-a-host.notes.example/with/a/path/too',
  displayName: { text: 'Notes', translations: { de: 'Notizen', 'zh-Hans': '笔记' } },
  scopes: [
    {
      name: 'notes.read',
      description: { text: 'Read', translations: { de: 'Ihre Notizen lesen', 'zh-Hans': '查看您的笔记' } },
    },
  ],
});
const SCOPE = 'openid profile email groups notes.read offline_access';

/** With hardly more contrast than is needed. */
const STYLESHEET = accentedStylesheet({ light: '#df001a', dark: '#6b86ff' });

/** The four looks of a page; axe checks both schemes and both widths. */
const LOOKS = [
  { colorScheme: 'light', width: 1280, isChecked: true },
  { colorScheme: 'light', width: 320, isChecked: false },
  { colorScheme: 'dark', width: 1280, isChecked: false },
  { colorScheme: 'dark', width: 320, isChecked: true },
] as const;

describe.skipIf(NO_CHROMIUM)('every page in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;
  let upstream: ScriptedProvider;
  let passwordHash: string;

  beforeAll(async () => {
    [browser, site, upstream, passwordHash] = await Promise.all([
      launchChromium(),
      startClientSite(),
      ScriptedProvider.start(),
      hashPassword(PASSWORD),
    ]);
    // People who come there do not sign in.
    upstream.answers.set('/authorize', (request, response) => {
      const asked = new URL(request.url ?? '', upstream.issuer).searchParams;
      const answer = new URLSearchParams({ error: 'access_denied', state: asked.get('state') ?? '' });
      response.writeHead(302, { location: `${asked.get('redirect_uri')}?${answer}` }).end();
    });
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    upstream?.stop();
  });

  async function brandedServer(): Promise<Grantry> {
    const redirectUris = [`http://localhost:${site.port}/callback`];
    const shop = {
      displayName: 'Shop & Söhne',
      redirectUris,
      scopes: SCOPE.split(' ').filter((it) => it !== 'notes.read'),
    };
    const grantTypes = ['authorization_code', 'refresh_token'];
    const resources = [{ namespace: undefined, name: NOTES.name, scopes: undefined }];
    const signIn = { identityProviders: [], groups: [GROUP] };
    const email = `${'demo.'.repeat(12)}person@shop.example`;
    const users = [{ username: 'demo', displayName: '王小明', passwordHash, email, groups: [GROUP] }];
    const grantry = await startGrantry({
      owners: new LocalUsers({ clock: systemClock, users: parseUsers(users).filter(isUser) }),
      clients: [
        aClient(Object.assign({ grantTypes, resources, defaultAudience: NOTES.identifier, signIn }, shop)),
        aClient({
          uid: 'uid-of-later',
          clientId: 'later',
          redirectUris,
          signIn: { identityProviders: ['later'], groups: [] },
        }),
        aClient({ uid: 'uid-of-stranger', clientId: 'stranger', admittedBy: 'baseline', redirectUris }),
      ],
      resources: [NOTES],
      brand: {
        name: 'Corp',
        logo: await brandLogo(SVG),
        stylesheet: STYLESHEET,
        help: { url: 'https://help.example.com/', text: 'Hilfe bei der Anmeldung · 登录帮助' },
        hasFooter: false,
      },
    });
    onTestFinished(() => grantry.stop());
    await grantry.setProviders([anOidcProvider({ issuer: upstream.issuer, displayName: 'Corp 企业账号' })]);
    return grantry;
  }

  /** Each page by its name, in the order in which one person comes to them. */
  function journey(page: Page, { issuer }: Grantry, texts: Texts): Readonly<Record<string, () => Promise<unknown>>> {
    const authorizeUrl = (changes: Readonly<Record<string, string>> = {}) => {
      const request = {
        response_type: 'code',
        client_id: 'shop.web',
        redirect_uri: `http://localhost:${site.port}/callback`,
        scope: SCOPE,
        prompt: 'consent',
        code_challenge: PKCE.challenge,
        code_challenge_method: 'S256',
      };
      return `${issuer}/authorize?${new URLSearchParams(Object.assign(request, changes))}`;
    };
    const { login, consent, logout, account } = texts;
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    const signIn = async (password: string) => {
      await page.getByLabel(login.username, { exact: true }).fill('demo');
      await page.getByLabel(login.password, { exact: true }).fill(password);
      await press(login.submit);
    };
    const signInElsewhere = async () => {
      const context = await browser.newContext();
      onTestFinished(() => context.close());
      const other = await context.newPage();
      await other.goto(`${issuer}/account`);
      await other.locator('summary').click();
      await other.locator('[name=username]').fill('demo');
      await other.locator('[name=password]').fill(PASSWORD);
      await other.locator('[name=password]').press('Enter');
      await other.waitForURL(`${issuer}/account`);
    };
    return {
      'error-redirect-address': () => page.goto(authorizeUrl({ redirect_uri: 'https://evil.example/' })),
      'error-client': () => page.goto(authorizeUrl({ client_id: 'none' })),
      'error-with-link': () => page.goto(authorizeUrl({ client_id: 'stranger' })),
      'error-start-again': () => page.goto(`${issuer}/consent/${'A'.repeat(43)}`),
      'error-not-found': () => page.goto(`${issuer}/nowhere`),
      'login-no-way': () => page.goto(authorizeUrl({ client_id: 'later', scope: '' })),
      login: () => page.goto(authorizeUrl()),
      'login-unfolded': () => page.getByText(login.byPassword).click(),
      'login-missing': () => press(login.submit),
      'login-cancelled': () => press(login.signInBy('Corp 企业账号')),
      'login-wrong': async () => {
        await page.getByText(login.byPassword).click();
        await signIn('wrong');
      },
      consent: () => signIn(PASSWORD),
      'consent-again': async () => {
        await press(consent.allow);
        await page.waitForURL(`http://localhost:${site.port}/callback?code=**`);
        await page.goto(authorizeUrl());
      },
      'login-not-for-person': () => page.goto(authorizeUrl({ client_id: 'later', scope: '' })),
      account: () => page.goto(`${issuer}/account`),
      'account-everywhere': () => press(account.signOutEverywhere),
      sessions: async () => {
        await press(account.cancel);
        await page.getByRole('link', { name: account.tabs.sessions, exact: true }).click();
      },
      'sessions-end': async () => {
        await signInElsewhere();
        await page.reload();
        await press(account.signOut);
      },
      applications: async () => {
        await press(account.cancel);
        await page.getByRole('link', { name: account.tabs.applications, exact: true }).click();
      },
      'applications-revoke': () => press(account.revoke),
      'applications-none': () => press(account.revoke),
      'logout-question': () => page.goto(`${issuer}/logout`),
      'logout-done': () => press(logout.submit),
      'account-login': () => page.goto(`${issuer}/account`),
    };
  }

  it.each([
    ['de-AT', GERMAN],
    ['zh-CN', SIMPLIFIED_CHINESE],
  ])('given %s → axe finds nothing, and nothing is cut off', { timeout: 120_000 }, async (locale, texts) => {
    const { language } = texts;
    const grantry = await brandedServer();
    // axe is a script; the pages have none.
    const context = await browser.newContext({ locale });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(5000);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    const titles: string[] = [];
    for (const [name, go] of Object.entries(journey(page, grantry, texts))) {
      await go();
      await page.locator(`html[lang=${language}] h1`).waitFor();
      titles.push(await page.title());
      for (const { colorScheme, width, isChecked } of LOOKS) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 860 });
        const size: unknown = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]');
        expect([name, size]).toEqual([name, [width, width]]);
        if (!isChecked) continue;
        expect([name, await axeFindings(page)]).toEqual([name, []]);
      }
      await page.screenshot({ path: `${SCREENSHOTS}${language}-${name}.png`, fullPage: true });
      expect(await page.evaluate('document.querySelector("header img[alt=Corp]").naturalWidth')).toBe(400);
    }
    expect(new Set(titles.map((title) => title.split(' · ')[1]))).toEqual(new Set(['Corp']));
    expect(complaints.filter((complaint) => !/status of (400|403|404|422)/.test(complaint))).toEqual([]);
  });

  it('given accent colours → links, buttons and focus rings have that of the scheme, under the policy of the page', async () => {
    const grantry = await brandedServer();
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(`${grantry.issuer}/account`);
    await page.locator('summary').click();
    const computed = (selector: string, property: string): Promise<unknown> =>
      page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${property}`);
    const look = async (colorScheme: 'light' | 'dark') => {
      await page.emulateMedia({ colorScheme });
      await page.getByRole('link', { name: /^Hilfe/ }).focus();
      return [
        await computed('main a', 'color'),
        await computed('main a', 'outlineColor'),
        await computed('button.primary', 'backgroundColor'),
        await computed('button.primary', 'color'),
      ];
    };
    const [light, dark] = ['rgb(223, 0, 26)', 'rgb(107, 134, 255)'];
    expect(await look('light')).toEqual([light, light, light, 'rgb(255, 255, 255)']);
    expect(await look('dark')).toEqual([dark, dark, dark, 'rgb(6, 33, 31)']);
    await page.locator('button.primary').hover();
    expect(await computed('button.primary', 'backgroundColor')).toBe('rgb(140, 161, 255)');
    expect(complaints).toEqual([]);
  });

  it('given the logo by itself → none of its scripts runs', async () => {
    const grantry = await brandedServer();
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`${grantry.issuer}/account`);
    const logo = await page.getByRole('img', { name: 'Corp' }).getAttribute('src');
    const answer = await page.goto(`${grantry.issuer}${logo}`);
    expect(answer?.headers()['content-type']).toBe('image/svg+xml');
    expect(await page.evaluate('[document.title, origin]')).toEqual(['', 'null']);
  });
});
