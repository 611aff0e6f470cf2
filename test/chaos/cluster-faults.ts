// What can happen to a Cluster of three primaries with a replica each: always to one of the primaries, the others go on. As
// long as it is unavailable the content of its shards is unknown.

import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SHARDS } from '../../src/oauth/values/shard.ts';
import { RedisKeys } from '../../src/redis/connection/keys.ts';
import { slotOf } from '../../src/redis/topology/slot.ts';
import type { RedisCluster } from '../redis/setup/redis-cluster.ts';
import { inStep, isPrimary, replicationOf } from '../redis/setup/replication.ts';
import { LONG, type RedisServer } from '../redis/setup/servers.ts';
import { until } from '../until.ts';
import { blindly, EVERYTHING, type FaultKind, filled } from './faults.ts';
import type { SeededRandom } from './seeded-random.ts';

const KEYS = new RedisKeys('');

/** One primary and its replica as they are now. */
interface Pair {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
}

/** How long a killed primary is waited for, in milliseconds; a busy machine may not respond for less. */
const SHORT = 1000;

/** The faults of a Cluster with replicas. */
export const CLUSTER_FAULTS: readonly FaultKind<RedisCluster>[] = [
  {
    name: 'the memory of Redis is full',
    strike: (cluster, random) => filled(nodesOf(cluster), random),
  },
  {
    name: 'one primary of the Cluster is killed, its replica in step',
    async strike(cluster, random) {
      const nodes = nodesOf(cluster);
      const { primary, replica } = await aPair(nodes, random);
      const shards = await shardsOf(primary);
      const lostSince = await inStep(primary, [replica]);
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(500),
        shards,
      );
      const mended = await promoted(nodes, { primary, replica });
      await cameBack(cluster, primary);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'one primary of the Cluster is killed, its replica lagging',
    async strike(cluster, random) {
      const nodes = nodesOf(cluster);
      const { primary, replica } = await aPair(nodes, random);
      const shards = await shardsOf(primary);
      const lostSince = await inStep(primary, [replica]);
      replica.pause();
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await sleep(random.between(50, 400));
      const blind = await blindly(
        () => primary.kill(),
        () => {
          replica.resume();
          return sleep(500);
        },
        shards,
      );
      const mended = await promoted(nodes, { primary, replica });
      await cameBack(cluster, primary);
      return { lostSince, breaksLogins: true, blind, mended };
    },
  },
  {
    name: 'one primary of the Cluster is stopped for a while',
    async strike(cluster, random) {
      const nodes = nodesOf(cluster);
      const { primary } = await aPair(nodes, random);
      const blind = await blindly(
        () => primary.pause(),
        () => sleep(random.between(50, 400)),
        await shardsOf(primary),
      );
      primary.resume();
      return { blind };
    },
  },
  {
    name: 'one primary of the Cluster restarts empty and empties its replica',
    async strike(cluster, random) {
      const nodes = nodesOf(cluster);
      const { primary } = await aPair(nodes, random);
      const blind = await blindly(
        () => primary.kill(),
        () => sleep(random.between(50, 400)),
        await shardsOf(primary),
      );
      // What it was sent when it was a replica itself would be an old state, not none.
      rmSync(primary.snapshot, { force: true });
      await cameBack(cluster, primary);
      return { lostSince: EVERYTHING, breaksLogins: true, blind };
    },
  },
];

function nodesOf({ primaries, replicas }: RedisCluster): readonly RedisServer[] {
  return [...primaries, ...replicas];
}

async function aPair(nodes: readonly RedisServer[], random: SeededRandom): Promise<Pair> {
  await whole(nodes);
  const pairs = await pairsOf(nodes);
  return random.pick(pairs);
}

async function pairsOf(nodes: readonly RedisServer[]): Promise<readonly Pair[]> {
  const infos = await Promise.all(nodes.map(async (node) => ({ node, info: await replicationOf(node) })));
  return infos.flatMap(({ node: replica, info }) => {
    const [, port] = /^master_port:(\d+)/m.exec(info) ?? [];
    const primary = nodes.find((node) => String(node.port) === port);
    return primary !== undefined && info.includes('master_link_status:up') ? [{ primary, replica }] : [];
  });
}

/** The shards whose keys a primary has. */
async function shardsOf(primary: RedisServer): Promise<ReadonlySet<string>> {
  const ranges = (await primary.command('CLUSTER', 'SLOTS')) as [first: number, last: number, [string, number]][];
  const own = ranges.filter(([, , [, port]]) => port === primary.port);
  const isOwn = (slot: number) => own.some(([first, last]) => first <= slot && slot <= last);
  return new Set(SHARDS.filter((shard) => isOwn(slotOf(KEYS.marker(shard)))));
}

/** Lets the others replace a primary that is gone, and waits until they all know. @returns when that was */
async function promoted(nodes: readonly RedisServer[], { primary, replica }: Pair): Promise<number> {
  const others = nodes.filter((node) => node !== primary);
  for (const node of others) await node.command('CONFIG', 'SET', 'cluster-node-timeout', SHORT);
  await until('its replica is promoted', () => isPrimary(replica), LONG);
  await until('every node knows of it', async () => {
    const views = await Promise.all(others.map((node) => node.command('CLUSTER', 'INFO')));
    return views.every((view) => isComplete(view));
  });
  return performance.now();
}

/** Whether a node says that every slot is served. */
function isComplete(view: unknown): boolean {
  return /cluster_state:ok[\s\S]*cluster_slots_ok:16384/.test(String(view));
}

/** Starts a primary that was killed, and waits until the Cluster is as it was before. */
async function cameBack(cluster: RedisCluster, primary: RedisServer): Promise<void> {
  await primary.start();
  await cluster.setPatience(LONG);
  await whole(nodesOf(cluster));
}

/** Waits until every primary has its replica, and every node thinks well of the Cluster. */
async function whole(nodes: readonly RedisServer[]): Promise<void> {
  await until(
    'the Cluster is whole',
    async () => {
      const views = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
      return views.every(isComplete) && (await pairsOf(nodes)).length === 3;
    },
    30_000,
  );
}
