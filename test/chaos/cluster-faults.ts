// What can happen to a Cluster of three primaries with a replica each: always to one of the primaries, the others go on.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LONG, type RedisCluster, type RedisServer } from '../redis/servers.ts';
import { until } from '../until.ts';
import { EVERYTHING, type FaultKind, offsetIn } from './faults.ts';
import type { SeededRandom } from './seeded-random.ts';

/** One primary and its replica as they are now. */
interface Pair {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
}

/** How long a dead primary is waited for, in milliseconds; a busy machine may look dead for less. */
const SHORT = 1000;

/** The faults of a Cluster with replicas. */
export function faultsOfCluster(cluster: RedisCluster): readonly FaultKind[] {
  const nodes = [...cluster.primaries, ...cluster.replicas];
  return [
    {
      name: 'one primary of the Cluster is killed, its replica in step',
      async strike(random) {
        const { primary, replica } = await aPair(nodes, random);
        const lostSince = await inStep({ primary, replica });
        await cluster.setPatience(SHORT);
        await primary.kill();
        await until('its replica is promoted', () => isPrimary(replica), LONG);
        const mended = performance.now();
        await primary.start();
        await cluster.setPatience(LONG);
        await whole(nodes);
        return { lostSince, breaksLogins: true, mended };
      },
    },
    {
      name: 'one primary of the Cluster is killed, its replica lagging',
      async strike(random) {
        const { primary, replica } = await aPair(nodes, random);
        const lostSince = await inStep({ primary, replica });
        await cluster.setPatience(SHORT);
        replica.pause();
        await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
        await sleep(random.between(50, 400));
        await primary.kill();
        replica.resume();
        await until('its replica is promoted', () => isPrimary(replica), LONG);
        const mended = performance.now();
        await primary.start();
        await cluster.setPatience(LONG);
        await whole(nodes);
        return { lostSince, breaksLogins: true, mended };
      },
    },
    {
      name: 'one primary of the Cluster is stopped for a while',
      async strike(random) {
        const { primary } = await aPair(nodes, random);
        primary.pause();
        await sleep(random.between(50, 400));
        primary.resume();
        return {};
      },
    },
    {
      name: 'one primary of the Cluster restarts empty and empties its replica',
      async strike(random) {
        const { primary } = await aPair(nodes, random);
        const [, folder] = (await primary.command('CONFIG', 'GET', 'dir')) as [string, string];
        await primary.kill();
        // What it was sent when it was a replica itself would be an old state, not none.
        rmSync(join(folder, 'dump.rdb'), { force: true });
        await primary.start();
        await cluster.setPatience(LONG);
        await whole(nodes);
        return { lostSince: EVERYTHING, breaksLogins: true };
      },
    },
  ];
}

async function aPair(nodes: readonly RedisServer[], random: SeededRandom): Promise<Pair> {
  await whole(nodes);
  const pairs = await pairsOf(nodes);
  return random.pick(pairs);
}

async function pairsOf(nodes: readonly RedisServer[]): Promise<readonly Pair[]> {
  const infos = await Promise.all(
    nodes.map(async (node) => ({ node, info: String(await node.command('INFO', 'replication')) })),
  );
  return infos.flatMap(({ node: replica, info }) => {
    const [, port] = /^master_port:(\d+)/m.exec(info) ?? [];
    const primary = nodes.find((node) => String(node.port) === port);
    return primary !== undefined && info.includes('master_link_status:up') ? [{ primary, replica }] : [];
  });
}

async function isPrimary(node: RedisServer): Promise<boolean> {
  return String(await node.command('INFO', 'replication')).includes('role:master');
}

/** Waits until the replica has what its primary had when this was called. @returns that moment */
async function inStep({ primary, replica }: Pair): Promise<number> {
  const moment = performance.now();
  const wanted = offsetIn(await primary.command('INFO', 'replication'));
  await until('the replica is in step', async () => offsetIn(await replica.command('INFO', 'replication')) >= wanted);
  return moment;
}

/** Waits until every primary has its replica, and every node thinks well of the Cluster. */
async function whole(nodes: readonly RedisServer[]): Promise<void> {
  await until(
    'the Cluster is whole',
    async () => {
      const views = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
      const isWell = views.every((view) => /cluster_state:ok[\s\S]*cluster_slots_ok:16384/.test(String(view)));
      return isWell && (await pairsOf(nodes)).length === 3;
    },
    30_000,
  );
}
