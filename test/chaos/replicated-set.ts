// A primary, its two replicas and their Sentinels while one of them fails: their roles, and until when each has to be waited for.

import { PRIMARY_NAME, type ReplicatedRedis } from '../redis/setup/replicated-redis.ts';
import { isPrimary, replicationOf } from '../redis/setup/replication.ts';
import { LONG, type RedisServer } from '../redis/setup/servers.ts';
import { until } from '../until.ts';

/** The primary now, and the others. */
export async function rolesIn(redis: ReplicatedRedis) {
  const primary = await redis.primary();
  return { primary, replicas: redis.servers.filter((server) => server !== primary) };
}

/** Ends the replication of one replica, as if the network between the two were gone: it cannot sign in to its primary. */
export async function cutOff(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.command('CONFIG', 'SET', 'masteruser', 'nobody', 'masterauth', 'nothing');
  await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
  await until('the replica is cut off', async () => {
    return (await replicationOf(replica)).includes('master_link_status:down');
  });
}

/** Lets a replica that was cut off come back. */
export async function letBack(replica: RedisServer): Promise<void> {
  await replica.command('CONFIG', 'SET', 'masteruser', '', 'masterauth', '');
  // Sentinels have servers write down what they are configured with, and all else with it.
  await replica.command('CONFIG', 'REWRITE');
}

/** Lets the Sentinels replace a silent primary, and waits until they have. @returns when that was */
export async function replaced(redis: ReplicatedRedis, primary: RedisServer): Promise<number> {
  await redis.setPatience(500);
  const isReplaced = async () => {
    const found = await redis.primary().catch(() => primary);
    return found !== primary && (await isPrimary(found));
  };
  // An election that a busy machine holds up is given up, and the next one comes seconds later.
  await until('another server is the primary', isReplaced, LONG);
  const moment = performance.now();
  await redis.setPatience(LONG);
  return moment;
}

/** Makes every server that is not the primary its replica, and waits until all Sentinels see it so. */
export async function rejoined(redis: ReplicatedRedis): Promise<void> {
  await until('the primary has two replicas, and every Sentinel agrees', () => isWhole(redis), LONG);
}

async function isWhole(redis: ReplicatedRedis): Promise<boolean> {
  const views = await Promise.all(redis.sentinels.map((each) => each.command('INFO', 'sentinel')));
  // While a fail-over goes on, a Sentinel names the old primary in one place and the new one in the other.
  const named = await Promise.all(
    redis.sentinels.map((each) => each.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)),
  );
  const address = String((named[0] as [string, string])[1]);
  const agrees = views.every((view) => String(view).includes(`status=ok,address=127.0.0.1:${address},`));
  if (!agrees || named.some((each) => (each as [string, string])[1] !== address)) return false;
  const infos = redis.servers.map(async (server) => ({ server, info: await replicationOf(server) }));
  const isReady = (await Promise.all(infos)).map(async ({ server, info }) => {
    if (String(server.port) === address) return info.match(/state=online/g)?.length === 2;
    if (info.includes(`master_port:${address}\r`)) return info.includes('master_link_status:up');
    await server.command('REPLICAOF', '127.0.0.1', address);
    return false;
  });
  if ((await Promise.all(isReady)).includes(false)) return false;
  return views.every((view) => String(view).includes('slaves=2,sentinels=3'));
}
