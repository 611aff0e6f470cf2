// An orderly fail-over: nothing is lost, but another server is the primary.

import type { RedisConnection } from '../../../src/redis/connection/connection.ts';
import { succeeds, until } from '../../until.ts';
import { WRITE } from './connect.ts';
import { PRIMARY_NAME, type ReplicatedRedis } from './replicated-redis.ts';
import { followed } from './replication.ts';

/** For a busy machine; milliseconds. */
const LIMIT = 60_000;

/** Promotes a replica that has everything; answers once these connections can write again. */
export async function failOver(redis: ReplicatedRedis, connections: readonly RedisConnection[]): Promise<void> {
  const before = await redis.primary();
  // One that was a primary until it died becomes a replica only after Sentinels have watched it for a while.
  await followed(before, { limit: LIMIT });
  await until(
    'another server is the primary',
    async () => {
      if ((await redis.primary()) !== before) return true;
      // One that is under way already, or was given up for taking too long, is no reason to stop asking.
      await succeeds(redis.sentinels[0].command('SENTINEL', 'FAILOVER', PRIMARY_NAME));
      return false;
    },
    LIMIT,
  );
  await followed(await redis.primary(), { limit: LIMIT });
  const writable = (connection: RedisConnection) => succeeds(connection.run({ script: WRITE, keys: ['{s000}:test'] }));
  for (const connection of connections) await until('it can be written again', () => writable(connection), LIMIT);
}
