// A person in Chromium who signs in by Dex, with scripts off: redirects and forms alone lead there and back.

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { launchChromium, NO_CHROMIUM } from '../browser/chromium.ts';
import { type ClientSite, startClientSite } from '../browser/client-site.ts';
import { freePort } from '../free-port.ts';
import { PKCE } from '../grantry.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { DEX_PERSON, Dex } from './setup/dex.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import type { Provider } from './setup/provider.ts';

const SECRET = 'the secret of the site!!!!!!!!!!';

await describeConsumers(['dex'], (program) =>
  describe.skipIf(NO_CHROMIUM)('in Chromium with scripts off', () => {
    let browser: Browser;
    let context: BrowserContext;
    let page: Page;
    let site: ClientSite;
    let dex: Dex;

    beforeAll(async () => {
      [browser, site] = await Promise.all([launchChromium(), startClientSite()]);
    });
    beforeEach(async () => {
      context = await browser.newContext({ javaScriptEnabled: false });
      page = await context.newPage();
    });
    afterEach(() => context.close());
    afterAll(async () => {
      await browser?.close();
      await site?.close();
    });

    async function startBoth(hasOther: boolean): Promise<Provider> {
      const port = await freePort(2);
      dex = await Dex.start({ program, callback: `http://127.0.0.1:${port}/login/callback/dex` });
      const other = anOidcProvider({ displayName: 'Corp', issuer: 'http://127.0.0.1:9' });
      const redirectUri = `http://localhost:${site.port}/callback`;
      return await startGrantryProvider({
        port,
        consumers: [{ clientId: 'shop.site', secret: SECRET, redirectUri }],
        identityProviders: [dex.identityProvider(), ...(hasOther ? [other] : [])],
      });
    }

    async function open({ endpoints }: Provider): Promise<void> {
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: 'shop.site',
        redirect_uri: `http://localhost:${site.port}/callback`,
        scope: 'openid profile',
        state: 'of-the-site',
        code_challenge: PKCE.challenge,
        code_challenge_method: 'S256',
      });
      await page.goto(`${endpoints.authorization}?${query}`);
    }

    const at = (address: string) => page.waitForURL(({ origin }) => origin === new URL(address).origin);

    it.each([
      ['alone', false],
      ['behind its button', true],
    ])('given Dex %s → its form, the consent page, and the site with a code', async (_case, hasOther) => {
      const provider = await startBoth(hasOther);
      await open(provider);
      if (hasOther) await page.getByRole('button', { name: 'Dex' }).click();
      await at(dex.issuer);
      await page.fill('input[name=login]', DEX_PERSON.email);
      await page.fill('input[name=password]', DEX_PERSON.password);
      await page.click('button[type=submit]');
      await at(provider.issuer);
      expect(await page.locator('main').textContent()).toContain(DEX_PERSON.name);
      await page.getByRole('button', { name: 'Allow' }).click();
      await at(`http://localhost:${site.port}`);
      const arrived = new URL(page.url());
      expect(Object.fromEntries(arrived.searchParams)).toEqual({
        code: expect.any(String),
        state: 'of-the-site',
        iss: provider.issuer,
      });
      // No cookie of the pending sign-in is left.
      expect((await context.cookies()).map(({ name }) => name).filter((name) => name.includes('away'))).toEqual([]);
      await Promise.all([dex.stop(), provider.stop()]);
    });
  }),
);
