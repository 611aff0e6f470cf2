import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { type Grantry, PKCE, startGrantry, type TestClient } from '../grantry.ts';
import { TokenCalls } from '../http/protocol/token-calls.ts';
import { aResource } from '../oauth/a-resource.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';

const PASSWORD = 'correct horse battery';
const SHOP = { clientId: 'shop.web', secret: 'the-secret-of-the-web-application' };

/** As long as they may be, with nothing to break a line at. */
const EMAIL = `${'demo.'.repeat(12)}person@shop.example`;
const NOTES = aResource({
  identifier: 'https://a-rather-long-name-of-a-host.notes.example/with/a/path/too',
  displayName: { text: 'Notes', translations: { de: 'Notizen' } },
  scopes: [
    { name: 'notes.read', description: { text: 'Read your notes', translations: { de: 'Ihre Notizen lesen' } } },
  ],
});

describe.skipIf(NO_CHROMIUM)('the account page in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;
  let grantry: Grantry;
  let passwordHash: string;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    [browser, site] = await Promise.all([launchChromium(), startClientSite()]);
    passwordHash = await hashPassword(PASSWORD);
  });

  beforeEach(async ({ onTestFinished }) => {
    onTestFinished(() => grantry.stop());
    const shop: TestClient = {
      ...SHOP,
      displayName: 'Shop & Sons',
      redirectUris: [`http://localhost:${site.port}/callback`],
      resources: [{ namespace: undefined, name: NOTES.name, scopes: undefined }],
      defaultAudience: 'urn:grantry:ns:shop:default',
    };
    const others = Array.from({ length: 24 }, (_, index) => {
      return { clientId: `shop.app-${index}`, secret: 'another-secret-of-an-app', displayName: `App ${index}` };
    });
    grantry = await startGrantry({
      owners: new LocalUsers({
        clock: systemClock,
        users: [{ username: 'demo', displayName: 'Demo Person', passwordHash, email: EMAIL, groups: [] }],
      }),
      clients: [shop, ...others],
      resources: [NOTES],
      auditSubjects: 'plain',
    });
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });

  async function newPage(options: Parameters<Browser['newContext']>[0] = {}): Promise<{ page: Page; said: string[] }> {
    const context = await browser.newContext({ javaScriptEnabled: false, ...options });
    contexts.push(context);
    context.setDefaultTimeout(5000);
    const page = await context.newPage();
    const said: string[] = [];
    page.on('console', (message) => said.push(message.text()));
    return { page, said };
  }

  async function signIn(page: Page, german = false): Promise<void> {
    await page.getByLabel(german ? 'Benutzername' : 'Username').fill('demo');
    await page.getByLabel(german ? 'Passwort' : 'Password').fill(PASSWORD);
    await page.getByRole('button', { name: german ? 'Anmelden' : 'Sign in' }).click();
  }

  function authorizeUrl(): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: SHOP.clientId,
      redirect_uri: `http://localhost:${site.port}/callback`,
      scope: 'notes.read',
      resource: NOTES.identifier,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    });
    return `${grantry.issuer}/authorize?${query}`;
  }

  /** Signs in at the application and lets it in. @returns the refresh token that it gets */
  async function letIn(page: Page): Promise<string> {
    await page.goto(authorizeUrl());
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`http://localhost:${site.port}/callback?**`);
    const code = new URL(page.url()).searchParams.get('code') ?? '';
    const changes = { redirect_uri: `http://localhost:${site.port}/callback` };
    const { status, body } = await new TokenCalls(grantry, SHOP).redeem(code, changes);
    expect(status).toBe(200);
    return String(body.refresh_token);
  }

  it('given an application that the person revokes → its refresh fails, and it asks again', async () => {
    const { page, said } = await newPage();
    const calls = new TokenCalls(grantry, SHOP);
    const first = await letIn(page);
    const refreshed = await calls.refresh(first);
    expect(refreshed.status).toBe(200);

    await page.goto(`${grantry.issuer}/account`);
    await page.getByText('Demo Person (demo)').waitFor();
    await page.getByRole('link', { name: 'Applications' }).click();
    await page.getByRole('heading', { name: 'Applications with access' }).waitFor();
    await page.getByRole('button', { name: 'Revoke access' }).click();
    await page.getByRole('heading', { name: 'Revoke access?' }).waitFor();
    await page.getByRole('heading', { name: 'Shop & Sons' }).waitFor();
    await page.getByText('Where this works: Notes').waitFor();
    expect(await page.getByText('Read your notes').first().isVisible()).toBe(false);
    await page.getByText('Details').click();
    await page.getByText('Read your notes').first().waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'Applications with access' }).waitFor();
    await page.goBack();
    await page.reload();
    const kept = await calls.refresh(refreshed.body.refresh_token);
    expect(kept.status).toBe(200);
    await page.getByRole('button', { name: 'Revoke access' }).click();
    await page.getByRole('status').filter({ hasText: 'Shop & Sons has no access any more.' }).waitFor();
    await page.getByText('No application has access to your account.').waitFor();

    const refused = await calls.refresh(kept.body.refresh_token);
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_grant']);
    await page.goto(authorizeUrl());
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    expect(said).toEqual([]);
  });

  it('given two browsers → each is named, and one ends the other; "everywhere" ends both', async () => {
    const [one, other] = [await newPage(), await newPage()];
    for (const { page } of [one, other]) {
      await page.goto(`${grantry.issuer}/account/sessions`);
      await signIn(page);
      await page.getByRole('heading', { name: 'Where you are signed in' }).waitFor();
    }
    await one.page.reload();
    const entries = one.page.getByRole('listitem').filter({ hasText: 'Signed in:' });
    expect(await entries.count()).toBe(2);
    expect(await entries.first().innerText()).toMatch(/Chrome\s+This browser[\s\S]*127\.0\.0\.1/);
    await entries.last().getByRole('button', { name: 'Sign out' }).click();
    await one.page.getByRole('heading', { name: 'End this session?' }).waitFor();
    await one.page.getByRole('button', { name: 'Sign out' }).click();
    await one.page.getByRole('heading', { name: 'Where you are signed in' }).waitFor();
    expect(await entries.count()).toBe(1);
    // The way back comes to the question about a session that has ended, which leads on to the page.
    await one.page.goBack();
    await one.page.getByRole('heading', { name: 'Where you are signed in' }).waitFor();
    expect(await entries.count()).toBe(1);
    await other.page.reload();
    await other.page.getByLabel('Password').waitFor();

    await signIn(other.page);
    await other.page.getByRole('link', { name: 'Account', exact: true }).click();
    await other.page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await other.page.getByRole('heading', { name: 'Sign out everywhere?' }).waitFor();
    await other.page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await other.page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await other.page.goBack();
    await other.page.getByLabel('Password').waitFor();
    await other.page.goForward();
    await other.page.getByRole('link', { name: 'Sign in again' }).click();
    await other.page.getByLabel('Password').waitFor();
    await one.page.reload();
    await one.page.getByLabel('Password').waitFor();
    expect([...one.said, ...other.said]).toEqual([]);
  });

  it.each(['en-US', 'de-AT', 'zh-CN'])(
    'given %s at 375 px → the tabs stand in one row, and one is current',
    async (locale) => {
      const { page } = await newPage({ javaScriptEnabled: true, locale, viewport: { width: 375, height: 667 } });
      await page.goto(`${grantry.issuer}/account`);
      await page.locator('#username').fill('demo');
      await page.locator('#password').fill(PASSWORD);
      await page.locator('button.primary').click();
      for (const at of [0, 1, 2]) {
        await page.locator('nav a').nth(at).click();
        await page.locator(`nav li:nth-child(${at + 1}) a[aria-current=page]`).waitFor();
        expect(await page.locator('[aria-current]').count()).toBe(1);
        const tops: unknown = await page.evaluate(
          '[...document.querySelectorAll("nav a")].map((tab) => tab.offsetTop)',
        );
        expect(new Set(tops as number[]).size).toBe(1);
      }
    },
  );

  it.each([
    ['en-US', 1280, 800],
    ['en-US', 375, 667],
    ['de-AT', 1280, 800],
    ['de-AT', 375, 667],
  ])(
    'given %s at %d × %d → both buttons of the question about an application are above the fold',
    async (locale, width, height) => {
      const { page } = await newPage({ locale, viewport: { width, height } });
      await letIn((await newPage()).page);
      await page.goto(`${grantry.issuer}/account/applications`);
      await signIn(page, locale === 'de-AT');
      await page.locator('button[value=revoke]').click();
      await page.screenshot({ path: `${SCREENSHOTS}account-revoke-fold-${locale}-${width}.png` });
      const boxes = await Promise.all(
        (await page.locator('.choices button').all()).map((button) => button.boundingBox()),
      );
      expect(boxes.map((box) => box !== null && box.y + box.height <= height)).toEqual([true, true]);
    },
  );

  describe('looks like a product', () => {
    const looks = [
      ['light', 'light', { width: 1280, height: 860 }],
      ['dark', 'dark', { width: 1280, height: 860 }],
      ['narrow', 'light', { width: 320, height: 640 }],
    ] as const;
    const LOCALES = { en: 'en-US', de: 'de-AT' } as const;

    /** More than one page of applications, one of them out of service. */
    async function fill(): Promise<void> {
      const subject = String(grantry.audits().find(({ event }) => event === 'login.succeeded')?.subject);
      for (const clientUid of ['uid-of-no-client', ...Array.from({ length: 24 }, (_, at) => `uid-of-shop.app-${at}`)]) {
        await grantry.stores.uses.note(subject, clientUid);
      }
    }

    const VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
      login: async () => {},
      overview: async () => {},
      sessions: async (page) => void (await page.goto(`${grantry.issuer}/account/sessions`)),
      applications: async (page) => {
        await fill();
        await page.goto(`${grantry.issuer}/account/applications`);
      },
      'applications-2': async (page) => {
        await fill();
        await page.goto(`${grantry.issuer}/account/applications?page=2`);
      },
      everywhere: (page) => page.locator('button[value=sign_out_everywhere]').click(),
      'end-session': async (page) => {
        await page.goto(`${grantry.issuer}/account/sessions`);
        await page.locator('button[value=sign_out]').click();
      },
      revoke: async (page) => {
        await fill();
        await page.goto(`${grantry.issuer}/account/applications`);
        await page.locator('button[value=revoke]').last().click();
      },
      'applications-none': async (page) =>
        void (await page.goto(`${grantry.issuer}/account/applications?revoked=uid-of-shop.web`)),
      'signed-out': async (page) => {
        await page.locator('button[value=sign_out]').click();
        await page.waitForURL(`${grantry.issuer}/logout`);
      },
    };

    for (const [language, locale] of Object.entries(LOCALES)) {
      it.each(Object.keys(VIEWS))(
        `%s in ${language}: axe finds nothing in light and dark, and nothing is cut off at 320 px`,
        async (view) => {
          const { page, said } = await newPage({ javaScriptEnabled: true, locale });
          if (view === 'applications-2') await letIn((await newPage()).page);
          await page.goto(`${grantry.issuer}/account`);
          if (view !== 'login') {
            await signIn(page, language === 'de');
            await page.getByRole('navigation').first().waitFor();
          }
          await VIEWS[view]?.(page);
          for (const [look, colorScheme, viewport] of looks) {
            await page.emulateMedia({ colorScheme });
            await page.setViewportSize(viewport);
            await page.screenshot({ path: `${SCREENSHOTS}account-${view}-${language}-${look}.png`, fullPage: true });
            if (look !== 'narrow') expect(await axeFindings(page)).toEqual([]);
            const size: unknown = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]');
            expect(size).toEqual([viewport.width, viewport.width]);
          }
          expect(said).toEqual([]);
        },
      );
    }
  });
});
