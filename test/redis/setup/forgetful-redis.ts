// A server that comes back as it was a moment ago, like a replica that takes over and is behind.

import type { StoresSuite } from './redis-suite.ts';

/** Does something, and has the server forget it. */
export async function losing<Value>(
  { server, connection }: Pick<StoresSuite, 'server' | 'connection'>,
  work: () => Promise<Value>,
): Promise<Value> {
  await server.command('SAVE');
  const value = await work();
  await server.kill();
  await server.start();
  await connection.ready(5000);
  return value;
}
