// What can happen to a primary, its two replicas and their Sentinels.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LONG, type RedisServer, type ReplicatedRedis } from '../redis/servers.ts';
import { until } from '../until.ts';
import { NOTICED } from './checker.ts';
import { blindly, EVERYTHING, type FaultKind, offsetIn } from './faults.ts';

/** What happens to a primary, its two replicas and their Sentinels. */
export const SENTINEL_FAULTS: readonly FaultKind<ReplicatedRedis>[] = [
  {
    name: 'the primary is killed, its replicas in step',
    async strike(redis) {
      const primary = await redis.primary();
      const lostSince = await inStep(redis, primary);
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(300),
      );
      const mended = await replaced(redis, primary);
      await primary.start();
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'the primary is stopped, replaced, and wakes up',
    async strike(redis, random) {
      const primary = await redis.primary();
      const lostSince = await inStep(redis, primary);
      const blind = await blindly(
        () => primary.pause(),
        () => sleep(300),
      );
      await replaced(redis, primary);
      await sleep(random.between(0, 400));
      primary.resume();
      await sleep(random.between(50, 400));
      // Until it is told, it takes the requests of whoever was connecting to it; they are sent away then.
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind };
    },
  },
  {
    name: 'the primary is stopped for less than a fail-over takes',
    async strike(redis, random) {
      const primary = await redis.primary();
      const blind = await blindly(
        () => primary.pause(),
        () => sleep(random.between(50, 250)),
      );
      primary.resume();
      return { blind };
    },
  },
  {
    name: 'fail-over to a lagging replica',
    async strike(redis, random) {
      const primary = await redis.primary();
      const others = redis.servers.filter((server) => server !== primary);
      const lostSince = await inStep(redis, primary);
      // What is in a stopped server's socket would still arrive: its link is cut, and it cannot make a new one.
      for (const server of others) server.pause();
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await sleep(random.between(50, 400));
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      for (const server of others) server.resume();
      const mended = await replaced(redis, primary);
      await primary.start();
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'the primary restarts empty and empties its replicas',
    async strike(redis) {
      const primary = await redis.primary();
      // It comes back as a primary, whatever it was begun as.
      await primary.command('CONFIG', 'REWRITE');
      const file = await snapshotOf(primary);
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      rmSync(file, { force: true });
      await primary.start();
      const mended = performance.now();
      await rejoined(redis);
      return { lostSince: EVERYTHING, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'the primary restarts with what it had a moment ago',
    async strike(redis, random) {
      const primary = await redis.primary();
      await primary.command('CONFIG', 'REWRITE');
      const lostSince = performance.now();
      await primary.command('SAVE');
      await sleep(random.between(50, 1000));
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      await primary.start();
      const mended = performance.now();
      rmSync(await snapshotOf(primary), { force: true });
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'the primary restarts empty and is replaced by a replica that has everything',
    async strike(redis, random) {
      const primary = await redis.primary();
      const others = redis.servers.filter((server) => server !== primary);
      // Families that are to be there again.
      await sleep(random.between(300, 600));
      // It comes back as a primary, whatever it was begun as.
      await primary.command('CONFIG', 'REWRITE');
      const givenUntil = await inStep(redis, primary);
      for (const server of others) server.pause();
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      const file = await snapshotOf(primary);
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      rmSync(file, { force: true });
      await primary.start();
      // Long enough for every replica of grantry to have seen the empty server.
      await sleep(random.between(1500, 2000));
      await primary.kill();
      for (const server of others) server.resume();
      const mended = await replaced(redis, primary);
      await primary.start();
      await rejoined(redis);
      await sleep(Math.max(0, mended + NOTICED - performance.now()));
      const back = { until: givenUntil, from: performance.now() };
      return { lostSince: EVERYTHING, back, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'a replica of Redis is stopped for a while',
    async strike(redis, random) {
      const stopped = random.pick(await replicasOf(redis));
      stopped.pause();
      await sleep(random.between(100, 900));
      stopped.resume();
      return {};
    },
  },
  {
    name: 'all replicas of Redis are stopped for a while',
    async strike(redis, random) {
      const stopped = await replicasOf(redis);
      for (const server of stopped) server.pause();
      // Long enough for nobody to acknowledge anything in time, not for them to be given up.
      await sleep(random.between(300, 900));
      for (const server of stopped) server.resume();
      return {};
    },
  },
  {
    name: 'a replica of Redis is cut off for long, and copies everything anew',
    async strike(redis, random) {
      const primary = await redis.primary();
      const cut = random.pick(redis.servers.filter((server) => server !== primary));
      const [, backlog] = (await primary.command('CONFIG', 'GET', 'repl-backlog-size')) as [string, string];
      await primary.command('CONFIG', 'SET', 'repl-backlog-size', SMALLEST_BACKLOG);
      await cutOff(cut, primary);
      await sleep(random.between(1500, 3500));
      // More than the primary keeps for replicas that come back.
      await primary.command('SET', 'filler', 'x'.repeat(2 * SMALLEST_BACKLOG));
      await primary.command('DEL', 'filler');
      await letBack(cut);
      await rejoined(redis);
      await primary.command('CONFIG', 'SET', 'repl-backlog-size', backlog);
      return {};
    },
  },
  {
    name: 'fail-over to a replica that was cut off for long',
    async strike(redis, random) {
      const primary = await redis.primary();
      const cut = random.pick(redis.servers.filter((server) => server !== primary));
      const rest = redis.servers.filter((server) => server !== primary && server !== cut);
      const lostSince = await inStep(redis, primary);
      await cutOff(cut, primary);
      await sleep(random.between(1000, 3000));
      // Also the one that has everything, and may have acknowledged it.
      for (const server of rest) await server.kill();
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      const mended = await replaced(redis, primary);
      await letBack(cut);
      for (const server of [primary, ...rest]) await server.start();
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'a fail-over on command',
    async strike(redis) {
      const primary = await redis.primary();
      const lostSince = await inStep(redis, primary);
      await until('a fail-over begins', () =>
        redis.sentinels[0] === undefined
          ? false
          : redis.sentinels[0].command('SENTINEL', 'FAILOVER', 'grantry').then(
              () => true,
              () => false,
            ),
      );
      await replaced(redis, primary);
      // The old primary takes requests until it is told.
      await rejoined(redis);
      return { lostSince, breaksLogins: true };
    },
  },
];

/** The servers that are not the primary now. */
async function replicasOf(redis: ReplicatedRedis): Promise<readonly RedisServer[]> {
  const primary = await redis.primary();
  return redis.servers.filter((server) => server !== primary);
}

/** What Redis allows, in bytes. */
const SMALLEST_BACKLOG = 16_384;

/** Ends the replication of one replica, as if the network between the two were gone: it cannot sign in to its primary. */
async function cutOff(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.command('CONFIG', 'SET', 'masteruser', 'nobody', 'masterauth', 'nothing');
  await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
  await until('the replica is cut off', async () => {
    return String(await replica.command('INFO', 'replication')).includes('master_link_status:down');
  });
}

/** Lets a replica that was cut off come back. */
async function letBack(replica: RedisServer): Promise<void> {
  await replica.command('CONFIG', 'SET', 'masteruser', '', 'masterauth', '');
  // Sentinels have servers write down what they are told, and all else with it.
  await replica.command('CONFIG', 'REWRITE');
}

/** The file a server would read at its start. */
async function snapshotOf(server: RedisServer): Promise<string> {
  const [, folder] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
  return join(folder, 'dump.rdb');
}

/** Waits until both replicas have what the primary had when this was called. @returns that moment */
async function inStep(redis: ReplicatedRedis, primary: RedisServer): Promise<number> {
  const moment = performance.now();
  const wanted = offsetIn(await primary.command('INFO', 'replication'));
  const others = redis.servers.filter((server) => server !== primary);
  for (const server of others) {
    await until('a replica is in step', async () => {
      const info = String(await server.command('INFO', 'replication'));
      return info.includes('master_link_status:up') && offsetIn(info) >= wanted;
    });
  }
  return moment;
}

/** Lets the Sentinels replace a silent primary, and waits until they have. @returns when that was */
async function replaced(redis: ReplicatedRedis, primary: RedisServer): Promise<number> {
  await redis.setPatience(500);
  await until('another server is the primary', async () => {
    const found = await redis.primary().catch(() => primary);
    if (found === primary) return false;
    return String(await found.command('INFO', 'replication')).includes('role:master');
  });
  const moment = performance.now();
  await redis.setPatience(LONG);
  return moment;
}

/** Makes every server that is not the primary its replica, and waits until all Sentinels see it so. */
async function rejoined(redis: ReplicatedRedis): Promise<void> {
  await until('the primary has two replicas, and every Sentinel agrees', () => isWhole(redis), 60_000);
}

async function isWhole(redis: ReplicatedRedis): Promise<boolean> {
  const views = await Promise.all(redis.sentinels.map((each) => each.command('INFO', 'sentinel')));
  // While a fail-over goes on, a Sentinel names the old primary in one place and the new one in the other.
  const named = await Promise.all(
    redis.sentinels.map((each) => each.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'grantry')),
  );
  const address = String((named[0] as [string, string])[1]);
  const agrees = views.every((view) => String(view).includes(`status=ok,address=127.0.0.1:${address},`));
  if (!agrees || named.some((each) => (each as [string, string])[1] !== address)) return false;
  const infos = redis.servers.map(async (server) => ({
    server,
    info: String(await server.command('INFO', 'replication')),
  }));
  const isReady = (await Promise.all(infos)).map(async ({ server, info }) => {
    if (String(server.port) === address) return info.match(/state=online/g)?.length === 2;
    if (info.includes(`master_port:${address}\r`)) return info.includes('master_link_status:up');
    await server.command('REPLICAOF', '127.0.0.1', address);
    return false;
  });
  if ((await Promise.all(isReady)).includes(false)) return false;
  return views.every((view) => String(view).includes('slaves=2,sentinels=3'));
}
