// What people and clients can do over HTTP while the memory of Redis is full: deny, sign out and revoke; all else is
// refused with 503 and succeeds once there is room.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { basic, type Grantry, PKCE, readJson, startGrantry } from '../../grantry.ts';
import { answerOf, hidden, type Page, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { connectFrozen } from '../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const SECRET = 'a-secret-of-the-shop-that-is-long-enough';
const PASSWORD = 'correct horse battery';
const CALLBACK = 'https://app.example/cb';

describeRedis('while the memory of Redis is full', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let grantry: Grantry;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectFrozen(server, { now: () => grantry.clock.now() });
    grantry = await startGrantry({
      clients: [{ clientId: 'shop.web', secret: SECRET }],
      users: { alice: PASSWORD },
      wrapStores: () => redisStores({ connection, keys: new RedisKeys('grantry:') }),
    });
  });
  afterEach(() => allow(0));
  afterAll(async () => {
    await grantry.stop();
    await connection.close();
    await server.stop();
  });

  /** @param bytes 0 for no limit */
  async function allow(bytes: number): Promise<void> {
    await server.command('CONFIG', 'SET', 'maxmemory', bytes);
  }

  const AUTHORIZE = `/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'shop.web',
    redirect_uri: CALLBACK,
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  })}`;

  /** A person who is signed in and has the consent page open. */
  async function asked(): Promise<{ browser: TestBrowser; path: string; page: Page }> {
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const { location: path = '' } = await signIn(browser);
    return { browser, path, page: await browser.get(path) };
  }

  async function signIn(browser: TestBrowser): Promise<Page> {
    const page = await browser.get(AUTHORIZE);
    const fields = { username: 'alice', password: PASSWORD };
    return await browser.post('/login', { ...fields, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') });
  }

  const authorization = { headers: { authorization: basic('shop.web', SECRET) } };

  async function token(form: Readonly<Record<string, string>>): Promise<Response> {
    return await grantry.post('/token', form, authorization);
  }

  async function redeem(): Promise<Response> {
    const code = await grantry.issueCode('shop.web');
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    return await token(form);
  }

  it('a person who denies a request → access_denied at the client', async () => {
    const { browser, path, page } = await asked();
    await allow(1);
    const decided = await browser.post(path, { decision: 'deny', csrf: hidden(page, 'csrf') });
    expect(decided.status).toBe(303);
    expect(answerOf(await browser.get(decided.location ?? ''))).toMatchObject({ error: 'access_denied' });
  });

  it('a person who uses another account → the session is over', async () => {
    const { browser, path, page } = await asked();
    await allow(1);
    const cookies = new Map(browser.cookies);
    const left = await browser.post(path, { decision: 'other_account', csrf: hidden(page, 'csrf') });
    expect(left.status).toBe(303);
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    expect((await browser.get(AUTHORIZE)).body).toContain('name="password"');
  });

  it('a person who allows a request → 503, and a code once there is room', async () => {
    const { browser, path, page } = await asked();
    await allow(1);
    const form = { decision: 'allow', csrf: hidden(page, 'csrf') };
    expect((await browser.post(path, form)).status).toBe(503);
    await allow(0);
    const decided = await browser.post(path, form);
    expect(answerOf(await browser.get(decided.location ?? ''))).toMatchObject({ code: expect.any(String) });
  });

  it('a sign-in → 503', async () => {
    await allow(1);
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    expect((await signIn(browser)).status).toBe(503);
  });

  it('a client revokes its tokens; a refresh → 503 with Retry-After, and tokens once there is room', async () => {
    const [lost, kept] = [await readJson(await redeem()), await readJson(await redeem())];
    await allow(1);
    for (const each of [lost.refresh_token, lost.access_token]) {
      expect((await grantry.post('/revoke', { token: each }, authorization)).status).toBe(200);
    }
    const refused = await token({ grant_type: 'refresh_token', refresh_token: kept.refresh_token });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    const introspected = await grantry.post('/introspect', { token: kept.access_token }, authorization);
    expect(introspected.status).toBe(200);
    await allow(0);
    const again = await token({ grant_type: 'refresh_token', refresh_token: kept.refresh_token });
    expect(again.status).toBe(200);
    const dead = await token({ grant_type: 'refresh_token', refresh_token: lost.refresh_token });
    expect(await readJson(dead)).toMatchObject({ error: 'invalid_grant' });
  });
});
