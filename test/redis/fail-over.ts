// An orderly fail-over: nothing is lost, but another server is the primary.

import type { RedisConnection } from '../../src/redis/connection.ts';
import { until } from '../until.ts';
import type { RedisServer, ReplicatedRedis } from './servers.ts';

const WRITE = { name: 'testWrite', keys: 1, lua: "redis.call('SET', KEYS[1], 1)" };

/** For a busy machine; milliseconds. */
const LIMIT = 60_000;

/** Promotes a replica that has everything; answers once these connections can write again. */
export async function failOver(redis: ReplicatedRedis, connections: readonly RedisConnection[]): Promise<void> {
  const before = await redis.primary();
  // One that was a primary until it died becomes a replica only after Sentinels have looked at it for a while.
  await until('both replicas have everything', () => isFollowed(before), LIMIT);
  await until(
    'the others follow another primary',
    async () => {
      const primary = await redis.primary();
      if (primary !== before) return await isFollowed(primary);
      // One that is under way already, or was given up for taking too long, is no reason to stop asking.
      await succeeds(redis.sentinels[0]?.command('SENTINEL', 'FAILOVER', 'grantry'));
      return false;
    },
    LIMIT,
  );
  const writable = (connection: RedisConnection) => succeeds(connection.run(WRITE, ['{s000}:test'], []));
  for (const connection of connections) await until('it can be written again', () => writable(connection), LIMIT);
}

/** Whether this server is a primary and both others have all it wrote. */
export async function isFollowed(server: RedisServer): Promise<boolean> {
  const info = String(await server.command('INFO', 'replication'));
  const offset = /^master_repl_offset:(\d+)/m.exec(info)?.[1];
  return info.startsWith('# Replication\r\nrole:master') && info.split(`state=online,offset=${offset},`).length === 3;
}

function succeeds(tried: Promise<unknown> | undefined): Promise<boolean> {
  return Promise.resolve(tried).then(
    () => true,
    () => false,
  );
}
