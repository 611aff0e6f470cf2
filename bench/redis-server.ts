// A real redis-server of the run's own: nothing of it outlives the run.

import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort, type PinnedProcess, startProgram } from './load/pinned-process.ts';

const START_MILLISECONDS = 5000;

export interface RedisServer extends PinnedProcess {
  readonly url: string;
  /** A connection for what is asked outside the measured time. */
  readonly commands: Redis;
}

/** Starts redis-server as grantry wants it: nothing is evicted and, as one may choose, an append-only file. */
export async function startRedis(cores: string, { appendOnly }: { appendOnly: boolean }): Promise<RedisServer> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'grantry-bench-redis-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const server = startProgram(cores, [
    ...['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
    ...['--maxmemory-policy', 'noeviction', '--appendonly', appendOnly ? 'yes' : 'no', '--loglevel', 'warning'],
  ]);
  const commands = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  commands.on('error', () => {});
  const isUp = await Promise.race([commands.ping(), sleep(START_MILLISECONDS, undefined, { ref: false })]);
  if (isUp === undefined) throw new Error(`redis-server does not answer on port ${port}`);
  return { ...server, url: `redis://127.0.0.1:${port}`, commands };
}

/** `used_memory`: what it holds, in bytes. */
export async function usedBytes({ commands }: RedisServer): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await commands.info('memory'))?.[1]);
}

export async function redisVersion({ commands }: RedisServer): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await commands.info('server'))?.[1] ?? 'of an unknown version';
}

/** How often each command has run since the server started, those inside scripts included. */
export async function commandCounts({ commands }: RedisServer): Promise<ReadonlyMap<string, number>> {
  const lines = (await commands.info('commandstats')).matchAll(/^cmdstat_(\S+):calls=(\d+)/gm);
  return new Map([...lines].map(([, name = '', calls]) => [name, Number(calls)]));
}
