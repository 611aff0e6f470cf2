// Every store contract on Redis, and that of the alerts: one server, a Cluster, the two also as a user with no more rights
// than the guide asks for, a primary that Sentinels watch.

import { afterAll, beforeAll } from 'vitest';
import type { RedisCredentials } from '../../../src/redis/topology/connection-maker.ts';
import { allContracts } from '../../contracts/all-contracts.ts';
import { alertContract } from '../grants/alert-contract.ts';
import { guideUser } from '../setup/guide-rights.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { redisWorlds, WORLD } from '../setup/redis-world.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

interface Deployment {
  readonly url: string;
  readonly user?: RedisCredentials;
  stop(): Promise<void>;
}

const DEPLOYMENTS: Readonly<Record<string, () => Promise<Deployment>>> = {
  'one Redis server': startRedis,
  'one Redis server, with the rights of the guide': async () => {
    const server = await startRedis();
    return { url: server.url, user: await guideUser([server], WORLD), stop: () => server.stop() };
  },
  'a Redis Cluster': startCluster,
  'a Redis Cluster, with the rights of the guide': async () => {
    const { url, primaries, stop } = await startCluster();
    return { url, user: await guideUser(primaries, WORLD), stop };
  },
  'Redis under Sentinels': startReplicated,
};

for (const [name, start] of Object.entries(DEPLOYMENTS)) {
  describeRedis(name, () => {
    let servers: Awaited<ReturnType<typeof start>>;
    const worlds = redisWorlds(() => servers);
    beforeAll(async () => {
      servers = await start();
    });
    afterAll(async () => {
      await worlds.close();
      await servers.stop();
    });
    allContracts(name, worlds.makeStores);
    alertContract(name, worlds.makeStores);
  });
}
