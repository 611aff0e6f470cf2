// A connection of the product to a server of a test, and how long what is done on it takes.

import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import {
  type ConnectionOptions,
  connectRedis,
  type ManagedConnection,
  type RedisConnection,
} from '../../../src/redis/connection/connection.ts';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';
import type { Script } from '../../../src/redis/scripts/script.ts';

/** Connects and waits until every primary takes commands, for `limit` ms at most. Close it. */
export async function connectTo(
  { url }: { readonly url: string },
  options: Omit<ConnectionOptions, 'target'> = {},
  limit = 15_000,
): Promise<ManagedConnection> {
  const connection = connectRedis({ target: parseRedisUrl(url), ...options });
  try {
    await connection.ready(limit);
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** The port of the one server that is asked. @throws StoreUnavailableError where it does not answer */
export async function portOf(connection: ManagedConnection): Promise<number> {
  const [info] = await connection.info();
  return Number(/^tcp_port:(\d+)/m.exec(info?.text ?? '')?.[1]);
}

/** Writes one key, and answers `OK`. */
export const WRITE: Script = { name: 'testWrite', keys: 1, lua: "return redis.call('SET', KEYS[1], 1)" };

/** Whether replicas have a write of this key in time; not, too, where a busy machine delays every request too long. */
export async function isAcknowledged(connection: RedisConnection, key: string): Promise<boolean> {
  try {
    return (await connection.runDurably({ script: WRITE, keys: [key] })).acknowledged;
  } catch (error) {
    if (error instanceof StoreUnavailableError) return false;
    throw error;
  }
}

/** A connection whose methods can be replaced one by one. */
export function methodsOf(real: ManagedConnection): ManagedConnection {
  return {
    allowsCrossSlot: real.allowsCrossSlot,
    get isUp() {
      return real.isUp;
    },
    get primaries() {
      return real.primaries;
    },
    run: (...action) => real.run(...action),
    runDurably: (...action) => real.runDurably(...action),
    recordForReplay: (action) => real.recordForReplay(action),
    ready: (limit) => real.ready(limit),
    info: () => real.info(),
    admitsUnauthenticated: (server, key) => real.admitsUnauthenticated(server, key),
    replayRevocations: (which) => real.replayRevocations(which),
    forgetOld: () => real.forgetOld(),
    onReconnect: (listener) => real.onReconnect(listener),
    close: () => real.close(),
  };
}

/** Of a time in which this process did not run, only so much counts; milliseconds. */
const STALL = 50;

let lastTick = performance.now();
let awake = 0;

function tick(): number {
  const now = performance.now();
  awake += Math.min(now - lastTick, STALL);
  lastTick = now;
  return awake;
}

setInterval(tick, 10).unref();

/** What became of some work: its value or its error, and how long it took; what a busy machine kept us from running is left out. */
export async function timed<Value>(
  work: () => Promise<Value>,
): Promise<{ value?: Value; error?: unknown; milliseconds: number }> {
  const start = tick();
  try {
    const value = await work();
    return { value, milliseconds: tick() - start };
  } catch (error) {
    return { error, milliseconds: tick() - start };
  }
}

const MOST_TRIES = 5;

/**
 * Repeats some work until it takes less than `limit` ms: a busy machine delays other processes, too, but not each time.
 * @param work answers how long it took
 * @throws when it never does
 */
export async function expectWithin(limit: number, work: () => Promise<number>): Promise<void> {
  const times: number[] = [];
  while (times.length < MOST_TRIES) {
    const milliseconds = await work();
    if (milliseconds < limit) return;
    times.push(Math.round(milliseconds));
  }
  throw new Error(`took ${times.join(', ')} ms, never less than ${limit}`);
}
