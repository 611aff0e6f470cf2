// Random histories over Redis, with two replicas of the server, and with crashes, fail-overs and an emptied Redis among what
// happens.

import { expect, it } from 'vitest';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type ModelStores, runModel } from '../../oauth/model/model-run.ts';
import { connectTo } from '../setup/connect.ts';
import { dump, secretsIn } from '../setup/dump.ts';
import { failOver } from '../setup/fail-over.ts';
import { frozen } from '../setup/frozen-time.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { redisSuite } from '../setup/redis-suite.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer } from '../setup/servers.ts';

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
    const connection = await connectTo({ url }, { clockOffset: () => clock.now() });
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
  const redis = redisSuite();

  it('keeps one redemption, dead families dead, scopes from growing, tokens with their client, one alert each', async () => {
    const { server } = redis;
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
  const redis = redisSuite(startCluster);

  it('keeps one redemption, dead families dead, scopes from growing, tokens with their client, one alert each', async () => {
    const { url, primaries } = redis.server;
    const deployment = { url, primaries: async () => primaries };
    const atAll = (...words: readonly string[]) => Promise.all(primaries.map((primary) => primary.command(...words)));
    const befalling: Befalling = {
      failOver: async () => void (await atAll('DEBUG', 'CHANGE-REPL-ID')),
      empty: () => atAll('FLUSHALL'),
    };
    await runModel('a Redis Cluster', (clock) => replicasOver(deployment, clock, befalling), { runs: 8 });
  }, 120_000);
});

describeRedis('any history of grants over Redis under Sentinels', () => {
  const redis = redisSuite(startReplicated);

  it('keeps one redemption, dead families dead, scopes from growing, tokens with their client, one alert each', async () => {
    const { server } = redis;
    const deployment = { url: server.url, primaries: async () => [await server.primary()] };
    const befalling: Befalling = {
      failOver: (connections) => failOver(server, connections),
      empty: async () => (await server.primary()).command('FLUSHALL'),
    };
    await runModel('Redis under Sentinels', (clock) => replicasOver(deployment, clock, befalling), { runs: 3 });
  }, 240_000);
});
