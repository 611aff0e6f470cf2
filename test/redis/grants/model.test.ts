// Random histories over Redis, with two replicas of the server, and with crashes, fail-overs and an emptied Redis among what
// happens.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type ModelStores, runModel } from '../../oauth/model/model-run.ts';
import { dump, secretsIn } from '../setup/dump.ts';
import { failOver } from '../setup/fail-over.ts';
import { frozen } from '../setup/frozen-time.ts';
import { connectPatiently } from '../setup/patience.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { type ReplicatedRedis, startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

let histories = 0;

interface Befalling {
  failOver(connections: readonly ManagedConnection[]): Promise<void>;
  empty(): Promise<unknown>;
}

/** The stores of one history, by way of two connections. @param primaries the servers that hold everything now */
async function replicasOver(
  { url, primaries }: { readonly url: string; primaries(): Promise<readonly RedisServer[]> },
  clock: { now(): number },
  befalling: Befalling,
): Promise<ModelStores> {
  histories += 1;
  const prefix = `history-${histories}:`;
  const keys = new RedisKeys(prefix);
  const connections: ManagedConnection[] = [];
  async function replica() {
    const connection = await connectPatiently({ url }, { clockOffset: () => clock.now() });
    connections.push(connection);
    return redisStores({ connection: frozen(connection), keys });
  }
  return {
    replicas: await Promise.all([replica(), replica()]),
    faults: {
      crash: replica,
      failOver: () => befalling.failOver(connections),
      async empty() {
        await befalling.empty();
      },
    },
    async inspect(model) {
      const held = (await Promise.all((await primaries()).map((server) => dump(server, prefix)))).join('\n');
      const secrets = model.grants.flatMap(({ code, verifier, accessTokens, refreshTokens }) => [
        ...[code, verifier],
        ...[...accessTokens, ...refreshTokens].map(({ token }) => token),
      ]);
      expect(secretsIn(held, secrets)).toEqual([]);
    },
    async close() {
      await Promise.all(connections.map((connection) => connection.close()));
    },
  };
}

describeRedis('any history of grants over one Redis server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it('keeps one redemption, revoked families revoked, scopes from growing, tokens with their client, one alert each', async () => {
    const deployment = { url: server.url, primaries: async () => [server] };
    const befalling: Befalling = {
      // What a promotion does to the one server there is: its history gets another name.
      failOver: async () => void (await server.command('DEBUG', 'CHANGE-REPL-ID')),
      empty: () => server.command('FLUSHALL'),
    };
    await runModel('one Redis server', (clock) => replicasOver(deployment, clock, befalling), { runs: 15 });
  }, 120_000);
});

describeRedis('any history of grants over a Redis Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it('keeps one redemption, revoked families revoked, scopes from growing, tokens with their client, one alert each', async () => {
    const deployment = { url: cluster.url, primaries: async () => cluster.primaries };
    const atAll = (...words: readonly string[]) =>
      Promise.all(cluster.primaries.map((primary) => primary.command(...words)));
    const befalling: Befalling = {
      failOver: async () => void (await atAll('DEBUG', 'CHANGE-REPL-ID')),
      empty: () => atAll('FLUSHALL'),
    };
    await runModel('a Redis Cluster', (clock) => replicasOver(deployment, clock, befalling), { runs: 8 });
  }, 120_000);
});

describeRedis('any history of grants over Redis under Sentinels', () => {
  let redis: ReplicatedRedis;
  beforeAll(async () => {
    redis = await startReplicated();
  });
  afterAll(() => redis.stop());

  it('keeps one redemption, revoked families revoked, scopes from growing, tokens with their client, one alert each', async () => {
    const befalling: Befalling = {
      failOver: (connections) => failOver(redis, connections),
      empty: async () => (await redis.primary()).command('FLUSHALL'),
    };
    const deployment = { url: redis.url, primaries: async () => [await redis.primary()] };
    await runModel('Redis under Sentinels', (clock) => replicasOver(deployment, clock, befalling), { runs: 3 });
  }, 240_000);
});
