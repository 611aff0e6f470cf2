// A party that may write to Redis and knows no pepper, and has a refresh token of its own: no ID token about another person, and no
// kill switch of its own that does not count.

import { randomBytes } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { PKCE, readJson, TestClock } from '../../../grantry.ts';
import { idTokenKey, OPENID } from '../../../http/sign-in/openid-world.ts';
import { answerOf } from '../../../http/sign-in/sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../../../http/sign-in/sign-in-world.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const CLIENT = Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'] });
const asClient = { headers: { authorization: `Basic ${btoa(`${CLIENT.clientId}:${SECRET}`)}` } };
const keys = new RedisKeys('grantry:');
const key = await idTokenKey();
const pepper = randomBytes(32);

interface Tokens {
  readonly id_token: string;
  readonly refresh_token: string;
}

describeRedis('a grant whose subject another party changes for a moment', () => {
  let clock: TestClock;
  let server: RedisServer;
  let connection: ManagedConnection;
  let upstream: ScriptedProvider;
  beforeAll(async () => {
    clock = new TestClock();
    [server, upstream] = await Promise.all([startRedis(), ScriptedProvider.start()]);
    connection = await connectFrozen(server, { now: () => clock.now() });
  });
  beforeEach(() => server.command('FLUSHALL'));
  afterAll(async () => {
    upstream.stop();
    await connection.close();
    await server.stop();
  });

  async function aServer(): Promise<World> {
    return aWorld(
      Object.assign(
        { clients: [CLIENT], keys: [key], issuer: 'https://login.example', hasNoUsers: true },
        {
          providers: [anOidcProvider({ issuer: upstream.issuer })],
          stores: redisStores({ connection, keys }),
          clock,
          pepper,
        },
      ),
    );
  }

  async function signIn(world: World, sub: string, groups: readonly string[] = []): Promise<Tokens> {
    upstream.claims = { sub, preferred_username: sub, name: sub, groups };
    upstream.userinfo = { sub };
    const browser = world.browser();
    const { searchParams } = new URL((await browser.get(world.authorizePath({ scope: 'openid' }))).location ?? '');
    upstream.nonce = searchParams.get('nonce') ?? '';
    let page = await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c`);
    while (page.location?.startsWith('/')) page = await browser.get(page.location);
    const { code = '' } = answerOf(page);
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    return (await readJson(await world.post('/token', form, asClient))) as unknown as Tokens;
  }

  /** Refreshes at a replica that does not know the grant, once with the subject changed and once with the record as it was. */
  async function refreshed(world: World, { id_token, refresh_token }: Tokens, subject: string): Promise<Response> {
    const refresh = () => world.post('/token', { grant_type: 'refresh_token', refresh_token }, asClient);
    const grant = await grantOf(decodeJwt(id_token).sub ?? '');
    const before = (await server.command('HGETALL', grant)) as string[];
    await server.command('HSET', grant, 's', subject);
    expect((await refresh()).status).toBe(400);
    await server.command('DEL', grant);
    await server.command('HSET', grant, ...before);
    return await refresh();
  }

  it('→ gives no ID token about that subject', async () => {
    const world = await aServer();
    const victim = decodeJwt((await signIn(world, 'victim')).id_token).sub ?? '';
    const mallory = await signIn(world, 'mallory');
    const answer = await refreshed(await aServer(), mallory, victim);
    const { id_token } = (await answer.json()) as Partial<Tokens>;
    expect(id_token && decodeJwt(id_token).sub).not.toBe(victim);
  });

  it('→ gives nothing to a person who may not use the client', async () => {
    const world = await aServer();
    const victim = decodeJwt((await signIn(world, 'victim', ['ops'])).id_token).sub ?? '';
    const mallory = await signIn(world, 'mallory');
    const other = await aServer();
    other.setClients([Object.assign({}, CLIENT, { signIn: { identityProviders: [], groups: ['corp:ops'] } })]);
    expect((await refreshed(other, mallory, victim)).status).toBe(400);
  });

  async function grantOf(subject: string): Promise<string> {
    for (const name of (await server.command('KEYS', '*')) as string[]) {
      if ((await server.command('TYPE', name)) !== 'hash') continue;
      const [client, person] = (await server.command('HMGET', name, 'c', 's')) as readonly (string | null)[];
      if (client === CLIENT.clientId && person === subject) return name;
    }
    throw new Error('no grant of this person');
  }
});
