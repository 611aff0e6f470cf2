// Real Redis servers for tests. Each runs from a folder of its own on a free port, is ended by `stop()`, and never outlives the
// process that started it. What several of them make up is in replicated-redis.ts and redis-cluster.ts.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { describe, it } from 'vitest';
import { freePort } from '../../free-port.ts';

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
  /** Arguments of the command line, which replace settings. */
  readonly flags?: readonly string[];
  /** Keeps what was written over a restart (append-only file). Default false. */
  readonly persistent?: boolean;
  /** How the test's own commands connect, where the server wants TLS or a password. */
  readonly client?: ClientOptions;
  /** Where it is not one that stands alone or is replicated. The bus of a Cluster's node is on the port after its own. */
  readonly mode?: 'sentinel' | 'cluster';
}

/** One running redis-server. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Where its files are. */
  readonly folder: string;
  /** One of them: the snapshot that it reads at its start, once it has written one. */
  readonly snapshot: string;
  /** The process it runs as now. */
  pid(): number;
  /** Sends one command on a connection of its own, e.g. `command('CONFIG', 'SET', 'maxmemory', '1')`. */
  command(...words: readonly (string | number)[]): Promise<unknown>;
  /** SIGKILL; `start()` restarts it on the same port, empty unless `persistent`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** For how long no server is marked down unless a test asks for it, however busy the machine; milliseconds. */
export const LONG = 60_000;

const MOST_STARTS = 5;

/** Starts one server and waits until it takes commands. A port that another process takes first is left to it. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let starts = 1; ; starts++) {
    const server = new ServerProcess(options, await freePort(options.mode === 'cluster' ? 2 : 1));
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
  readonly folder: string;
  readonly snapshot: string;
  readonly #arguments: readonly string[];
  readonly #client: ClientOptions;
  #child: ChildProcess | undefined;
  #connection: Redis | undefined;
  readonly #endWithUs = () => this.#child?.kill('SIGKILL');

  constructor({ settings, flags = [], persistent = false, client, mode }: RedisServerOptions, port: number) {
    this.port = port;
    this.url = `${client?.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
    this.folder = mkdtempSync(join(tmpdir(), 'grantry-redis-'));
    this.snapshot = join(this.folder, 'dump.rdb');
    this.#client = { ...client, host: '127.0.0.1', port, protocol: 2, disableClientInfo: true };
    const isSentinel = mode === 'sentinel';
    const all: Record<string, string | number> = {
      bind: '127.0.0.1',
      dir: this.folder,
      ...(client?.tls ? { port: 0, 'tls-port': port } : { port }),
      ...(isSentinel ? {} : { save: '""', appendonly: persistent ? 'yes' : 'no', 'enable-debug-command': 'yes' }),
      ...(mode === 'cluster' && { 'cluster-enabled': 'yes', 'cluster-port': port + 1 }),
      ...settings,
    };
    const file = join(this.folder, 'redis.conf');
    writeFileSync(
      file,
      Object.entries(all)
        .map(([name, value]) => `${name} ${value}\n`)
        .join(''),
    );
    this.#arguments = isSentinel ? [file, '--sentinel'] : [file, ...flags];
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
    rmSync(this.folder, { recursive: true, force: true });
  }

  #connect(): Redis {
    const connection = new Redis(this.#client);
    connection.on('error', () => {});
    return connection;
  }
}
