// `grantry server` over a Redis Cluster of which one primary is unavailable when it starts.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { ownerOf, type RedisCluster, startCluster } from '../../redis/setup/redis-cluster.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { introspect } from '../setup/signed-in.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const KEYS = new RedisKeys('grantry:');

describeRedis('a token server that starts while a primary of its Redis Cluster is unavailable', () => {
  const cluster = sharedCluster();
  let redis: RedisCluster;
  let install: TokenServers;
  let client: AClient;
  /** What was issued before: one whose state is with each primary. */
  const tokens: string[] = [];

  beforeAll(async () => {
    [redis, install] = await Promise.all([startCluster(), TokenServers.install(cluster)]);
    client = await install.client(await cluster.namespace(), 'batch', { tokens: { accessTokenFormat: 'opaque' } });
    const former = await start();
    await former.ready();
    await until('it has issued with all of them', async () => {
      const { token = '' } = await issue(former);
      if (token !== '') tokens[shownOwner(token)] = token;
      return [0, 1, 2].every((owner) => tokens[owner] !== undefined);
    });
    await former.process.end();
  });
  afterEach(() => {
    for (const primary of redis.primaries) primary.resume();
  });
  afterAll(async () => {
    await install?.stop();
    await redis?.stop();
  });

  const start = () => install.start({ environment: { GRANTRY_REDIS_URL: redis.url } });

  /** An opaque token is wherever chance puts it. */
  async function issue(server: TokenServerProcess): Promise<{ readonly status: number; readonly token?: string }> {
    const { status, body } = await server.token(client);
    return { status, ...(body.access_token !== undefined && { token: body.access_token }) };
  }

  const shownOwner = (token: string) => ownerOf(KEYS.marker(token.split('.')[1] ?? ''));

  async function seen(server: TokenServerProcess, owner: number): Promise<unknown> {
    const { status, body } = await introspect(server, client, tokens[owner] ?? '');
    return status === 200 ? body.active : status;
  }

  it('serves what it can reach, refuses the rest as not checked yet, and serves all once that primary recovers', async () => {
    const needed = [ownerOf(KEYS.issuer()), ownerOf(KEYS.clientWatermark(client.uid))];
    const away = [0, 1, 2].find((owner) => !needed.includes(owner)) ?? -1;
    const there = [0, 1, 2].filter((owner) => owner !== away);
    redis.primaries[away]?.pause();
    const server = await start();
    await server.ready();
    for (const owner of there) await until('it is served', async () => (await seen(server, owner)) === true);
    expect(await seen(server, away)).toBe(503);
    await until('the log says why', () => server.process.output.includes('"reason":"not_joined"'));
    expect((await server.readiness()).text).toMatch(/^redis: away in part/m);

    const statuses = new Map<number, string[]>();
    for (let count = 0; count < 30; count++) {
      const { status, token = '' } = await issue(server);
      statuses.set(status, [...(statuses.get(status) ?? []), token]);
    }
    expect([...statuses.keys()].sort()).toEqual([200, 503]);
    const issued = statuses.get(200) ?? [];
    expect(issued.filter((token) => shownOwner(token) === away)).toEqual([]);

    redis.primaries[away]?.resume();
    await until('it is served, too', async () => (await seen(server, away)) === true);
    for (const owner of there) await until('it is still served', async () => (await seen(server, owner)) === true);
    const owners = new Set<number>();
    await until('it issues with all of them', async () => {
      const { token } = await issue(server);
      if (token !== undefined) owners.add(shownOwner(token));
      return owners.size === 3;
    });
    await until('it says so', async () => /^redis: ok$/m.test((await server.readiness()).text));
  });

  it('knows nothing of any token of a client whose kill switch is unavailable', async () => {
    const owner = redis.primaries[ownerOf(KEYS.clientWatermark(client.uid))];
    const server = await start();
    await server.ready();
    for (const index of [0, 1, 2]) await until('it is served', async () => (await seen(server, index)) === true);
    owner?.pause();
    expect(await Promise.all([0, 1, 2].map((index) => seen(server, index)))).toEqual([503, 503, 503]);
    owner?.resume();
    for (const index of [0, 1, 2]) await until('it is served again', async () => (await seen(server, index)) === true);
  });
});
