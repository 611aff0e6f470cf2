// A person signs in with a real browser at the issuer's own address, which is on loopback, and the application renews its
// tokens.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium, NO_CHROMIUM } from '../browser/chromium.ts';
import { type ClientSite, startClientSite } from '../browser/client-site.ts';
import { deleteNamespaces } from './setup/kubectl.ts';
import { authorizationUrl, createWebApplication, letPeopleSignIn, PERSON, redeem, refresh } from './setup/people.ts';
import { PortForward } from './setup/port-forward.ts';
import { ISSUER, ISSUER_PORT, sharedInstall } from './setup/shared-install.ts';

const TENANT = 'e2e-album';
const SERVICE_PORT = 80;

describe.skipIf(NO_CHROMIUM)('a sign-in in Chromium', () => {
  let browser: Browser;
  let site: ClientSite;

  beforeAll(async () => {
    [browser, site] = await Promise.all([launchChromium(), startClientSite()]);
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await deleteNamespaces(TENANT);
  });

  it('gives the application a token, and another one for its refresh token', async () => {
    await letPeopleSignIn();
    const application = await createWebApplication(TENANT, `http://localhost:${site.port}/callback`);
    const { namespace, service } = sharedInstall;
    const forward = await PortForward.open(namespace, service, { localPort: ISSUER_PORT, port: SERVICE_PORT });
    try {
      const page = await browser.newPage({ javaScriptEnabled: false });
      page.setDefaultTimeout(30_000);
      await page.goto(authorizationUrl(application).href);
      await page.getByLabel('Username').fill(PERSON.username);
      await page.getByLabel('Password').fill(PERSON.password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.waitForURL(`${application.redirectUri}?**`);
      const cameBack = new URL(page.url());
      expect([cameBack.searchParams.get('iss'), cameBack.searchParams.get('state')]).toEqual([ISSUER, 'some-state']);
      const grant = await redeem(forward.url, application, cameBack);
      const renewed = await refresh(forward.url, application, grant.refreshToken);
      expect(renewed.status).toBe(200);
      expect(renewed.grant.refreshToken).not.toBe(grant.refreshToken);
    } finally {
      await forward.close();
    }
  });
});
