// What is still answered by a running grantry while its Redis is gone, and how soon all is again once it recovers.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answerIn } from '../../clients/person.ts';
import { PKCE } from '../../grantry.ts';
import { hidden, type Page, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { folderOf, machineClient, removeFolder } from '../../manifests/a-folder.ts';
import { endProcesses, post, startDev } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { expectWithin, timed } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const PERSON = { username: 'ann', password: 'a long password', decision: 'allow' } as const;
const CALLBACK = 'https://shop.example/cb';
const BYE = 'https://shop.example/bye';
const WEB = `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: web}
spec:
  grantTypes: [authorization_code, refresh_token]
  auth: {method: none}
  redirectUris: ['${CALLBACK}']
  postLogoutRedirectUris: ['${BYE}']
  scopes: [default/read, openid, profile]
  defaultScopes: [default/read]
`;
const scopes = '  scopes: [default/read]\n  defaultScopes: [default/read]\n';
const POLICY = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: of-tests}
spec:
  namespaceSelector: {}
`;
const MANIFESTS = {
  // Errors of a client that only the baseline admits are a page where no session can be read.
  'policy.yaml': POLICY,
  'web.yaml': WEB,
  'job.yaml': machineClient('job', scopes),
  'opaque.yaml': machineClient('opaque', `${scopes}  tokens: {accessTokenFormat: opaque}\n`),
};

/** By when a server on a busy machine has answered, in milliseconds; how long a request waits for Redis, connection.test.ts holds. */
const IN_TIME = 5000;

describeRedis('while Redis is unavailable', () => {
  let redis: RedisServer;
  let folder: string;
  let dev: Awaited<ReturnType<typeof startDev>>;
  let browser: TestBrowser;
  let credentials: Readonly<Record<'job' | 'opaque', string>>;
  let tokens: Readonly<Record<'refresh' | 'access' | 'machine' | 'code' | 'person' | 'hint', string>>;
  /** Of the question whether the person wants to sign out. */
  let csrf: string;

  beforeAll(async () => {
    redis = await startRedis({ persistent: true });
    folder = await folderOf(MANIFESTS);
    const flags = ['--redis', redis.url, '--user', `${PERSON.username}:${PERSON.password}`];
    dev = await startDev(folder, flags, { environment: { GRANTRY_LOG_FORMAT: 'json' } });
    const secret = async (name: string) =>
      (await readFile(join(folder, `.grantry/secrets/${name}.secret`), 'utf8')).trim();
    credentials = {
      job: `default.job:${await secret('default.job')}`,
      opaque: `default.opaque:${await secret('default.opaque')}`,
    };
    browser = new TestBrowser(dev.address, dev.issuer);
    const { body } = await post(`${dev.issuer}/token`, redemption(await newCode()));
    const machine = await clientCredentials('job');
    const person = (await post(`${dev.issuer}/token`, redemption(await newCode('openid profile')))).body;
    csrf = hidden(await browser.get('/logout'), 'csrf');
    tokens = {
      refresh: String(body.refresh_token),
      access: String(body.access_token),
      machine: String(machine.body.access_token),
      code: await newCode(),
      person: String(person.access_token),
      hint: String(person.id_token),
    };
    await redis.kill();
    await until('readiness has noticed', async () => /redis: away/.test(await (await readyz()).text()));
  });
  afterAll(async () => {
    await endProcesses();
    await redis.stop();
    await removeFolder(folder);
  });

  const authorization = (scope?: string) => {
    const url = new URL(`${dev.issuer}/authorize`);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: 'default.web',
      redirect_uri: CALLBACK,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
      ...(scope !== undefined && { scope }),
    }).toString();
    return url;
  };
  const newCode = async (scope?: string) =>
    (await answerIn(browser, authorization(scope), PERSON)).searchParams.get('code') ?? '';
  const redemption = (code: string) => ({
    grant_type: 'authorization_code',
    client_id: 'default.web',
    redirect_uri: CALLBACK,
    code,
    code_verifier: PKCE.verifier,
  });
  const refreshing = () => ({ grant_type: 'refresh_token', client_id: 'default.web', refresh_token: tokens.refresh });
  const userinfo = () => fetch(`${dev.issuer}/userinfo`, { headers: { authorization: `Bearer ${tokens.person}` } });
  const signOut = (from: TestBrowser) =>
    from.get(`/logout?${new URLSearchParams({ id_token_hint: tokens.hint, post_logout_redirect_uri: BYE })}`);
  const readyz = () => fetch(`${dev.admin}/readyz`);
  const metric = async (name: string) =>
    (await (await fetch(`${dev.admin}/metrics`)).text()).split('\n').filter((line) => line.startsWith(name));
  function clientCredentials(client: 'job' | 'opaque') {
    return post(`${dev.issuer}/token`, { grant_type: 'client_credentials' }, credentials[client]);
  }

  const isRecovered = async () => {
    return (await post(`${dev.issuer}/introspect`, { token: tokens.machine }, credentials.job)).status === 200;
  };

  /** What a machine gets without a request to Redis, however Redis is. */
  async function expectTokensWithoutRedis(): Promise<void> {
    const before = await metric('grantry_store_duration_seconds_count');
    for (let count = 0; count < 20; count++) {
      const answer = await clientCredentials('job');
      expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer' } });
    }
    expect(await metric('grantry_store_duration_seconds_count')).toEqual(before);
  }

  it('a machine gets its JWT without a request to Redis; metadata and keys are served', async () => {
    await expectTokensWithoutRedis();
    for (const path of ['jwks.json', 'oauth-authorization-server', 'openid-configuration'].map(
      (name) => `/.well-known/${name}`,
    )) {
      expect((await fetch(`${dev.issuer}${path}`)).status).toBe(200);
    }
  });

  it.each<[string, string, () => Readonly<Record<string, string>>, ('job' | 'opaque')?]>([
    ['a code', '/token', () => redemption(tokens.code)],
    ['a refresh token', '/token', refreshing],
    ['an opaque token for a machine', '/token', () => ({ grant_type: 'client_credentials' }), 'opaque'],
    ['a revocation', '/revoke', () => ({ token: tokens.refresh, client_id: 'default.web' })],
    ['an introspection', '/introspect', () => ({ token: tokens.machine }), 'job'],
  ])('%s is answered 503 with Retry-After, in time', async (_, path, form, client) => {
    const authorization = client && `Basic ${Buffer.from(credentials[client]).toString('base64')}`;
    const { value: response, milliseconds } = await timed(() =>
      fetch(`${dev.issuer}${path}`, {
        method: 'POST',
        body: new URLSearchParams(form()),
        headers: authorization === undefined ? {} : { authorization },
      }),
    );
    expect(response?.status).toBe(503);
    expect(response?.headers.get('retry-after')).toBe('1');
    expect(await response?.json()).toMatchObject({ error: 'temporarily_unavailable' });
    expect(milliseconds).toBeLessThan(IN_TIME);
  });

  it('userinfo is answered 503 with Retry-After, in time, and says nothing of the person', async () => {
    const { value: response, milliseconds } = await timed(userinfo);
    expect([response?.status, response?.headers.get('retry-after')]).toEqual([503, '1']);
    expect(Object.keys((await response?.json()) as object)).toEqual(['error', 'error_description']);
    expect(milliseconds).toBeLessThan(IN_TIME);
  });

  it.each<[string, () => Promise<Page>]>([
    ['with a hint and an address', () => signOut(browser)],
    ['with a hint, from a browser without a session', () => signOut(new TestBrowser(dev.address, dev.issuer))],
    ['without a hint', () => browser.get('/logout')],
    ['by the form of the question', () => browser.post('/logout/confirm', { csrf })],
  ])('a sign-out %s is a 503 page with Retry-After, in time, and takes no cookie', async (_, request) => {
    const { value: page, milliseconds } = await timed(request);
    expect([page?.status, page?.headers.get('retry-after'), page?.location]).toEqual([503, '1', undefined]);
    expect(page?.headers.getSetCookie()).toEqual([]);
    expect(page?.body).toContain('The server cannot finish this right now');
    expect(milliseconds).toBeLessThan(IN_TIME);
  });

  it('the application gets the error for a person who is signed in; all others see a page that says so', async () => {
    const back = await answerIn(browser, authorization(), PERSON);
    expect(`${back.origin}${back.pathname}`).toBe(CALLBACK);
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ error: 'temporarily_unavailable', iss: dev.issuer });
    const stranger = new TestBrowser(dev.address, dev.issuer);
    expect((await stranger.get(`/authorize${authorization().search}`)).status).toBe(200);
    const signingIn = answerIn(stranger, authorization(), PERSON);
    await expect(signingIn).rejects.toThrow('no form to fill in on a page with status 503');
    const page = await browser.get(`/consent/${'x'.repeat(43)}`);
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '1']);
    expect(page.body).toContain('The server cannot finish this right now');
  });

  it('readiness stays green and says which Redis is unavailable; the metrics say so too', async () => {
    const response = await readyz();
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/^redis: away: 127\.0\.0\.1:\d+ .+$/m);
    expect(await metric('grantry_store_up')).toEqual(['grantry_store_up 0']);
    expect(await metric('grantry_store_errors_total{operation="grants.redeem"')).toEqual([
      expect.stringMatching(/reason="disconnected"\} \d+$/),
    ]);
  });

  it('recovered, all is answered within a second, nothing was used up and no replica restarted', async () => {
    await expectWithin(1000, async () => {
      await redis.kill();
      await redis.start();
      return (await timed(() => until('Redis recovers', isRecovered))).milliseconds;
    });
    expect((await post(`${dev.issuer}/token`, refreshing())).status).toBe(200);
    const { body } = await post(`${dev.issuer}/introspect`, { token: tokens.machine }, credentials.job);
    expect(body.active).toBe(true);
    expect(await (await userinfo()).json()).toMatchObject({
      sub: expect.stringMatching(/^usr_/),
      preferred_username: PERSON.username,
    });
    // Still signed in: no request to sign out has taken effect.
    expect((await browser.get(`/authorize${authorization().search}`)).location).toContain(`${CALLBACK}?code=`);
    expect(await newCode()).not.toBe('');
    expect(await (await readyz()).text()).toContain('redis: ok\n');
    expect(await metric('grantry_store_up')).toEqual(['grantry_store_up 1']);
    expect((await metric('grantry_store_duration_seconds_count{operation="grants.rotate"}')).length).toBe(1);
    // A restart made another history: what was a code before may have been redeemed in the one that was lost.
    const { status, body: refused } = await post(`${dev.issuer}/token`, redemption(tokens.code));
    expect([status, refused.error]).toEqual([400, 'invalid_grant']);
  });
  it('a Redis that is silent instead of gone costs no more, and machines do not notice', async () => {
    redis.pause();
    try {
      const many = Array.from({ length: 20 }, () => timed(() => post(`${dev.issuer}/token`, refreshing())));
      for (const { value, milliseconds } of await Promise.all(many)) {
        expect(value?.status).toBe(503);
        expect(milliseconds).toBeLessThan(IN_TIME);
      }
      await expectTokensWithoutRedis();
    } finally {
      redis.resume();
    }
    await expectWithin(1000, async () => {
      redis.pause();
      await until('Redis is missed', async () => !(await isRecovered()));
      redis.resume();
      return (await timed(() => until('Redis recovers', isRecovered))).milliseconds;
    });
  });
});
