// What a person of a provider holds, and which of it works: a session, a code, a refresh token, an access token.

import { PKCE } from '../../../grantry.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { OPENID } from '../openid-world.ts';
import { answerOf, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { CALLBACK, SECRET, type World } from '../sign-in-world.ts';

export const CLIENT = Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'] });

/** A provider that asserts Ada. */
export async function providerOfAda(): Promise<ScriptedProvider> {
  const upstream = await ScriptedProvider.start();
  upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
  upstream.userinfo = { sub: 'ada-1' };
  return upstream;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** The last page of a sign-in at the provider `corp`: a redirect to the client, or a page that refuses. */
export async function signInBy(upstream: ScriptedProvider, world: World, browser: TestBrowser): Promise<Page> {
  let page = await browser.get(world.authorizePath({ scope: 'openid' }));
  if (page.location?.startsWith(upstream.issuer)) {
    const { searchParams } = new URL(page.location);
    upstream.nonce = searchParams.get('nonce') ?? '';
    page = await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c`);
  }
  while (page.location?.startsWith('/')) page = await browser.get(page.location);
  return page;
}

export async function codeFor(upstream: ScriptedProvider, world: World, browser: TestBrowser): Promise<string> {
  return answerOf(await signInBy(upstream, world, browser)).code ?? '';
}

const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };

export function redeem(world: World, code: string): Promise<Response> {
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
  return world.post('/token', form, asClient);
}

/** Which of what a person of the provider holds works. */
export async function held(world: World, browser: TestBrowser, { tokens, code }: { tokens: Tokens; code: string }) {
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

/** All of it works. */
export const ALL = {
  userinfo: 200,
  introspected: true,
  ofRefresh: true,
  session: 'code',
  account: true,
  code: 200,
  refresh: 200,
};
/** None of it does. */
export const NOTHING = {
  userinfo: 401,
  introspected: false,
  ofRefresh: false,
  session: 'login_required',
  account: false,
  code: 400,
  refresh: 400,
};
