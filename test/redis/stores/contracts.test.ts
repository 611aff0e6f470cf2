// Every store contract on Redis, and that of the alerts: on one server and on a Cluster, as a user with no more rights than
// the guide asks for. A user with more rights and Sentinels run every script once, in `../scripts/every-script.test.ts`.
// MONITOR shows meanwhile that a script declares each key that it touches, those of its own slot too, which a Cluster
// would let pass.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { allContracts } from '../../contracts/all-contracts.ts';
import { alertContract } from '../grants/alert-contract.ts';
import { runEveryScript } from '../scripts/run-every-script.ts';
import { connectTo } from '../setup/connect.ts';
import { guideUser } from '../setup/guide-rights.ts';
import { Monitor, type ScriptCall } from '../setup/monitor.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { redisWorlds, WORLD } from '../setup/redis-world.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const DECLARED = 'a declared key';

/** A command without what differs each time: its declared keys and its times. */
function shapeOf({ declared }: ScriptCall, words: readonly string[]): readonly string[] {
  return words.map((word) => (declared.has(word) ? DECLARED : word.replace(/^\d{4,}$/, 'a number')));
}

/** The keys among the words of a command, as Redis itself names them. */
async function keysOf(server: RedisServer, words: readonly string[]): Promise<readonly string[]> {
  if (words.length === 1) return [];
  try {
    return (await server.command('COMMAND', 'GETKEYS', ...words)) as string[];
  } catch (error) {
    if (/The command has no key arguments/.test(String(error))) return [];
    throw error;
  }
}

const FORMS: Readonly<
  Record<string, () => Promise<{ url: string; nodes: readonly RedisServer[]; stop(): Promise<void> }>>
> = {
  async 'one Redis server'() {
    const server = await startRedis();
    return { url: server.url, nodes: [server], stop: () => server.stop() };
  },
  async 'a Redis Cluster'() {
    const { url, primaries, stop } = await startCluster();
    return { url, nodes: primaries, stop };
  },
};

for (const [form, start] of Object.entries(FORMS)) {
  describeRedis(form, () => {
    let redis: Awaited<ReturnType<typeof start>>;
    let user: Awaited<ReturnType<typeof guideUser>>;
    let monitors: readonly Monitor[] = [];
    const makeStores = redisWorlds(() => ({ url: redis.url, user }));
    beforeAll(async () => {
      redis = await start();
      user = await guideUser(redis.nodes, WORLD);
      monitors = await Promise.all(redis.nodes.map((node) => Monitor.of(node)));
    });
    afterAll(async () => {
      for (const monitor of monitors) monitor.stop();
      await redis.stop();
    });

    allContracts(form, makeStores);
    alertContract(form, makeStores);

    describe('a script', () => {
      it('runs, each there is', async () => {
        const connections: ManagedConnection[] = [];
        const connect = async (options: Omit<ConnectionOptions, 'target'> = {}) => {
          const connection = await connectTo(redis, { credentials: () => user, ...options });
          connections.push(connection);
          return connection;
        };
        await runEveryScript(connect, new RedisKeys(`${WORLD}scripts:`)).finally(() =>
          Promise.all(connections.map((connection) => connection.close())),
        );
      });

      it('has touched no key but those that it declares', async () => {
        const [server] = redis.nodes as readonly [RedisServer];
        const calls = (await Promise.all(monitors.map((monitor) => monitor.calls()))).flat();
        const commands = new Set(
          calls.flatMap((call) => call.commands.map((words) => JSON.stringify(shapeOf(call, words)))),
        );
        const all = (await Promise.all([...commands].map((command) => keysOf(server, JSON.parse(command))))).flat();
        expect(all.filter((key) => key === DECLARED).length).toBeGreaterThan(100);
        expect(all.filter((key) => key !== DECLARED)).toEqual([]);
      });
    });
  });
}
