// Sign-in by an identity provider with all state in Redis: what a browser leaves there before it is signed in, what of the provider
// is kept, a record that another party has changed, and `verifyEvery` at another replica.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { PKCE, readJson, TestClock } from '../../../grantry.ts';
import { idTokenKey, OPENID } from '../../../http/sign-in/openid-world.ts';
import { answerOf, type TestBrowser } from '../../../http/sign-in/sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../../../http/sign-in/sign-in-world.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { dump, secretsIn } from '../../setup/dump.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const HOUR = 3_600_000;
const ISSUER = 'https://login.example';
const CLIENT = Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'] });
const key = await idTokenKey();
const pepper = randomBytes(32);
const keys = new RedisKeys('grantry:');
const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

describeRedis('people of a provider', () => {
  let clock: TestClock;
  let server: RedisServer;
  let connection: ManagedConnection;
  let upstream: ScriptedProvider;
  let here: World;
  let there: World;

  beforeAll(async () => {
    [server, upstream] = await Promise.all([startRedis(), ScriptedProvider.start()]);
    connection = await connectFrozen(server, { now: () => clock.now() });
    upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
    upstream.userinfo = { sub: 'ada-1' };
  });
  beforeEach(async () => {
    clock = new TestClock();
    await server.command('FLUSHALL');
    [here, there] = await Promise.all([replica(), replica()]);
    await here.usersRecorded();
  });
  afterAll(async () => {
    upstream.stop();
    await connection.close();
    await server.stop();
  });

  /** One of two that share all but their memory. */
  function replica(): Promise<World> {
    const providers = [anOidcProvider({ issuer: upstream.issuer, verifyEvery: HOUR / 2 })];
    const stores = redisStores({ connection, keys });
    const shared = { clients: [CLIENT], keys: [key], issuer: ISSUER, hasNoUsers: true };
    return aWorld(Object.assign(shared, { providers, stores, clock, pepper }));
  }

  async function signIn(browser: TestBrowser): Promise<Tokens> {
    const { searchParams } = new URL((await browser.get(here.authorizePath({ scope: 'openid' }))).location ?? '');
    upstream.nonce = searchParams.get('nonce') ?? '';
    const state = searchParams.get('state') ?? '';
    let page = await browser.get(`/login/callback/corp?state=${state}&code=the-code-of-the-provider`);
    while (page.location?.startsWith('/')) page = await browser.get(page.location);
    const { code = '' } = answerOf(page);
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    return await readJson(await here.post('/token', form, asClient));
  }

  /** What of it works at a replica. */
  async function worksAt(world: World, { browser, tokens }: { browser: TestBrowser; tokens: Tokens }) {
    const { access_token, refresh_token } = tokens;
    const elsewhere = world.browser();
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
    const silent = await elsewhere.get(world.authorizePath({ scope: 'openid', prompt: 'none' }));
    const introspected = await world.post('/introspect', { token: access_token }, asClient);
    const refreshed = await world.post('/token', { grant_type: 'refresh_token', refresh_token }, asClient);
    return {
      session: answerOf(silent).error ?? 'code',
      introspection: (await readJson(introspected)).active,
      refresh: refreshed.status,
    };
  }

  const ALL = { session: 'code', introspection: true, refresh: 200 };
  const NOTHING = { session: 'login_required', introspection: false, refresh: 400 };

  it('given a flood of browsers that leave for the provider, with cookies and without → no key in Redis', async () => {
    const before = await dump(server);
    const browser = here.browser();
    for (let count = 0; count < 100; count += 1) {
      const pages = [here.browser(), browser].map((each) => each.get(here.authorizePath({ state: `s${count}` })));
      for (const { status } of await Promise.all(pages)) expect(status).toBe(302);
    }
    expect(await dump(server)).toBe(before);
  });

  it('given a sign-in, a refresh and a callback that fails → no token, code, verifier, state or secret of the provider is kept, logged or counted', async () => {
    upstream.accessToken = randomBytes(24).toString('base64url');
    const browser = here.browser();
    const tokens = await signIn(browser);
    await here.post('/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }, asClient);
    const other = here.browser();
    const { location = '' } = await other.get(here.authorizePath());
    const state = new URL(location).searchParams.get('state') ?? '';
    expect((await other.get(`/login/callback/corp?state=${state}&code=a-made-up-code`)).status).toBe(502);
    const request = new URL(location).searchParams;
    const secrets = new Set([
      ...['the-code-of-the-provider', 'a-made-up-code', 'the secret of grantry!!!!!!!!!!!'],
      ...[upstream.accessToken, ...upstream.idTokens, state, upstream.nonce],
      ...upstream.redeemed.map(({ form }) => form.get('code_verifier') ?? ''),
      ...[request.get('nonce') ?? '', request.get('code_challenge') ?? ''],
      ...browser.cookies.values(),
      ...other.cookies.values(),
    ]);
    expect(secrets.size).toBeGreaterThanOrEqual(12);
    const kept = await dump(server);
    expect(kept).toMatch(/:person[: ]/);
    expect(secretsIn(kept, secrets)).toEqual([]);
    expect(secretsIn(JSON.stringify(here.logs()), secrets)).toEqual([]);
    expect(secretsIn(await here.metrics(), secrets)).toEqual([]);
  });

  it.each<[string, string, string]>([
    ['its group', '"groups":[]', '"groups":["admins"]'],
    ['its user name', '"username":"ada"', '"username":"root"'],
    ['its address', 'ada@corp.example.com', 'root@corp.example.com'],
    ['its provider', '"provider":"corp"', '"provider":"partner"'],
  ])('given a record in which another party has changed %s → refused, with an alert', async (_what, from, to) => {
    const browser = here.browser();
    const tokens = await signIn(browser);
    const [record = ''] = (await server.command('KEYS', '*:person:*')) as string[];
    const text = String(await server.command('HGET', record, 'v'));
    expect(text).toContain(from);
    await server.command('HSET', record, 'v', text.replace(from, to));
    expect(await worksAt(there, { browser, tokens })).toEqual(NOTHING);
    const forged = there.logs().filter(({ event }) => event === 'state_forged');
    expect(new Set(forged.map(({ reason }) => reason))).toEqual(new Set(['person']));
    expect(await there.metrics()).toMatch(/^grantry_state_forged_total [1-9]/m);
  });

  it('given a record of later than it was → refused, with an alert', async () => {
    const browser = here.browser();
    const tokens = await signIn(browser);
    const [record = ''] = (await server.command('KEYS', '*:person:*')) as string[];
    const time = Number(await server.command('HGET', record, 't'));
    await server.command('HSET', record, 't', time + HOUR, 'e', time + 2 * HOUR);
    expect(await worksAt(there, { browser, tokens })).toEqual(NOTHING);
    expect(there.logs()).toContainEqual(expect.objectContaining({ event: 'state_forged', reason: 'person' }));
  });

  it('given `verifyEvery` after the sign-in at one replica → nothing holds at the other, and no session is ended', async () => {
    const browser = here.browser();
    const held = { browser, tokens: await signIn(browser) };
    clock.advance(60_000);
    const another = here.browser();
    const later = { browser: another, tokens: await signIn(another) };
    expect(await worksAt(there, held)).toEqual(ALL);
    // Access tokens end after ten minutes.
    clock.advance(HOUR / 2 - 1000);
    expect(await worksAt(there, later)).toEqual(Object.assign({}, ALL, { introspection: false }));
    // Redis dates the record by its own time, some milliseconds after this clock.
    clock.advance(2000);
    const renewed = Object.assign({}, later, { tokens: later.tokens });
    expect(await worksAt(there, renewed)).toEqual(NOTHING);
    expect([...here.events, ...there.events].map(({ type }) => type)).not.toContain('session.ended');
  });
});
