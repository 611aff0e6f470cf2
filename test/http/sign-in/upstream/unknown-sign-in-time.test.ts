// A provider that does not say when a person signed in cannot meet max_age: not at the callback, and not by a session either.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID, openidPath, type Query } from '../openid-world.ts';
import { answerOf, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, type World } from '../sign-in-world.ts';

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

async function visit(world: World, browser: TestBrowser, query: Query = {}) {
  let page = await browser.get(openidPath(world, query));
  if (page.location?.startsWith(upstream.issuer)) {
    const upstreamRequest = new URL(page.location).searchParams;
    upstream.nonce = upstreamRequest.get('nonce') ?? '';
    page = await browser.get(`/login/callback/corp?state=${upstreamRequest.get('state')}&code=c`);
  }
  while (page.location?.startsWith('/')) page = await browser.get(page.location);
  return answerOf(page).error ?? 'code';
}

it.each([[[{ max_age: '300' }]], [[{}, { max_age: '300' }]]] as [Query[]][])('%j → login_required', async (queries) => {
  const world = await aWorld({
    clients: [OPENID],
    providers: [anOidcProvider({ issuer: upstream.issuer })],
    hasNoUsers: true,
    keys: [await idTokenKey()],
  });
  const browser = world.browser();
  let last = '';
  for (const query of queries) last = await visit(world, browser, query);
  expect(last).toBe('login_required');
});
