// A newcomer's way from `helm install` to a browser that is signed in, without a Secret made by hand.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium, NO_CHROMIUM } from '../browser/chromium.ts';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { createNamespace, deleteNamespaces, get, run } from './setup/kubectl.ts';
import { PortForward } from './setup/port-forward.ts';
import { runPrinted } from './setup/printed.ts';
import { Release } from './setup/release.ts';

const USERNAME = 'ada';
const release = new Release({ namespace: 'e2e-first-user', name: 'first' });

/** The command of Helm's notes that prints the password. */
async function printedCommand(): Promise<string> {
  const notes = await run('helm', ['get', 'notes', release.name, '-n', release.namespace]);
  const [command] = notes.match(/kubectl .* get secret grantry-initial-user .*/) ?? [];
  if (command === undefined) throw new Error(`the notes show no command for the password:\n${notes}`);
  return command;
}

describe.skipIf(NO_CHROMIUM)('a first user', () => {
  let port: number;
  let browser: Browser;

  beforeAll(async () => {
    [port, browser] = await Promise.all([freePort(), launchChromium(), createNamespace(release.namespace)]);
    await release.install({
      issuer: `http://localhost:${port}`,
      className: 'first-user',
      crds: { enabled: false },
      redis: { dev: { enabled: true } },
      users: { initialUser: USERNAME },
      server: { replicas: 1 },
      controller: { replicas: 1 },
    });
  });

  afterAll(async () => {
    await browser?.close();
    if (await release.isInstalled()) await release.uninstall();
    await deleteNamespaces(release.namespace);
  });

  it("reads the password by the command of Helm's notes and signs in", async () => {
    const password = (await runPrinted(await printedCommand())).replace(/\n$/, '');
    const { metadata } = await get('secret', 'grantry-initial-user', release.namespace);
    const forward = await PortForward.open(release.namespace, release.service, { localPort: port, port: 80 });
    try {
      const page = await browser.newPage({ javaScriptEnabled: false });
      page.setDefaultTimeout(30_000);
      const signedIn = page.getByRole('button', { name: 'Sign out everywhere' });
      // A server that has begun just now answers 503 until it has joined Redis.
      await until('a sign-in is answered', async () => {
        await page.goto(`http://localhost:${port}/account`);
        if (await signedIn.isVisible()) return true;
        await page.getByLabel('Username', { exact: true }).fill(USERNAME);
        await page.getByLabel('Password', { exact: true }).fill(password);
        await page.getByRole('button', { name: 'Sign in' }).click();
        return await signedIn.isVisible();
      });
      expect(await page.getByRole('main').innerText()).toContain(USERNAME);
    } finally {
      await forward.close();
    }
    await release.upgrade({ config: { logOneTokenIn: 2 } });
    expect((await get('secret', 'grantry-initial-user', release.namespace)).metadata).toEqual(metadata);
  });
});
