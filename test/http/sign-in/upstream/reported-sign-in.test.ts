// A sign-in at a provider as tokens report it: its time, which `max_age` is compared with and revocations are not, and its groups.

import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { basic, PKCE } from '../../../grantry.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID, openidPath, type Query } from '../openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../sign-in-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CLIENT = Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'] });
const ADA = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
const asClient = { headers: { authorization: basic(CLIENT.clientId, SECRET) } };

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes));

async function worldOf(client = CLIENT): Promise<World> {
  return aWorld({ clients: [client], providers: [corp()], hasNoUsers: true, keys: [await idTokenKey()] });
}

const seconds = (time: number) => Math.floor(time / 1000);

interface Visit {
  readonly world: World;
  readonly browser: TestBrowser;
  /** What the provider says, epoch milliseconds; undefined where it does not say. */
  readonly signedInAt?: number | undefined;
}

/** The provider signs the person in without a page, whatever it is asked. */
async function visit({ world, browser, signedInAt }: Visit, query: Query = {}) {
  let page = await browser.get(openidPath(world, query));
  if (page.status === 200) {
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    page = await browser.post('/login/upstream/corp', fields);
  }
  let upstreamRequest: URLSearchParams | undefined;
  if (page.location?.startsWith(upstream.issuer)) {
    upstreamRequest = new URL(page.location).searchParams;
    upstream.nonce = upstreamRequest.get('nonce') ?? '';
    upstream.claims = Object.assign(signedInAt === undefined ? {} : { auth_time: seconds(signedInAt) }, ADA);
    page = await browser.get(`/login/callback/corp?state=${upstreamRequest.get('state')}&code=c`);
  }
  while (page.location?.startsWith('/')) page = await browser.get(page.location);
  return { page, upstreamRequest };
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly id_token: string;
}

async function tokensFor(world: World, form: Record<string, string>): Promise<Tokens> {
  const response = await world.post('/token', form, asClient);
  expect(response.status).toBe(200);
  return (await response.json()) as Tokens;
}

function redeem(world: World, page: Page): Promise<Tokens> {
  const { code = '' } = answerOf(page);
  return tokensFor(world, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: PKCE.verifier,
  });
}

/** Each `auth_time` that the tokens of an exchange report. */
async function reportedBy(world: World, { access_token, refresh_token, id_token }: Tokens) {
  const introspected = [access_token, refresh_token].map(async (token) => {
    const response = await world.post('/introspect', { token }, asClient);
    return ((await response.json()) as { readonly auth_time: number }).auth_time;
  });
  return new Set([decodeJwt(id_token).auth_time, ...(await Promise.all(introspected))]);
}

describe.each(['jwt', 'opaque'] as const)('with %s tokens, a sign-in at the provider', (accessTokenFormat) => {
  const client = Object.assign({}, CLIENT, { tokens: Object.assign({}, CLIENT.tokens, { accessTokenFormat }) });

  it.each([
    ['an hour ago', -HOUR, -HOUR],
    ['ahead of this clock', MINUTE / 2, 0],
    ['at no time that it says', undefined, 0],
  ])('%s → the earlier time in every token, also after a refresh', async (_when, by, expected) => {
    const world = await worldOf(client);
    const start = world.now();
    const { page } = await visit({ world, browser: world.browser(), signedInAt: by && start + by });
    const reported = new Set([seconds(start + expected)]);
    world.advance(5000);
    const tokens = await redeem(world, page);
    expect(await reportedBy(world, tokens)).toEqual(reported);
    world.advance(MINUTE);
    const { refresh_token } = tokens;
    const renewed = await tokensFor(world, { grant_type: 'refresh_token', refresh_token });
    expect(await reportedBy(world, renewed)).toEqual(reported);
  });
});

describe('a session of an earlier sign-in at the provider', () => {
  it('→ the time of its own begin is what a revocation goes by', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const first = await visit({ world, browser, signedInAt: world.now() - HOUR });
    const subject = decodeJwt((await redeem(world, first.page)).id_token).sub ?? '';
    await world.stores.watermarks.raise({ kind: 'user', subject }, world.now() - MINUTE);
    expect((await visit({ world, browser })).upstreamRequest).toBeUndefined();
    await world.setProviders([corp({ revokedBefore: world.now() - MINUTE })]);
    const again = await visit({ world, browser });
    expect(again.upstreamRequest).toBeUndefined();
    const { refresh_token } = await redeem(world, again.page);
    await tokensFor(world, { grant_type: 'refresh_token', refresh_token });
  });

  it.each([
    [7200, 'code'],
    [3600, 'code'],
    [3599, 'login_required'],
  ])(
    'prompt=none with max_age=%i after one an hour before → %s, and no redirect to the provider',
    async (maxAge, expected) => {
      const world = await worldOf();
      const browser = world.browser();
      await visit({ world, browser, signedInAt: world.now() - HOUR });
      const query = { prompt: 'none', max_age: String(maxAge) };
      const { page, upstreamRequest } = await visit({ world, browser }, query);
      expect(answerOf(page).error ?? 'code').toBe(expected);
      expect(upstreamRequest).toBeUndefined();
    },
  );

  it('max_age that it does not meet → the provider again, with max_age; its answer counts', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const signedInAt = world.now() - HOUR;
    await visit({ world, browser, signedInAt });
    const silent = await visit({ world, browser, signedInAt }, { max_age: '600' });
    expect(silent.upstreamRequest?.get('max_age')).toBe('600');
    expect(silent.upstreamRequest?.has('prompt')).toBe(false);
    expect([answerOf(silent.page).error, world.lastReason()]).toEqual(['login_required', 'sign_in_needed']);
    const again = await visit({ world, browser, signedInAt: world.now() }, { max_age: '600' });
    expect(decodeJwt((await redeem(world, again.page)).id_token).auth_time).toBe(seconds(world.now()));
    expect((await visit({ world, browser }, { max_age: '600' })).upstreamRequest).toBeUndefined();
  });

  it.each<[string, Query]>([
    ['prompt=login', { prompt: 'login' }],
    ['max_age=1', { max_age: '1' }],
    ['max_age=0', { max_age: '0' }],
  ])('%s, and the provider signs in silently → login_required; a minute is the tolerance', async (_case, query) => {
    const world = await worldOf();
    const browser = world.browser();
    await visit({ world, browser, signedInAt: world.now() - HOUR });
    for (const [age, expected] of [
      [HOUR, 'login_required'],
      [MINUTE + 2000, 'login_required'],
      [MINUTE, 'code'],
    ] as const) {
      const { page, upstreamRequest } = await visit({ world, browser, signedInAt: world.now() - age }, query);
      expect(upstreamRequest).toBeDefined();
      expect(answerOf(page).error ?? 'code', `${age} ms ago`).toBe(expected);
    }
  });
});

describe('a group that changes at the provider', () => {
  it('→ comes with the next sign-in, also to the grants of the one before', async () => {
    const world = await worldOf(Object.assign({}, CLIENT, { groups: ['**'] }));
    const groupsIn = ({ id_token }: Tokens) => decodeJwt(id_token).groups;
    const signIn = async (groups: readonly string[]) => {
      upstream.userinfo = { sub: 'ada-1', groups };
      const { page } = await visit({ world, browser: world.browser() }, { scope: 'openid groups' });
      return redeem(world, page);
    };
    const refresh = ({ refresh_token }: Tokens) => tokensFor(world, { grant_type: 'refresh_token', refresh_token });

    const first = await signIn(['dev']);
    expect(groupsIn(first)).toEqual(['corp:dev']);
    upstream.userinfo = { sub: 'ada-1', groups: ['ops'] };
    const renewed = await refresh(first);
    expect(groupsIn(renewed)).toEqual(['corp:dev']);
    expect(groupsIn(await signIn(['ops']))).toEqual(['corp:ops']);
    expect(groupsIn(await refresh(renewed))).toEqual(['corp:ops']);
  });
});
