// The login page with providers and a form for a password below them, in Chromium: by keyboard, by a screen reader, by a password
// manager, in light and dark.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import { systemClock } from '../../src/processes/lifecycle/machine.ts';
import { type Grantry, PKCE, startGrantry } from '../grantry.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { ScriptedProvider } from '../login/upstream/scripted-provider.ts';
import { aClient } from '../oauth/a-client.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';

const PASSWORD = 'correct horse battery';
const CALLBACK = 'http://localhost:1/callback';

describe.skipIf(NO_CHROMIUM)('the login page with providers in Chromium', () => {
  let browser: Browser;
  let upstream: ScriptedProvider;
  let grantry: Grantry;

  beforeAll(async () => {
    [browser, upstream] = await Promise.all([launchChromium(), ScriptedProvider.start()]);
    const passwordHash = await hashPassword(PASSWORD);
    const users = [{ username: 'ada', displayName: 'Ada', passwordHash, email: 'ada@shop.example', groups: [] }];
    grantry = await startGrantry({
      owners: new LocalUsers({ clock: systemClock, users }),
      clients: [aClient({ displayName: 'Shop & Sons', redirectUris: [CALLBACK], scopes: ['openid'] })],
    });
    const issuer = upstream.issuer;
    await grantry.setProviders([
      anOidcProvider({ issuer, displayName: 'Example Corp' }),
      anOidcProvider({ issuer, name: 'partner', uid: 'uid-partner', displayName: 'Partner' }),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    upstream?.stop();
  });

  async function atLogin(changes: Readonly<Record<string, string>> = {}, javaScriptEnabled = false): Promise<Page> {
    const context = await browser.newContext({ javaScriptEnabled, locale: 'en-US' });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(5000);
    const page = await context.newPage();
    const request = {
      response_type: 'code',
      client_id: 'shop.web',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    };
    await page.goto(`${grantry.issuer}/authorize?${new URLSearchParams(Object.assign(request, changes))}`);
    return page;
  }

  /** The text of what has the focus, or the name of the field. */
  async function focused(page: Page): Promise<string | null> {
    const at = page.locator(':focus');
    if ((await at.count()) === 0) return null;
    return (await at.getAttribute('name')) ?? (await at.innerText());
  }

  const form = (page: Page) => page.getByLabel('Password', { exact: true });

  it('by keyboard alone → buttons, then what unfolds the form, then its fields', async () => {
    const page = await atLogin();
    expect([await focused(page), await form(page).isVisible()]).toEqual([null, false]);
    const reached: (string | null)[] = [];
    for (let presses = 0; presses < 3; presses += 1) {
      await page.keyboard.press('Tab');
      reached.push(await focused(page));
    }
    expect(reached).toEqual(['Sign in with Example Corp', 'Sign in with Partner', 'Sign in with a password']);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  });

  it('given a hint of the client → the form is open, and the password is what is typed next', async () => {
    const page = await atLogin({ login_hint: 'ada' });
    expect([await focused(page), await page.getByLabel('Username', { exact: true }).inputValue()]).toEqual([
      'password',
      'ada',
    ]);
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  });

  it('by a screen reader → heading, buttons, what unfolds the form; nothing folded is read out', async () => {
    const page = await atLogin();
    const read = (await page.locator('main').ariaSnapshot()).split('\n  - ').slice(1);
    expect(read.filter((line) => !line.startsWith('paragraph:'))).toEqual([
      'heading "Sign in" [level=1]',
      'button "Sign in with Example Corp"',
      'button "Sign in with Partner"',
      'group: Sign in with a password',
    ]);
  });

  it('by a password manager, which fills and sends the folded form → signed in', async () => {
    const page = await atLogin({}, true);
    await page.evaluate(`{
      const form = document.querySelector('form:has([autocomplete=current-password])');
      form.querySelector('[autocomplete=username]').value = 'ada';
      form.querySelector('[autocomplete=current-password]').value = '${PASSWORD}';
      form.requestSubmit();
    }`);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  });

  it.each([
    ['folded', {}],
    ['open', { login_hint: 'ada' }],
  ])('%s → axe finds nothing in light and dark, and nothing is cut off', async (look, changes) => {
    const page = await atLogin(changes, true);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 667 });
        await page.screenshot({ path: `${SCREENSHOTS}login-providers-${look}-${colorScheme}-${width}.png` });
        expect(await axeFindings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      }
    }
  });
});
