// docs/adr/0032 where a provider signs in without a page: a link to this server must not land at any host without a click.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID, openidPath } from '../openid-world.ts';
import { aWorld } from '../sign-in-world.ts';

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.claims = { preferred_username: 'ada' };
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

it('a client that only the baseline admits, max_age=0, and a silent sign-in at the only provider → a page with a link', async () => {
  const world = await aWorld({
    clients: [Object.assign({}, OPENID, { admittedBy: 'baseline' as const })],
    providers: [anOidcProvider({ issuer: upstream.issuer })],
    hasNoUsers: true,
    keys: [await idTokenKey()],
  });
  const browser = world.browser();
  const left = await browser.get(openidPath(world, { max_age: '0' }));
  expect(left.status).toBe(302);
  const { searchParams } = new URL(left.location ?? '');
  upstream.nonce = searchParams.get('nonce') ?? '';
  const page = await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c`);
  expect([page.status, page.location, world.lastReason()]).toEqual([400, undefined, 'sign_in_needed']);
  expect(browser.cookies.has('grantry-session')).toBe(false);
});
