// A whole visit over HTTP, from sign-in to revocation, and then a dump of everything Redis holds: nothing in it can be
// used by an attacker who steals it.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { AlertOutbox } from '../../../src/redis/grants/alert-outbox.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { basic, type Grantry, PKCE, readJson, startGrantry } from '../../grantry.ts';
import { answerOf, hidden, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { aClient } from '../../oauth/a-client.ts';
import { dump, secretsIn } from '../setup/dump.ts';
import { connectFrozen } from '../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const PASSWORD = 'correct horse battery';
const SECRET = 'a-secret-of-the-shop-that-is-long-enough';
const CALLBACK = 'https://shop.example/callback';
const uid = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001';
const JWT = aClient({ uid, secretVerifiers: [secretVerifier(uid, SECRET)] });
const otherUid = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0002';
const OPAQUE = {
  ...aClient({ uid: otherUid, clientId: 'shop.opaque', secretVerifiers: [secretVerifier(otherUid, SECRET)] }),
  tokens: { ...JWT.tokens, accessTokenFormat: 'opaque' as const },
};

/** Everything that a visit leaves in Redis. */
const KINDS = [
  'g',
  'token',
  'jti',
  'outbox',
  'outbox:webhook',
  'session',
  'sessions',
  'interactions',
  'consents',
  'seen',
  'rate',
];

const keys = new RedisKeys('grantry:');

describeRedis('a dump of Redis', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let grantry: Grantry;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectFrozen(server, { now: () => grantry.clock.now() });
    const passwordHash = await hashPassword(PASSWORD);
    grantry = await startGrantry({
      clients: [OPAQUE, JWT],
      owners: new LocalUsers({ clock: systemClock, users: [{ username: 'alice', passwordHash, disabled: false }] }),
      rateLimits: true,
      wrapStores: () => redisStores({ connection, keys }),
    });
  });
  afterAll(async () => {
    await grantry.stop();
    await connection.close();
    await server.stop();
  });

  it('holds no password, cookie, sealed request, code, verifier or token of a visit', async () => {
    const secrets = new Set([PASSWORD, SECRET, PKCE.verifier]);
    const held: string[] = [];
    const look = async () => held.push(await dump(server));
    const codes = [await use(OPAQUE, secrets, look), await use(JWT, secrets, look)];
    const outbox = new AlertOutbox({ connection, keys });
    const lists = await Promise.all(SHARDS.map((shard) => outbox.raised.list(shard)));
    for (const queued of lists.flat()) {
      await outbox.raised.take(queued, 1000);
      await look();
      if (queued.alert !== undefined) await outbox.forward(queued.alert, true);
      await outbox.webhook.take(queued, 1000);
    }
    await look();

    const all = held.join('\n');
    // The marker and the issuer are written by the program around the stores, watermarks by kill switches.
    for (const kind of KINDS) expect(all, kind).toMatch(new RegExp(`\\{s\\d{3}\\}:${kind}[: ]`));
    expect(secrets.size).toBeGreaterThan(20);
    expect([...secrets].filter((secret) => secret.startsWith('ey')).length).toBeGreaterThanOrEqual(2);
    expect(secretsIn(all, secrets)).toEqual([]);
    for (const code of codes) expect(secretsIn(`${all} ${code.split('.').at(-1)}`, secrets)).toEqual([code]);
  });

  /** A whole visit at one client, to the end of its tokens and to an alert. @returns its code */
  async function use(client: Client, secrets: Set<string>, look: () => Promise<unknown>): Promise<string> {
    const { browser, code } = await visit(client, secrets, look);
    const headers = { authorization: basic(client.clientId, SECRET) };
    const token = async (form: Record<string, string>) => {
      const response = await grantry.post('/token', form, { headers });
      expect(response.status).toBe(200);
      const { access_token, refresh_token } = await readJson(response);
      for (const each of [access_token, refresh_token]) secrets.add(each);
      return { access_token, refresh_token };
    };
    const redemption = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const first = await token(redemption);
    const second = await token({ grant_type: 'refresh_token', refresh_token: first.refresh_token });
    await look();
    await grantry.post('/revoke', { token: second.access_token }, { headers });
    await look();
    const replay = await grantry.post('/token', redemption, { headers });
    expect(replay.status).toBe(400);
    await look();
    for (const value of browser.cookies.values()) secrets.add(value);
    return code;
  }

  /** Signs in, is asked, allows; adds what the browser was given to the secrets. */
  async function visit(client: Client, secrets: Set<string>, look: () => Promise<unknown>) {
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const remember = () => {
      for (const value of browser.cookies.values()) secrets.add(value);
    };
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: client.clientId,
      redirect_uri: CALLBACK,
      scope: 'shop/read',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    });
    const login = await browser.get(`/authorize?${query}`);
    remember();
    const sealed = { csrf: hidden(login, 'csrf'), request: hidden(login, 'request') };
    const wrong = await browser.post('/login', { username: 'alice', password: 'a wrong password', ...sealed });
    expect(wrong.status).toBe(422);
    const signedIn = await browser.post('/login', { username: 'alice', password: PASSWORD, ...sealed });
    expect(signedIn.status).toBe(303);
    remember();
    const asked = await browser.get(signedIn.location ?? '');
    const csrf = hidden(asked, 'csrf');
    for (const each of [sealed.csrf, sealed.request, csrf, 'a wrong password']) secrets.add(each);
    await look();
    const allowed = await browser.post(signedIn.location ?? '', { decision: 'allow', csrf });
    await look();
    const { code = '' } = answerOf(await browser.get(allowed.location ?? ''));
    secrets.add(code);
    await look();
    return { browser, code };
  }
});
