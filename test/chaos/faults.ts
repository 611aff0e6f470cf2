// What a fault is: it strikes, is mended, and says what it may have cost by the table in docs/guides/redis.md. What happens to
// Redis depends on its form and is in a file for each; what happens to grantry itself is here.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Replica } from '../redis/processes/replicas.ts';
import type { RedisServer } from '../redis/setup/servers.ts';
import type { Blindness, Fault } from './history.ts';
import type { SeededRandom } from './seeded-random.ts';

/** What a fault may have cost; what is left out is nothing. */
export interface Cost extends Partial<Omit<Fault, 'name' | 'from' | 'mended' | 'over' | 'lastFailure' | 'to'>> {
  /** When a primary took requests again; when `strike` resolved, if left out. */
  readonly mended?: number;
}

/** One kind of fault. `strike` resolves once everything is as it was, though not yet noticed by the replicas. */
export interface FaultKind<Target> {
  readonly name: string;
  strike(target: Target, random: SeededRandom): Promise<Cost>;
}

/** A fault of something that is there. */
export interface BoundFault {
  readonly name: string;
  strike(random: SeededRandom): Promise<Cost>;
}

/** What can happen to this target. */
export function boundTo<Target>(target: Target, kinds: readonly FaultKind<Target>[]): readonly BoundFault[] {
  return kinds.map(({ name, strike }) => ({ name, strike: (random) => strike(target, random) }));
}

/** What was answered before may be lost as well. */
export const EVERYTHING = Number.NEGATIVE_INFINITY;

/**
 * Runs `work`; the state is unknown from when `begin` has resolved until it ends.
 * @param shards where only that is meant which is in these
 */
export async function blindly(
  begin: () => Promise<void> | void,
  work: () => Promise<unknown>,
  shards?: ReadonlySet<string>,
): Promise<Blindness> {
  await begin();
  // What was on its way may still arrive.
  const from = performance.now() + 20;
  await work();
  return { from, to: performance.now(), ...(shards && { shards }) };
}

/** Fills the memory of these servers for a while; one that is a replica of Redis takes what its primary sends. */
export async function filled(servers: readonly RedisServer[], random: SeededRandom): Promise<Cost> {
  const allow = (bytes: number) =>
    Promise.all(servers.map((server) => server.command('CONFIG', 'SET', 'maxmemory', bytes)));
  await allow(1);
  await sleep(random.between(100, 900));
  await allow(0);
  return { isOnlyFull: true };
}

/** What happens to the replicas of grantry themselves. */
export const REPLICA_FAULTS: readonly FaultKind<readonly Replica[]>[] = [
  {
    name: 'a replica of grantry is killed',
    async strike(replicas, random) {
      const replica = random.pick(replicas);
      await replica.kill();
      await sleep(random.between(0, 300));
      await replica.start();
      return { killsReplica: true };
    },
  },
  {
    name: 'a replica of grantry is stopped for a while',
    async strike(replicas, random) {
      const replica = random.pick(replicas);
      replica.pause();
      await sleep(random.between(100, 1500));
      replica.resume();
      return {};
    },
  },
];
