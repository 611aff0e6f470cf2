// How often requests ask the store about people of identity providers: once where the request is about one, and never where it is
// about a local user or no person, also beside a provider. And that nothing is guessed where the store does not answer.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { PKCE } from '../../../grantry.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID, submitLogin } from '../openid-world.ts';
import { answerOf, hidden, type Page } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../sign-in-world.ts';

const CLIENT = Object.assign({}, OPENID, {
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
});
const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly id_token?: string;
}

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

async function worldOf(): Promise<World> {
  const providers = [anOidcProvider({ issuer: upstream.issuer })];
  return await aWorld({ clients: [CLIENT], keys: [await idTokenKey()], providers });
}

/** The calls of the store of people of providers that some work makes. */
async function callsOf(world: World, work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = world.storeCalls().length;
  await work();
  return world
    .storeCalls()
    .slice(before)
    .filter((call) => call.startsWith('persons.'));
}

async function codeOf(world: World, sign: (page: Page) => Promise<Page>, browser = world.browser()): Promise<string> {
  let at = await sign(await browser.get(world.authorizePath({ scope: 'openid' })));
  while (at.location?.startsWith('/')) at = await browser.get(at.location);
  return answerOf(at).code ?? '';
}

function localCode(world: World): Promise<string> {
  const browser = world.browser();
  return codeOf(world, (page) => submitLogin(browser, page), browser);
}

function providerCode(world: World): Promise<string> {
  const browser = world.browser();
  const sign = async (page: Page) => {
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const { searchParams } = new URL((await browser.post('/login/upstream/corp', fields)).location ?? '');
    upstream.nonce = searchParams.get('nonce') ?? '';
    return await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c`);
  };
  return codeOf(world, sign, browser);
}

async function tokensOf(world: World, form: Readonly<Record<string, string>>): Promise<Tokens> {
  return (await (await world.post('/token', form, asClient)).json()) as Tokens;
}

it.each<[string, (world: World) => Promise<string>, readonly string[]]>([
  ['a person of a provider', providerCode, ['persons.read']],
  ['a local user', localCode, []],
])('a code and a refresh, each with an ID token, about %s', async (_who, codeFor, expected) => {
  const world = await worldOf();
  const code = await codeFor(world);
  let tokens: Tokens | undefined;
  const redeem = async () => {
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    tokens = await tokensOf(world, form);
  };
  expect(await callsOf(world, redeem)).toEqual(expected);
  expect(tokens?.id_token).toBeDefined();
  const refresh = async () => {
    tokens = await tokensOf(world, { grant_type: 'refresh_token', refresh_token: tokens?.refresh_token ?? '' });
  };
  expect(await callsOf(world, refresh)).toEqual(expected);
  expect(tokens?.id_token).toBeDefined();
});

it('client credentials, and their introspection', async () => {
  const world = await worldOf();
  const work = async () => {
    const { access_token: token } = await tokensOf(world, { grant_type: 'client_credentials', scope: 'shop/read' });
    const answer = await world.post('/introspect', { token }, asClient);
    expect(await answer.json()).toMatchObject({ active: true });
  };
  expect(await callsOf(world, work)).toEqual([]);
});

it.each<[string, (world: World) => Promise<string>, number]>([
  ['a person of a provider, whose store does not answer → 503', providerCode, 503],
  ['a local user beside that → 200', localCode, 200],
])('userinfo and introspection, by token and by refresh token, of %s', async (_who, codeFor, expected) => {
  const world = await worldOf();
  const form = { grant_type: 'authorization_code', redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
  const { access_token, refresh_token } = await tokensOf(world, { ...form, code: await codeFor(world) });
  const statuses = async () => {
    const headers = { authorization: `Bearer ${access_token}` };
    const answers = await Promise.all([
      world.post('/userinfo', {}, { headers }),
      world.post('/introspect', { token: access_token }, asClient),
      world.post('/introspect', { token: refresh_token }, asClient),
    ]);
    return answers.map(({ status }) => status);
  };
  expect(await statuses()).toEqual([200, 200, 200]);
  world.breakStore('persons');
  expect(await statuses()).toEqual([expected, expected, expected]);
});
