// Every store contract on Redis: one server, also as a user with no more rights than the guide asks for, a Cluster, a primary
// that Sentinels watch.

import { afterAll, beforeAll } from 'vitest';
import type { RedisCredentials } from '../../src/redis/clients.ts';
import { allContracts } from '../contracts/all-contracts.ts';
import { guideRights } from './guide-rights.ts';
import { redisWorlds, WORLD } from './redis-world.ts';
import { describeRedis, startCluster, startRedis, startReplicated } from './servers.ts';

interface Deployment {
  readonly url: string;
  readonly user?: RedisCredentials;
  stop(): Promise<void>;
}

const DEPLOYMENTS: Readonly<Record<string, () => Promise<Deployment>>> = {
  'one Redis server': startRedis,
  'one Redis server, with the rights of the guide': async () => {
    const server = await startRedis();
    await server.command('ACL', 'SETUSER', 'grantry', 'on', '>secret', ...guideRights(WORLD));
    return { url: server.url, user: { username: 'grantry', password: 'secret' }, stop: () => server.stop() };
  },
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
