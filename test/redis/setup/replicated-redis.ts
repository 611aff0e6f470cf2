// A primary with two replicas for tests, and the Sentinels that watch it.

import { until } from '../../until.ts';
import { NO_TLS, type Tls } from './certificates.ts';
import { replicationOf } from './replication.ts';
import { LONG, type RedisServer, startRedis } from './servers.ts';

/** A primary with two replicas, watched by three Sentinels. */
export interface ReplicatedRedis {
  readonly url: string;
  /** The primary as started, then its replicas; after a fail-over ask {@link ReplicatedRedis.primary}. */
  readonly servers: readonly [RedisServer, RedisServer, RedisServer];
  readonly sentinels: readonly [RedisServer, RedisServer, RedisServer];
  /** The server that the Sentinels call the primary now. */
  primary(): Promise<RedisServer>;
  /** How long a primary may be silent from now on until it is replaced, in milliseconds. */
  setPatience(milliseconds: number): Promise<void>;
  stop(): Promise<void>;
}

/** What Sentinels call the primary. */
export const PRIMARY_NAME = 'grantry';

interface ReplicatedOptions {
  /** What the Sentinels ask for, also of each other; none by default. */
  readonly sentinelPassword?: string;
  /** All of them, the Sentinels too. */
  readonly tls?: Tls;
  /** The Sentinels instead; `sentinel …` settings come after the one that names the primary. */
  readonly sentinelTls?: Tls;
}

/** How a server is reached that these Sentinels call the primary. */
export function sentinelUrl(sentinels: readonly { readonly port: number }[], tls = NO_TLS): string {
  const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`);
  return `${tls === NO_TLS ? 'redis' : 'rediss'}+sentinel://${addresses.join(',')}/${PRIMARY_NAME}`;
}

/** Starts a replicated set whose primary is replaced only when a test asks for it. */
export async function startReplicated({
  sentinelPassword,
  tls = NO_TLS,
  sentinelTls = tls,
}: ReplicatedOptions = {}): Promise<ReplicatedRedis> {
  // A server that restarts is empty: what a replica was sent as a file must not come back as an old state.
  const shared = { 'repl-diskless-sync-delay': 0, 'rdb-del-sync-files': 'yes', ...tls.settings };
  const { client } = tls;
  const first = await startRedis({ settings: shared, client });
  const settings = { replicaof: `127.0.0.1 ${first.port}`, ...shared };
  const [second, third] = await Promise.all([startRedis({ settings, client }), startRedis({ settings, client })]);
  const servers = [first, second, third] as const;
  const areInStep = async () => (await replicationOf(first)).match(/state=online/g)?.length === 2;
  await until('the replicas are in step', areInStep, LONG);
  const watch = {
    'sentinel monitor': `${PRIMARY_NAME} 127.0.0.1 ${first.port} 2`,
    'sentinel down-after-milliseconds': `${PRIMARY_NAME} ${LONG}`,
    'sentinel failover-timeout': `${PRIMARY_NAME} 1000`,
  };
  const sentinel = () => startSentinel(watch, sentinelPassword, sentinelTls);
  const sentinels = await Promise.all([sentinel(), sentinel(), sentinel()]);
  const knowEachOther = async () => {
    const views = await Promise.all(sentinels.map((each) => each.command('INFO', 'sentinel')));
    return views.every((view) => /status=ok,.*slaves=2,sentinels=3/.test(String(view)));
  };
  await until('the Sentinels know each other and the replicas', knowEachOther, LONG);
  return {
    url: sentinelUrl(sentinels, tls),
    servers,
    sentinels,
    async primary() {
      const views = await Promise.all(
        sentinels.map((each) => each.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)),
      );
      const [, port] = views[0] as [string, string];
      const found = servers.find((server) => server.port === Number(port));
      if (found === undefined) throw new Error(`no server of ours listens on ${port}`);
      return found;
    },
    async setPatience(milliseconds) {
      const setting = ['SENTINEL', 'SET', PRIMARY_NAME, 'down-after-milliseconds', milliseconds] as const;
      await Promise.all(sentinels.map((each) => each.command(...setting)));
    },
    async stop() {
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
    },
  };
}

/** Often enough that a test need not wait for it; and a busy machine does not stop them for half a minute (TILT mode). */
const SENTINEL_PACE = {
  'info-period': 500,
  'publish-period': 500,
  'ask-period': 200,
  'tilt-trigger': LONG,
  'tilt-period': 1000,
} as const;

/** A Sentinel on its own, which takes this server for the primary since that fail-over, and hears of no other. */
export async function startLoneSentinel(primary: RedisServer, epoch = 0): Promise<RedisServer> {
  return await startSentinel({
    'sentinel monitor': `${PRIMARY_NAME} 127.0.0.1 ${primary.port} 1`,
    'sentinel config-epoch': `${PRIMARY_NAME} ${epoch}`,
  });
}

/** Has such a Sentinel take another server for the primary. */
export async function nameInstead(sentinel: RedisServer, primary: RedisServer): Promise<void> {
  await sentinel.command('SENTINEL', 'REMOVE', PRIMARY_NAME);
  await sentinel.command('SENTINEL', 'MONITOR', PRIMARY_NAME, '127.0.0.1', primary.port, 1);
}

/** How often a Sentinel was connected to, which each question to it needs. */
export async function timesAsked(sentinel: RedisServer): Promise<number> {
  const stats = String(await sentinel.command('INFO', 'stats'));
  return Number(/total_connections_received:(\d+)/.exec(stats)?.[1]);
}

async function startSentinel(
  watch: Readonly<Record<string, string>>,
  password?: string,
  tls = NO_TLS,
): Promise<RedisServer> {
  const server = await startRedis({
    mode: 'sentinel',
    settings: { ...watch, ...tls.settings, ...(password !== undefined && { requirepass: password }) },
    client: { ...tls.client, ...(password !== undefined && { password }) },
  });
  await server.command('SENTINEL', 'DEBUG', ...Object.entries(SENTINEL_PACE).flat());
  return server;
}
