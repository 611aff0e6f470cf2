// What ends for a person of an identity provider, over HTTP: by the kill switches of the provider, and `verifyEvery` after it
// vouched. Each holds for a session, a code, a refresh token, userinfo and introspection.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { PKCE } from '../../../grantry.ts';
import { aGitHubProvider, anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID } from '../openid-world.ts';
import { answerOf, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../sign-in-world.ts';

const HOUR = 3_600_000;
const CLIENT = Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'] });

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer, verifyEvery: HOUR / 2 }, changes));

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

async function codeFor(world: World, browser: TestBrowser): Promise<string> {
  let page = await browser.get(world.authorizePath({ scope: 'openid' }));
  if (page.location?.startsWith(upstream.issuer)) {
    const { searchParams } = new URL(page.location);
    upstream.nonce = searchParams.get('nonce') ?? '';
    page = await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c`);
  }
  while (page.location?.startsWith('/')) page = await browser.get(page.location);
  return answerOf(page).code ?? '';
}

const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };

function redeem(world: World, code: string): Promise<Response> {
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
  return world.post('/token', form, asClient);
}

/** Which of what a person of the provider holds works. */
async function held(world: World, browser: TestBrowser, { tokens, code }: { tokens: Tokens; code: string }) {
  const { access_token, refresh_token } = tokens;
  const authorization = `Bearer ${access_token}`;
  const userinfo = await world.post('/userinfo', {}, { headers: { authorization } });
  const introspected = await world.post('/introspect', { token: access_token }, asClient);
  const ofRefresh = await world.post('/introspect', { token: refresh_token }, asClient);
  const silent = await browser.get(world.authorizePath({ scope: 'openid', prompt: 'none' }));
  const account = await browser.get('/account');
  const redeemed = await redeem(world, code);
  const renewed = await world.post('/token', { grant_type: 'refresh_token', refresh_token }, asClient);
  return {
    userinfo: userinfo.status,
    introspected: ((await introspected.json()) as { active: boolean }).active,
    ofRefresh: ((await ofRefresh.json()) as { active: boolean }).active,
    session: answerOf(silent).error ?? 'code',
    account: account.body.includes('sign_out_everywhere'),
    code: redeemed.status,
    refresh: renewed.status,
  };
}

const ALL = {
  userinfo: 200,
  introspected: true,
  ofRefresh: true,
  session: 'code',
  account: true,
  code: 200,
  refresh: 200,
};
const NOTHING = {
  userinfo: 401,
  introspected: false,
  ofRefresh: false,
  session: 'login_required',
  account: false,
  code: 400,
  refresh: 400,
};

describe.each(['jwt', 'opaque'] as const)('with %s tokens', (accessTokenFormat) => {
  it.each<[string, typeof ALL, (world: World) => Promise<void> | void]>([
    ['nothing', ALL, () => {}],
    ['a provider without its Secret', ALL, (world) => world.setProviders([corp({ credentials: undefined })])],
    ['a provider that is suspended', NOTHING, (world) => world.setProviders([corp({ isSuspended: true })])],
    ['a provider that is deleted', NOTHING, (world) => world.setProviders([])],
    ['one that has another name', NOTHING, (world) => world.setProviders([corp({ name: 'corp-2' })])],
    ['another issuer', NOTHING, (world) => world.setProviders([corp({ issuer: 'http://127.0.0.1:9/other' })])],
    [
      'another type',
      NOTHING,
      (world) => {
        return world.setProviders([aGitHubProvider({ host: upstream.issuer })]);
      },
    ],
    ['revokeTokensBefore', NOTHING, (world) => world.setProviders([corp({ revokedBefore: world.now() })])],
    [
      'a shorter verifyEvery',
      NOTHING,
      (world) => {
        world.advance(301_000);
        return world.setProviders([corp({ verifyEvery: 300_000 })]);
      },
    ],
  ])('%s', async (_case, expected, strike) => {
    const client = Object.assign({}, CLIENT, { tokens: Object.assign({}, CLIENT.tokens, { accessTokenFormat }) });
    const world = await aWorld({
      clients: [client],
      providers: [corp()],
      hasNoUsers: true,
      keys: [await idTokenKey()],
    });
    const browser = world.browser();
    const tokens = (await (await redeem(world, await codeFor(world, browser))).json()) as Tokens;
    const code = await codeFor(world, browser);
    await strike(world);
    expect(await held(world, browser, { tokens, code })).toEqual(expected);
  });
});
