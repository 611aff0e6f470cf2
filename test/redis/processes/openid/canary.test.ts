// A whole visit of OpenID Connect over HTTP, from sign-in to the notice of its end, with tokens where they do not belong. Then all
// that leaves the server beside answers, and all that Redis holds: no ID token, hint, logout token, nonce or state is in it.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../../../src/login/local/local-users.ts';
import { secretVerifier } from '../../../../src/oauth/registry/client-secret.ts';
import { systemClock } from '../../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { basic, type Grantry, PKCE, startGrantry, TestClock } from '../../../grantry.ts';
import { answerOf, hidden, type Page, TestBrowser } from '../../../http/sign-in/sign-in-browser.ts';
import { aClient } from '../../../oauth/a-client.ts';
import { until } from '../../../until.ts';
import { type Receiver, startReceiver } from '../../../webhook/receiver.ts';
import { dump, secretsIn } from '../../setup/dump.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';
import { DeliveringReplica } from '../delivering-replica.ts';

const PASSWORD = 'correct horse battery';
const SECRET = 'a-secret-of-the-shop-that-is-long-enough';
const CALLBACK = 'https://shop.example/callback';
const BYE = 'https://shop.example/bye';
const uid = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001';
const NONCE = 'canary-nonce-of-the-request';
const REFUSED_NONCE = `canary-nonce-that-is-refused-${'n'.repeat(512)}`;
const STATE = 'canary-state-of-the-sign-out';

const keys = new RedisKeys('grantry:');

describeRedis('a visit of OpenID Connect', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let receiver: Receiver;
  let replica: DeliveringReplica;
  let host: Server;
  const clock = new TestClock();
  let grantry: Grantry;
  const notices: string[] = [];
  const secrets = new Set<string>();

  beforeAll(async () => {
    [server, receiver] = await Promise.all([startRedis(), startReceiver()]);
    connection = await connectFrozen(server, { now: () => clock.now() });
    host = createServer(async (request, response) => {
      notices.push(await text(request));
      response.writeHead(notices.length === 1 ? 500 : 400).end(notices.at(-1));
    });
    host.listen(0, '127.0.0.1');
    await once(host, 'listening');
    const client = aClient({
      uid,
      secretVerifiers: [secretVerifier(uid, SECRET)],
      scopes: ['openid', 'profile'],
      consent: 'Skip',
      postLogoutRedirectUris: [BYE],
      backchannelLogoutUri: `http://127.0.0.1:${(host.address() as AddressInfo).port}/`,
      idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 600 },
    });
    const users = [{ username: 'alice', passwordHash: await hashPassword(PASSWORD), disabled: false }];
    grantry = await startGrantry({
      clock,
      clients: [client],
      owners: new LocalUsers({ clock: systemClock, users }),
      fetch: { networks: ['127.0.0.0/8'] },
      wrapStores: () => redisStores({ connection, keys }),
    });
    const onReconnect = () => {};
    replica = new DeliveringReplica({ connection, keys, onReconnect, webhookUrl: receiver.url });
  });
  afterAll(async () => {
    await replica.delivery.stop();
    await grantry.stop();
    receiver.stop();
    host.closeAllConnections();
    host.close();
    await connection.close();
    await server.stop();
  });

  const account = { authorization: basic('shop.web', SECRET) };

  function authorizePath(changes: Readonly<Record<string, string>> = {}): string {
    const request = {
      response_type: 'code',
      client_id: 'shop.web',
      redirect_uri: CALLBACK,
      scope: 'openid profile',
      nonce: NONCE,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    };
    return `/authorize?${new URLSearchParams({ ...request, ...changes })}`;
  }

  async function signIn(browser: TestBrowser): Promise<Page> {
    const page = await browser.get(authorizePath());
    const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const { location = '' } = await browser.post('/login', { username: 'alice', password: PASSWORD, ...sealed });
    return await browser.get(location);
  }

  /** An answer of the token endpoint; its tokens are secrets. */
  async function token(form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = account) {
    const response = await grantry.post('/token', form, { headers });
    const body = (await response.json()) as Readonly<Record<string, string>>;
    for (const name of ['id_token', 'access_token', 'refresh_token']) if (body[name]) secrets.add(body[name]);
    return body;
  }

  /** The ID token wherever a client may send it by mistake, or to try what happens. */
  async function sendEverywhere(idToken: string): Promise<void> {
    const authorization = `Bearer ${idToken}`;
    const assertion = { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' };
    await fetch(grantry.url('/userinfo'), { headers: { authorization } });
    await grantry.post('/introspect', { token: idToken }, { headers: account });
    await grantry.post('/revoke', { token: idToken, token_type_hint: idToken }, { headers: account });
    await token({ grant_type: 'refresh_token', refresh_token: idToken });
    await token({ grant_type: 'client_credentials' }, { ...account, dpop: idToken });
    await token({ grant_type: 'client_credentials', ...assertion, client_assertion: idToken }, {});
    await token({ grant_type: idToken });
    await fetch(grantry.url(`/${idToken}`));
    await fetch(grantry.url('/logout'), { method: 'PUT', body: new URLSearchParams({ id_token_hint: idToken }) });
  }

  async function visit(): Promise<void> {
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const { code = '' } = answerOf(await signIn(browser));
    const redemption = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const { id_token = '', refresh_token = '', access_token } = await token(redemption);
    const again = await token({ grant_type: 'refresh_token', refresh_token });
    expect([id_token, again.id_token]).toEqual([expect.any(String), expect.any(String)]);
    await fetch(grantry.url('/userinfo'), { headers: { authorization: `Bearer ${access_token}` } });

    const hinted = { id_token_hint: id_token, prompt: 'none' };
    expect(answerOf(await browser.get(authorizePath(hinted)))).toHaveProperty('code');
    expect(answerOf(await browser.get(authorizePath({ id_token_hint: `${id_token}x` })))).toHaveProperty('error');
    expect(answerOf(await browser.get(authorizePath({ nonce: REFUSED_NONCE })))).toHaveProperty('error');
    await sendEverywhere(id_token);
    // The alert of a replayed code.
    await token(redemption);

    const bye = { post_logout_redirect_uri: BYE, state: STATE };
    const refused = new URLSearchParams({ ...bye, id_token_hint: `${id_token}x` });
    expect((await browser.get(`/logout?${refused}`)).status).toBe(400);
    const asked = await browser.get(`/logout?${new URLSearchParams({ ...bye, client_id: 'shop.web' })}`);
    expect(asked.body).toContain(STATE);
    const { location } = await browser.get(`/logout?${new URLSearchParams({ ...bye, id_token_hint: id_token })}`);
    expect(location).toBe(`${BYE}?state=${STATE}`);
    await until('the host is notified', () => notices.length > 0);
    for (const notice of notices) secrets.add(new URLSearchParams(notice).get('logout_token') ?? '');
  }

  it('leaves no ID token, hint, logout token, nonce or state in logs, audit, metrics, alerts and Redis', async () => {
    const held: string[] = [];
    await visit();
    held.push(await dump(server));
    // A fresh alert is left to the replica that raised it.
    clock.advance(3_600_000);
    await replica.delivery.sweep();
    await until('the alert is posted', () => receiver.received.length > 0);
    held.push(await dump(server));

    const left = [
      ...grantry.logs().map((line) => JSON.stringify(line)),
      await (await fetch(grantry.adminUrl('/metrics'))).text(),
      ...replica.lines.map((line) => JSON.stringify(line)),
      await replica.metrics.text(),
      ...receiver.received.map(({ headers, body }) => JSON.stringify([headers, body])),
    ].join('\n');
    for (const event of ['session.ended', 'authorization_code.replayed', 'token.issued']) expect(left).toContain(event);
    expect([...secrets].filter((secret) => secret.startsWith('ey')).length).toBeGreaterThanOrEqual(5);
    const [notice = ''] = notices;
    expect(secretsIn(notice, secrets)).toHaveLength(1);
    expect(secretsIn(left, [...secrets, 'canary-nonce', 'canary-state'])).toEqual([]);
    // A grant has its nonce until its first refresh, and an interaction until it is answered.
    expect(secretsIn(held.join('\n'), [...secrets, REFUSED_NONCE, STATE])).toEqual([]);
    expect(held.join('\n')).toMatch(/\{s\d{3}\}:logouts /);
  });
});
