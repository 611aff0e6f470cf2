// Client assertions count once over all replicas (security row C11): real processes on one Redis, which is emptied, filled
// and taken away.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type Grantry, startGrantry, TestClock } from '../../grantry.ts';
import { folderOf, machineClient, removeFolder } from '../../manifests/a-folder.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { endProcesses, startDev } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const KEY = aKey('ES256');
const WORKER = machineClient(
  'worker',
  `  auth: {method: private_key_jwt, privateKeyJwt: {jwks: {keys: [${JSON.stringify(KEY.jwk)}]}}}
  scopes: [default/read]
  defaultScopes: [default/read]
`,
);
const MOST_RACES = 5;

describeRedis('client assertions at two replicas', () => {
  let redis: RedisServer;
  let folder: string;
  let replicas: Awaited<ReturnType<typeof startDev>>[];
  beforeAll(async () => {
    redis = await startRedis();
    folder = await folderOf({ 'worker.yaml': WORKER });
    // Every request comes from one address.
    const environment = { GRANTRY_LOG_FORMAT: 'json', GRANTRY_RATE_LIMITS: 'off', GRANTRY_LOG_LEVEL: 'error' };
    replicas = [];
    for (let count = 0; count < 2; count++)
      replicas.push(await startDev(folder, ['--redis', redis.url], { environment }));
    await until('both accept assertions', async () => (await settled(0)) === 200 && (await settled(1)) === 200);
  });
  afterAll(async () => {
    await endProcesses();
    await redis.stop();
    await removeFolder(folder);
  });

  const newAssertion = (changes: object = {}) => {
    const party = { clientId: 'default.worker', issuer: replicas[0]?.issuer ?? '', now: Date.now() };
    return assertionOf(KEY, party, changes);
  };
  /** The status that a replica answers with. */
  async function present(replica: number, assertion: string): Promise<number> {
    const body = new URLSearchParams({ grant_type: 'client_credentials', ...asserted(assertion) });
    return (await fetch(`${replicas[replica]?.address}/token`, { method: 'POST', body })).status;
  }
  /** An assertion that a replica has accepted, the first that Redis answered for in time. */
  async function accepted(replica: number): Promise<string> {
    let [assertion, status] = ['', 503];
    await until('Redis answers', async () => {
      assertion = await newAssertion({ exp: Date.now() / 1000 + 240 });
      status = await present(replica, assertion);
      return status !== 503;
    });
    expect(status).toBe(200);
    return assertion;
  }
  const settled = async (replica: number) => present(replica, await newAssertion());
  function replaysAudited(): number {
    const lines = replicas.flatMap(({ grantry }) => grantry.output.split('\n'));
    return lines.filter((line) => line.includes('"client_assertion.replayed"')).length;
  }

  it('one of 400 at once → one is accepted, the others are replays', async () => {
    for (let races = 1; ; races++) {
      const assertion = await newAssertion();
      const before = replaysAudited();
      const statuses = await Promise.all(Array.from({ length: 400 }, (_, index) => present(index % 2, assertion)));
      const count = (status: number) => statuses.filter((each) => each === status).length;
      expect(count(200) + count(401) + count(503)).toBe(400);
      expect(count(200)).toBeLessThanOrEqual(1);
      await until('each replay is audited', () => replaysAudited() - before === count(401));
      if (count(200) === 1) break;
      // On a busy machine the winner may have waited for Redis in vain.
      expect(count(503)).toBeGreaterThan(0);
      expect(races).toBeLessThan(MOST_RACES);
    }
  });

  it('used at one, then presented after 100 000 others → refused at both', async () => {
    const used = await accepted(0);
    const before = replaysAudited();
    // In parts: one script of this length is a Redis that does not answer in time.
    for (let part = 0; part < 100; part++) {
      const filler = `for i = 1, 1000 do redis.call('SET', 'another:${part}:' .. i, i, 'PX', 60000) end`;
      await redis.command('EVAL', filler, 0);
    }
    expect(await Promise.all([present(0, used), present(1, used)])).toEqual([401, 401]);
    await until('both replays are audited', () => replaysAudited() - before === 2);
  });

  it('used, and Redis is emptied → 503 in the same moment and later, no replay; a new one is accepted again', async () => {
    const used = await accepted(0);
    const before = replaysAudited();
    await redis.command('FLUSHALL');
    expect(await Promise.all([present(0, used), present(1, used)])).toEqual([503, 503]);
    await until('new assertions are accepted', async () => (await settled(0)) === 200 && (await settled(1)) === 200);
    expect(await Promise.all([present(0, used), present(1, used)])).toEqual([503, 503]);
    expect(replaysAudited()).toBe(before);
  });

  it('given Redis is full → 503', async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    expect(await settled(0)).toBe(503);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await until('it is accepted again', async () => (await settled(0)) === 200);
  });

  it('given Redis is unavailable → 503, also of one that was used before', async () => {
    const used = await accepted(0);
    await redis.kill();
    expect(await Promise.all([present(0, used), settled(0), settled(1)])).toEqual([503, 503, 503]);
    await redis.start();
    await until('new assertions are accepted', async () => (await settled(0)) === 200 && (await settled(1)) === 200);
    expect(await present(0, used)).toBe(503);
  });
});

describeRedis('two replicas whose clocks and that of Redis are moved', () => {
  const clock = new TestClock();
  const keys = new RedisKeys('grantry:');
  const connections: ManagedConnection[] = [];
  let redis: RedisServer;
  let replicas: readonly Grantry[];
  beforeAll(async () => {
    redis = await startRedis();
    for (const shard of SHARDS) await redis.command('SET', keys.marker(shard), '1 history');
    const client = {
      clientId: 'team.worker',
      grantTypes: ['client_credentials'],
      authMethod: 'private_key_jwt',
      assertion: assertedBy([KEY]),
    } as const;
    const started: Grantry[] = [];
    for (let count = 0; count < 2; count++) {
      const connection = await connectPatiently(redis, { clockOffset: () => clock.now() - Date.now() });
      connections.push(connection);
      const { replays } = redisStores({ connection, keys });
      const wrapStores = (stores: Stores) => ({ ...stores, replays });
      started.push(await startGrantry({ clients: [client], clock, wrapStores, issuer: 'https://id.example' }));
    }
    replicas = started;
  });
  afterAll(async () => {
    for (const connection of connections) await connection.close();
    await redis.stop();
  });

  it.each([
    ['iat, and exp an hour ahead', { iat: 0, exp: 3600 }, 360, 'assertion_too_old'],
    ['iat a minute ahead', { iat: 60, exp: 3600 }, 420, 'assertion_too_old'],
    ['iat, and exp a minute ahead', { iat: 0, exp: 60 }, 120, 'assertion_expired'],
    ['exp alone', { exp: 300 }, 360, 'assertion_expired'],
  ] as const)(
    'an assertion with %s, used at one → a replay at both until the last moment that it would be accepted',
    async (_, times, last, end) => {
      const now = clock.now() / 1000;
      const iat = 'iat' in times ? now + times.iat : undefined;
      const party = { clientId: 'team.worker', issuer: 'https://id.example', now: clock.now() };
      const assertion = await assertionOf(KEY, party, { iat, exp: now + times.exp });
      const reasons = () => Promise.all(replicas.map((replica) => reasonAt(replica, assertion)));
      expect(await reasonAt(replicas[0], assertion)).toBe('none');
      for (let half = 0; half < 2; half++) {
        clock.advance(500 * last);
        expect(await reasons()).toEqual(['client_assertion_replayed', 'client_assertion_replayed']);
      }
      clock.advance(1);
      expect(await reasons()).toEqual([end, end]);
    },
  );

  async function reasonAt(replica: Grantry | undefined, assertion: string): Promise<unknown> {
    if (replica === undefined) throw new Error('no replica');
    const body = new URLSearchParams({ grant_type: 'client_credentials', ...asserted(assertion) });
    const { status } = await fetch(replica.url('/token'), { method: 'POST', body });
    return status === 200 ? 'none' : replica.audits().findLast(({ event }) => event === 'token.refused')?.reason;
  }
});
