// Every store contract on Redis: one server, a Cluster, a primary that Sentinels watch.

import { afterAll, beforeAll } from 'vitest';
import { allContracts } from '../contracts/all-contracts.ts';
import { redisWorlds } from './redis-world.ts';
import { describeRedis, startCluster, startRedis, startReplicated } from './servers.ts';

const DEPLOYMENTS: Readonly<Record<string, () => Promise<{ readonly url: string; stop(): Promise<void> }>>> = {
  'one Redis server': startRedis,
  'a Redis Cluster': startCluster,
  'Redis under Sentinels': startReplicated,
};

for (const [name, start] of Object.entries(DEPLOYMENTS)) {
  describeRedis(name, () => {
    let servers: Awaited<ReturnType<typeof start>>;
    const worlds = redisWorlds(() => servers);
    beforeAll(async () => {
      servers = await start();
    }, 30_000);
    afterAll(async () => {
      await worlds.close();
      await servers.stop();
    });
    allContracts(name, worlds.makeStores);
  });
}
