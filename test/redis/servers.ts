// Real Redis servers for tests: one, a replicated set with Sentinels, a Cluster. Each runs from a folder of its own on a
// free port, is ended by `stop()`, and never outlives the process that started it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { describe, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';

const AVAILABLE = spawnSync('redis-server', ['--version']).status === 0;

/** A suite that needs redis-server: passed over by name where there is none, failing where CI=true. */
export function describeRedis(name: string, suite: () => void): void {
  if (AVAILABLE) describe(name, suite);
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('has a redis-server to run on', () => {
        throw new Error('redis-server is not installed');
      });
    });
  } else describe.skip(`${name} (redis-server is not installed)`, suite);
}

/** Options of ioredis, its replies in their plain form. */
type ClientOptions = RedisOptions & { readonly replyMapping?: 'legacy' };

export interface RedisServerOptions {
  /** Settings of redis.conf that replace ours, one value each. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Keeps what was written over a restart (append-only file). Default false. */
  readonly persistent?: boolean;
  /** How the test's own commands connect, where the server wants TLS or a password. */
  readonly client?: ClientOptions;
}

/** One running redis-server. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** The process it runs as now. */
  pid(): number;
  /** Sends one command on a connection of its own, e.g. `command('CONFIG', 'SET', 'maxmemory', '1')`. */
  command(...words: readonly (string | number)[]): Promise<unknown>;
  /** SIGKILL; `start()` brings it back on the same port, empty unless `persistent`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** Starts one server and waits until it takes commands. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  return await startOn(1, (port) => new ServerProcess(options, port, []));
}

/** A primary with two replicas, watched by three Sentinels. */
export interface ReplicatedRedis {
  readonly url: string;
  /** The primary as started, then its replicas; after a fail-over ask {@link ReplicatedRedis.primary}. */
  readonly servers: readonly [RedisServer, RedisServer, RedisServer];
  readonly sentinels: readonly RedisServer[];
  /** The server that the Sentinels call the primary now. */
  primary(): Promise<RedisServer>;
  /** How long a primary may be silent from now on until it is replaced, in milliseconds. */
  setPatience(milliseconds: number): Promise<void>;
  stop(): Promise<void>;
}

const PRIMARY_NAME = 'grantry';

/** For how long no server is taken for dead unless a test asks for it, however busy the machine; milliseconds. */
export const LONG = 60_000;

/** How servers speak TLS, to each other too. */
type Tls = Required<Pick<RedisServerOptions, 'settings' | 'client'>>;

const NO_TLS: Tls = { settings: {}, client: {} };

interface ReplicatedOptions {
  /** What the Sentinels ask for, also of each other; none by default. */
  readonly sentinelPassword?: string;
  /** All of them, the Sentinels too. */
  readonly tls?: Tls;
}

/** Starts a replicated set whose primary is replaced only when a test asks for it. */
export async function startReplicated({
  sentinelPassword,
  tls = NO_TLS,
}: ReplicatedOptions = {}): Promise<ReplicatedRedis> {
  // Whoever restarts is empty: what a replica was sent as a file must not come back as an old state.
  const shared = { 'repl-diskless-sync-delay': 0, 'rdb-del-sync-files': 'yes', ...tls.settings };
  const { client } = tls;
  const first = await startRedis({ settings: shared, client });
  const settings = { replicaof: `127.0.0.1 ${first.port}`, ...shared };
  const [second, third] = await Promise.all([startRedis({ settings, client }), startRedis({ settings, client })]);
  const servers = [first, second, third] as const;
  await until('the replicas are in step', async () => {
    return String(await first.command('INFO', 'replication')).match(/state=online/g)?.length === 2;
  });
  const watch = {
    'sentinel monitor': `${PRIMARY_NAME} 127.0.0.1 ${first.port} 2`,
    'sentinel down-after-milliseconds': `${PRIMARY_NAME} ${LONG}`,
    'sentinel failover-timeout': `${PRIMARY_NAME} 1000`,
  };
  const sentinels = await Promise.all([0, 1, 2].map(() => startSentinel(watch, sentinelPassword, tls)));
  await until('the Sentinels know each other and the replicas', async () => {
    const views = await Promise.all(sentinels.map((each) => each.command('INFO', 'sentinel')));
    return views.every((view) => /status=ok,.*slaves=2,sentinels=3/.test(String(view)));
  });
  return {
    url: `${tls === NO_TLS ? 'redis' : 'rediss'}+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`,
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
      await Promise.all(sentinels.map((sentinel) => sentinel.command(...setting)));
    },
    async stop() {
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
    },
  };
}

/** A Cluster of three primaries, on request with a replica each. */
export interface RedisCluster {
  readonly url: string;
  readonly primaries: readonly RedisServer[];
  /** The replica of each primary, in the same order; empty without replicas. */
  readonly replicas: readonly RedisServer[];
  /** How long a node may be silent from now on until it is replaced, in milliseconds. Every node must run. */
  setPatience(milliseconds: number): Promise<void>;
  stop(): Promise<void>;
}

const SLOT_RANGES = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const;

/** Starts a Cluster, waits until it covers every slot, and lets no node replace another until a test asks for it. */
export async function startCluster({
  replicated = false,
  tls = NO_TLS,
}: {
  readonly replicated?: boolean;
  readonly tls?: Tls;
} = {}): Promise<RedisCluster> {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-node-timeout': 1000,
    'cluster-require-full-coverage': 'no',
    'repl-diskless-sync-delay': 0,
    ...(tls === NO_TLS ? {} : { ...tls.settings, 'tls-cluster': 'yes' }),
  };
  const nodes = await Promise.all(
    Array.from({ length: replicated ? 6 : 3 }, () => startClusterNode(settings, tls.client)),
  );
  const primaries = nodes.slice(0, 3);
  const replicas = nodes.slice(3);
  const [seed] = nodes;
  if (seed === undefined) throw new Error('no node');
  await Promise.all(primaries.map((node, i) => node.command('CLUSTER', 'ADDSLOTSRANGE', ...(SLOT_RANGES[i] ?? []))));
  await Promise.all(nodes.map((node, i) => node.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)));
  for (const node of nodes.slice(1)) await seed.command('CLUSTER', 'MEET', '127.0.0.1', node.port, node.port + 1);
  await until('the nodes know each other', () => every(nodes, `cluster_known_nodes:${nodes.length}`));
  for (const [i, replica] of replicas.entries()) {
    await replica.command('CLUSTER', 'REPLICATE', String(await primaries[i]?.command('CLUSTER', 'MYID')));
  }
  await until('the Cluster is up', () => every(nodes, 'cluster_state:ok'));
  await until('the replicas are in step', async () => {
    const views = await Promise.all(replicas.map((node) => node.command('INFO', 'replication')));
    return views.every((view) => String(view).includes('master_link_status:up'));
  });
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

async function startSentinel(
  watch: Readonly<Record<string, string>>,
  password?: string,
  tls = NO_TLS,
): Promise<RedisServer> {
  const guarded = {
    settings: { ...watch, ...tls.settings, ...(password !== undefined && { requirepass: password }) },
    client: { ...tls.client, ...(password !== undefined && { password }) },
  };
  const server = await startOn(1, (port) => new ServerProcess(guarded, port, ['--sentinel']));
  await server.command('SENTINEL', 'DEBUG', ...Object.entries(SENTINEL_PACE).flat());
  return server;
}

async function startClusterNode(
  settings: Readonly<Record<string, string | number>>,
  client: ClientOptions,
): Promise<RedisServer> {
  return await startOn(2, (port) => {
    return new ServerProcess({ settings: { ...settings, 'cluster-port': port + 1 }, client }, port, []);
  });
}

const MOST_STARTS = 5;

/** Starts a server on free ports in a row; those that somebody takes before it does are left to them. */
async function startOn(ports: number, serverOn: (port: number) => ServerProcess): Promise<RedisServer> {
  for (let starts = 1; ; starts++) {
    const server = serverOn(await freePort(ports));
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      if (starts === MOST_STARTS || !/Address already in use/.test(String(error))) throw error;
    }
  }
}

class ServerProcess implements RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #folder: string;
  readonly #arguments: readonly string[];
  readonly #client: ClientOptions;
  #child: ChildProcess | undefined;
  #connection: Redis | undefined;
  readonly #endWithUs = () => this.#child?.kill('SIGKILL');

  constructor({ settings, persistent = false, client }: RedisServerOptions, port: number, mode: readonly string[]) {
    this.port = port;
    this.url = `${client?.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
    this.#folder = mkdtempSync(join(tmpdir(), 'grantry-redis-'));
    this.#client = { ...client, host: '127.0.0.1', port, protocol: 2, disableClientInfo: true };
    const isSentinel = mode.includes('--sentinel');
    const all: Record<string, string | number> = {
      bind: '127.0.0.1',
      dir: this.#folder,
      ...(client?.tls ? { port: 0, 'tls-port': port } : { port }),
      ...(isSentinel ? {} : { save: '""', appendonly: persistent ? 'yes' : 'no', 'enable-debug-command': 'yes' }),
      ...settings,
    };
    const file = join(this.#folder, 'redis.conf');
    writeFileSync(
      file,
      Object.entries(all)
        .map(([name, value]) => `${name} ${value}\n`)
        .join(''),
    );
    this.#arguments = [file, ...mode];
    process.on('exit', this.#endWithUs);
  }

  pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the server does not run');
    return pid;
  }

  async start(): Promise<void> {
    // Where a file may not grow any more a write fails, as on a full disk, and is not the end of the server.
    const command = ['-c', 'trap "" XFSZ; exec redis-server "$@"', 'redis-server', ...this.#arguments];
    const child = spawn('sh', command, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk) => {
        output += chunk;
        if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
      });
      child.once('exit', () => reject(new Error(`redis-server ended at once: ${output}`)));
    });
    child.removeAllListeners('exit');
    child.stdout.removeAllListeners('data').resume();
  }

  async command(...[name = '', ...words]: readonly (string | number)[]): Promise<unknown> {
    this.#connection ??= this.#connect();
    return await this.#connection.call(String(name), ...words);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#connection?.disconnect();
    this.#connection = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    await this.kill();
    process.off('exit', this.#endWithUs);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #connect(): Redis {
    const connection = new Redis(this.#client);
    connection.on('error', () => {});
    return connection;
  }
}
