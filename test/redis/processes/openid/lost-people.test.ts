// What a Redis that has lost everything costs people of an identity provider, as the guide says it.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { PKCE, TestClock } from '../../../grantry.ts';
import { idTokenKey, OPENID } from '../../../http/sign-in/openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../../../http/sign-in/sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../../../http/sign-in/sign-in-world.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const CLIENT = Object.assign({}, OPENID, {
  consent: 'Required' as const,
  grantTypes: ['authorization_code', 'refresh_token'],
});
const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };
const key = await idTokenKey();

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

describeRedis('a Redis that has lost everything', () => {
  const clock = new TestClock();
  let server: RedisServer;
  let connection: ManagedConnection;
  let upstream: ScriptedProvider;
  let world: World;

  beforeAll(async () => {
    [server, upstream] = await Promise.all([startRedis(), ScriptedProvider.start()]);
    connection = await connectFrozen(server, { now: () => clock.now() });
    upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example', email_verified: true };
    upstream.userinfo = { sub: 'ada-1' };
  });
  afterAll(async () => {
    upstream.stop();
    await connection.close();
    await server.stop();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    const stores = redisStores({ connection, keys: new RedisKeys('grantry:') });
    const providers = [anOidcProvider({ issuer: upstream.issuer })];
    world = await aWorld({ clients: [CLIENT], keys: [key], clock, stores, providers, hasNoUsers: true });
  });

  /** @returns the path by which the browser comes back */
  async function leave(browser: TestBrowser): Promise<string> {
    const page = await browser.get(world.authorizePath({ scope: 'openid' }));
    expect(page.location).toContain(upstream.issuer);
    const { searchParams } = new URL(page.location ?? '');
    upstream.nonce = searchParams.get('nonce') ?? '';
    return `/login/callback/corp?state=${searchParams.get('state')}&code=c`;
  }

  /** The person is asked for consent, and allows. */
  async function allowed(browser: TestBrowser, page: Page): Promise<Page> {
    let path = '';
    let at = page;
    while (at.location?.startsWith('/')) {
      path = at.location;
      at = await browser.get(path);
    }
    at = await browser.post(path, { decision: 'allow', csrf: hidden(at, 'csrf') });
    while (at.location?.startsWith('/')) at = await browser.get(at.location);
    return at;
  }

  async function tokensOf(browser: TestBrowser, page: Page): Promise<Tokens> {
    const { code = '' } = answerOf(await allowed(browser, page));
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    return (await (await world.post('/token', form, asClient)).json()) as Tokens;
  }

  /** The `sub` of userinfo; undefined where the token does not count. */
  async function subjectBy({ access_token }: Tokens): Promise<string | undefined> {
    const answer = await world.post('/userinfo', {}, { headers: { authorization: `Bearer ${access_token}` } });
    return answer.status === 200 ? ((await answer.json()) as { sub: string }).sub : undefined;
  }

  it('→ nothing that was held counts; the next sign-in asks for consent, and is the same person', async () => {
    const browser = world.browser();
    const tokens = await tokensOf(browser, await browser.get(await leave(browser)));
    const subject = await subjectBy(tokens);
    expect(subject).toMatch(/^usr_/);
    await server.command('FLUSHALL');
    expect(await subjectBy(tokens)).toBeUndefined();
    const { refresh_token } = tokens;
    const refreshed = await world.post('/token', { grant_type: 'refresh_token', refresh_token }, asClient);
    expect([refreshed.status, await refreshed.json()]).toMatchObject([400, { error: 'invalid_grant' }]);
    const again = await tokensOf(browser, await browser.get(await leave(browser)));
    expect(await subjectBy(again)).toBe(subject);
  });

  it('→ a person who is at the provider comes back and is signed in', async () => {
    const browser = world.browser();
    const back = await leave(browser);
    await server.command('FLUSHALL');
    expect(await subjectBy(await tokensOf(browser, await browser.get(back)))).toMatch(/^usr_/);
  });

  it('→ the switches of the manifest hold', async () => {
    await server.command('FLUSHALL');
    await world.setProviders([anOidcProvider({ issuer: upstream.issuer, revokedBefore: clock.now() + 60_000 })]);
    const browser = world.browser();
    expect([(await browser.get(await leave(browser))).status, world.lastReason()]).toEqual([
      403,
      'person_not_permitted',
    ]);
    await world.setProviders([anOidcProvider({ issuer: upstream.issuer, isSuspended: true })]);
    expect((await browser.get('/login/callback/corp?state=abcdefghij&code=c')).status).toBe(404);
  });
});
