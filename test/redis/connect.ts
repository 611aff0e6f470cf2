// A connection of the product to a server of a test, and how long what is done on it takes.

import { type ConnectionOptions, connectRedis, type ManagedConnection } from '../../src/redis/connection.ts';
import { parseRedisUrl } from '../../src/redis/redis-url.ts';

/** Connects and waits until every primary takes commands, for `limit` ms at most. Close it. */
export async function connectTo(
  { url }: { readonly url: string },
  options: Omit<ConnectionOptions, 'target'> = {},
  limit = 5000,
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

/** What became of some work: its value or its error, and how long it took. */
export async function timed<Value>(
  work: () => Promise<Value>,
): Promise<{ value?: Value; error?: unknown; milliseconds: number }> {
  const start = performance.now();
  try {
    const value = await work();
    return { value, milliseconds: performance.now() - start };
  } catch (error) {
    return { error, milliseconds: performance.now() - start };
  }
}
