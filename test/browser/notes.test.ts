// The whole story of the notes in Chromium: the command line opens the sign-in, the person allows the access to a resource by its
// name, the API answers, the access is revoked, and the API answers no more.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import * as library from 'openid-client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionFile } from '../../examples/notes-cli/session-file.ts';
import { AUDIENCE, endAll, Issuer, notes, signInAddress } from '../examples/notes-servers.ts';
import { until } from '../until.ts';
import { axeFindings } from './axe.ts';
import { launchChromium, NO_CHROMIUM, SCREENSHOTS } from './chromium.ts';

const LANGUAGES = [
  {
    language: 'en',
    locale: 'en-GB',
    labels: { username: 'Username', password: 'Password', signIn: 'Sign in', allow: 'Allow' },
    resource: 'Notes',
    scopes: ['Read your notes', 'Add notes of yours'],
  },
  {
    language: 'de',
    locale: 'de-AT',
    labels: { username: 'Benutzername', password: 'Passwort', signIn: 'Anmelden', allow: 'Erlauben' },
    resource: 'Notizen',
    scopes: ['Ihre Notizen lesen', 'Notizen für Sie anlegen'],
  },
] as const;

describe.skipIf(NO_CHROMIUM)('the notes in Chromium', () => {
  let browser: Browser;
  let issuer: Issuer;
  let api: string;

  beforeAll(async () => {
    [browser, issuer] = await Promise.all([launchChromium(), Issuer.start()]);
    api = await issuer.startApi('--introspect');
  });
  afterAll(async () => {
    await browser?.close();
    await endAll();
  });

  async function expectAccessible(page: Page, name: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${SCREENSHOTS}notes-${name}-${colorScheme}.png`, fullPage: true });
      expect(await axeFindings(page)).toEqual([]);
    }
  }

  /** What the API answers to the holder of the session, as it was before it may have been revoked. */
  async function answerTo(session: Awaited<ReturnType<SessionFile['read']>>) {
    if (session === undefined) throw new Error('no session was kept');
    const config = await library.discovery(new URL(issuer.issuer), 'default.notes-cli', undefined, library.None(), {
      algorithm: 'oauth2',
      execute: [library.allowInsecureRequests],
    });
    const DPoP = library.getDPoPHandle(config, session.keys);
    const place = new URL('/notes', api);
    return await library
      .fetchProtectedResource(config, session.accessToken, place, 'GET', undefined, undefined, { DPoP })
      .then(({ status }) => [status, undefined])
      .catch((error: unknown) => {
        if (!(error instanceof library.WWWAuthenticateChallengeError)) throw error;
        return [error.status, error.cause.map(({ parameters }) => parameters.error).find(Boolean)];
      });
  }

  it.each(LANGUAGES)(
    'in $language: sign-in, consent by the name of the resource, data, revocation, 401',
    async ({ language, locale, labels, resource, scopes }) => {
      const file = join(issuer.folder, `${language}.json`);
      const command = (...words: readonly string[]) =>
        notes('--issuer', issuer.issuer, '--api', api, '--session', file, ...words);
      const context = await browser.newContext({ locale });
      context.setDefaultTimeout(20_000);
      const page = await context.newPage();

      const adding = await command('add', 'Water the plants,', language);
      const address = await signInAddress(adding);
      await page.goto(address.href);
      expect(await page.locator('html').getAttribute('lang')).toBe(language);
      await expectAccessible(page, `login-${language}`);
      await page.getByLabel(labels.username).fill('demo');
      await page.getByLabel(labels.password).fill('demo');
      await page.getByRole('button', { name: labels.signIn }).click();

      await page.getByRole('button', { name: labels.allow }).waitFor();
      const shown = await page.locator('main').innerText();
      for (const text of [resource, ...scopes]) expect(shown).toContain(text);
      expect(shown).not.toContain(AUDIENCE);
      await page.locator('summary').click();
      const details = await page.locator('details').innerText();
      for (const text of [AUDIENCE, 'default/notes.read', 'default/notes.write']) expect(details).toContain(text);
      await expectAccessible(page, `consent-${language}`);
      await page.getByRole('button', { name: labels.allow }).click();

      await page.waitForURL(`${address.searchParams.get('redirect_uri')}?**`);
      await page.getByText('You are signed in.').waitFor();
      await expectAccessible(page, `back-${language}`);
      await context.close();
      expect(await adding.ended()).toBe(0);
      const listing = await command('list');
      expect([await listing.ended(), listing.output]).toEqual([0, expect.stringContaining(adding.output)]);

      const session = await new SessionFile({ path: file, issuer: issuer.issuer }).read();
      const { aud, exp = 0, iat = 0, cnf } = decodeJwt(session?.accessToken ?? '');
      expect([aud, exp - iat, cnf]).toEqual([AUDIENCE, 300, { jkt: expect.any(String) }]);
      expect(await answerTo(session)).toEqual([200, undefined]);
      const leaving = await command('sign-out');
      expect(await leaving.ended()).toBe(0);
      await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
      await until('the revocation counts', async () => (await answerTo(session))[0] === 401, 5000);
      expect(await answerTo(session)).toEqual([401, 'invalid_token']);
      // The next command asks for a sign-in again.
      await signInAddress(await command('list'));
    },
  );
});
