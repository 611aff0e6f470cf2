// What can happen to a primary, its two replicas and their Sentinels.

import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { PRIMARY_NAME, type ReplicatedRedis } from '../redis/setup/replicated-redis.ts';
import { inStep } from '../redis/setup/replication.ts';
import { succeeds, until } from '../until.ts';
import { NOTICED } from './checker.ts';
import { blindly, EVERYTHING, type FaultKind, filled } from './faults.ts';
import { cutOff, letBack, rejoined, replaced, rolesIn } from './replicated-set.ts';

/** What Redis allows, in bytes. */
const SMALLEST_BACKLOG = 16_384;

/** What happens to a primary, its two replicas and their Sentinels. */
export const SENTINEL_FAULTS: readonly FaultKind<ReplicatedRedis>[] = [
  {
    name: 'the memory of Redis is full',
    strike: ({ servers }, random) => filled(servers, random),
  },
  {
    name: 'the primary is killed, its replicas in step',
    async strike(redis) {
      const { primary, replicas } = await rolesIn(redis);
      const lostSince = await inStep(primary, replicas);
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
      const { primary, replicas } = await rolesIn(redis);
      const lostSince = await inStep(primary, replicas);
      const blind = await blindly(
        () => primary.pause(),
        () => sleep(300),
      );
      await replaced(redis, primary);
      await sleep(random.between(0, 400));
      primary.resume();
      await sleep(random.between(50, 400));
      // Until it is demoted, it takes the requests of replicas that were connecting to it; they are sent away then.
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
      const { primary, replicas } = await rolesIn(redis);
      const lostSince = await inStep(primary, replicas);
      // What is in a stopped server's socket would still arrive: its link is cut, and it cannot make a new one.
      for (const server of replicas) server.pause();
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await sleep(random.between(50, 400));
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      for (const server of replicas) server.resume();
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
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      rmSync(primary.snapshot, { force: true });
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
      rmSync(primary.snapshot, { force: true });
      await rejoined(redis);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'the primary restarts empty and is replaced by a replica that has everything',
    async strike(redis, random) {
      const { primary, replicas } = await rolesIn(redis);
      // Families that are to be there again.
      await sleep(random.between(300, 600));
      // It comes back as a primary, whatever it was begun as.
      await primary.command('CONFIG', 'REWRITE');
      const givenUntil = await inStep(primary, replicas);
      for (const server of replicas) server.pause();
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(20),
      );
      rmSync(primary.snapshot, { force: true });
      await primary.start();
      // Long enough for every replica of grantry to have seen the empty server.
      await sleep(random.between(1500, 2000));
      await primary.kill();
      for (const server of replicas) server.resume();
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
      const { replicas } = await rolesIn(redis);
      const stopped = random.pick(replicas);
      stopped.pause();
      await sleep(random.between(100, 900));
      stopped.resume();
      return {};
    },
  },
  {
    name: 'all replicas of Redis are stopped for a while',
    async strike(redis, random) {
      const { replicas } = await rolesIn(redis);
      for (const server of replicas) server.pause();
      // Long enough for no write to be acknowledged in time, not for them to be given up.
      await sleep(random.between(300, 900));
      for (const server of replicas) server.resume();
      return {};
    },
  },
  {
    name: 'a replica of Redis is cut off for long, and copies everything again',
    async strike(redis, random) {
      const { primary, replicas } = await rolesIn(redis);
      const cut = random.pick(replicas);
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
      const { primary, replicas } = await rolesIn(redis);
      const cut = random.pick(replicas);
      const rest = replicas.filter((server) => server !== cut);
      const lostSince = await inStep(primary, replicas);
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
      const { primary, replicas } = await rolesIn(redis);
      const lostSince = await inStep(primary, replicas);
      const [sentinel] = redis.sentinels;
      await until('a fail-over begins', () => succeeds(sentinel.command('SENTINEL', 'FAILOVER', PRIMARY_NAME)));
      await replaced(redis, primary);
      // The old primary takes requests until it is demoted.
      await rejoined(redis);
      return { lostSince, breaksLogins: true };
    },
  },
];
