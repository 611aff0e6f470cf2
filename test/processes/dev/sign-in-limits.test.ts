// A client of a folder that is for some people only, and edits of that.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PKCE } from '../../grantry.ts';
import { submitLogin } from '../../http/sign-in/openid-world.ts';
import { hidden, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { PASSWORD } from '../../http/sign-in/sign-in-world.ts';
import { folderOf, removeFolder } from '../../manifests/a-folder.ts';
import { until } from '../../until.ts';
import { endProcesses, startDev } from '../grantry-process.ts';

const CALLBACK = 'https://shop.example/cb';

function manifest(signIn: string): string {
  return `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: shop}
spec:
  auth: {method: none}
  redirectUris: ['${CALLBACK}']
  scopes: [openid]
  defaultScopes: [openid]
  signIn: ${signIn}
`;
}

let folder: string;
let dev: Awaited<ReturnType<typeof startDev>>;
beforeAll(async () => {
  folder = await folderOf({ 'shop.yaml': manifest('{identityProviders: [corp]}') });
  dev = await startDev(folder, ['--user', `ann:${PASSWORD}`]);
});
afterAll(async () => {
  await endProcesses();
  await removeFolder(folder);
});

it('given a client for other people, then for local users, then for a group → each edit is served', async () => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'default.shop',
    redirect_uri: CALLBACK,
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  });
  const browser = new TestBrowser(dev.address, dev.issuer);
  const page = () => browser.get(`/authorize?${query}`);
  const closed = await page();
  expect([closed.status, closed.body.includes('name="password"')]).toEqual([200, false]);

  await writeFile(join(folder, 'shop.yaml'), manifest('{identityProviders: [local, corp]}'));
  await until('there is a form for a password', async () => (await page()).body.includes('name="password"'));
  const open = await page();
  await writeFile(join(folder, 'shop.yaml'), manifest('{groups: [ops]}'));
  const signIn = () => submitLogin(browser, open, 'ann');
  await until('ann is refused', async () => (await signIn()).status === 403);
  expect(hidden(await signIn(), 'request')).not.toBe('');
});
