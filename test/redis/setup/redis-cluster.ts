// A Cluster for tests.

import { slotOf } from '../../../src/redis/topology/slot.ts';
import { until } from '../../until.ts';
import { NO_TLS, type Tls } from './certificates.ts';
import { replicationOf } from './replication.ts';
import { LONG, type RedisServer, startRedis } from './servers.ts';

/** A Cluster of three primaries, on request with a replica each. */
export interface RedisCluster {
  readonly url: string;
  readonly primaries: readonly [RedisServer, RedisServer, RedisServer];
  /** The replica of each primary, in the same order; empty without replicas. */
  readonly replicas: readonly RedisServer[];
  /** How long a node may be silent from now on until it is replaced, in milliseconds. Every node must run. */
  setPatience(milliseconds: number): Promise<void>;
  stop(): Promise<void>;
}

/** The slots that each primary begins with, from the first to the last. */
const SLOT_RANGES = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const;

/** Which of the primaries begins with this key: 0, 1 or 2. */
export function ownerOf(key: string): number {
  return SLOT_RANGES.findIndex(([, last]) => slotOf(key) <= last);
}

/** Starts a Cluster, waits until it covers every slot, and lets no node replace another until a test asks for it. */
export async function startCluster({
  replicated = false,
  tls = NO_TLS,
}: {
  readonly replicated?: boolean;
  readonly tls?: Tls;
} = {}): Promise<RedisCluster> {
  const settings = {
    'cluster-node-timeout': 1000,
    'cluster-require-full-coverage': 'no',
    'repl-diskless-sync-delay': 0,
    ...(tls === NO_TLS ? {} : { ...tls.settings, 'tls-cluster': 'yes' }),
  };
  const start = () => startRedis({ mode: 'cluster', settings, client: tls.client });
  const three = () => Promise.all([start(), start(), start()]);
  const [primaries, replicas] = await Promise.all([three(), replicated ? three() : []]);
  const [seed] = primaries;
  const nodes = [...primaries, ...replicas];
  await Promise.all(primaries.map((node, i) => node.command('CLUSTER', 'ADDSLOTSRANGE', ...(SLOT_RANGES[i] ?? []))));
  await Promise.all(nodes.map((node, i) => node.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)));
  for (const node of nodes.slice(1)) await seed.command('CLUSTER', 'MEET', '127.0.0.1', node.port, node.port + 1);
  await until('the nodes know each other', () => every(nodes, `cluster_known_nodes:${nodes.length}`), LONG);
  for (const [i, replica] of replicas.entries()) {
    await replica.command('CLUSTER', 'REPLICATE', String(await primaries[i]?.command('CLUSTER', 'MYID')));
  }
  await until('the Cluster is up', () => every(nodes, 'cluster_state:ok'), LONG);
  const areInStep = async () => {
    const views = await Promise.all(replicas.map((node) => replicationOf(node)));
    return views.every((view) => view.includes('master_link_status:up'));
  };
  await until('the replicas are in step', areInStep, LONG);
  const setPatience = async (milliseconds: number) => {
    await Promise.all(nodes.map((node) => node.command('CONFIG', 'SET', 'cluster-node-timeout', milliseconds)));
  };
  await setPatience(LONG);
  return {
    url: `${tls === NO_TLS ? 'redis' : 'rediss'}+cluster://${primaries.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    primaries,
    replicas,
    setPatience,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

async function every(nodes: readonly RedisServer[], line: string): Promise<boolean> {
  const views = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
  return views.every((view) => String(view).includes(line));
}
