// An orderly fail-over: nothing is lost, but another server is the primary.

import type { RedisConnection } from '../../../src/redis/connection/connection.ts';
import { succeeds, until } from '../../until.ts';
import { WRITE } from './connect.ts';
import { PRIMARY_NAME, type ReplicatedRedis } from './replicated-redis.ts';
import { inStep } from './replication.ts';
import type { RedisServer } from './servers.ts';

/** For a busy machine; milliseconds. */
const LIMIT = 60_000;

/** Has the Sentinels promote a replica that has everything; answers once these connections can write again. */
export async function failOver(redis: ReplicatedRedis, connections: readonly RedisConnection[]): Promise<void> {
  const before = await redis.primary();
  await inStep(before, othersThan(before, redis));
  const [sentinel] = redis.sentinels;
  await sentinel.command('SENTINEL', 'SET', PRIMARY_NAME, 'failover-timeout', LIMIT);
  await until(
    'another server is the primary',
    async () => {
      if ((await redis.primary()) !== before) return true;
      // One that is under way already is no reason to stop asking.
      await succeeds(sentinel.command('SENTINEL', 'FAILOVER', PRIMARY_NAME));
      return false;
    },
    LIMIT,
  );
  await writableBy(connections);
}

function othersThan(primary: RedisServer, { servers }: ReplicatedRedis): readonly RedisServer[] {
  return servers.filter((server) => server !== primary);
}

async function writableBy(connections: readonly RedisConnection[]): Promise<void> {
  const writable = (connection: RedisConnection) => succeeds(connection.run({ script: WRITE, keys: ['{s000}:test'] }));
  for (const connection of connections) await until('it can be written again', () => writable(connection), LIMIT);
}
