// A server that comes back as it was a moment ago, like a replica that takes over and is behind; and a replica of grantry on it,
// which remembers what it did meanwhile.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { connectTo } from './connect.ts';
import { type RedisServer, startRedis } from './servers.ts';

/** A server, and what a replica of grantry has of it. */
interface ForgetfulRedis {
  readonly server: RedisServer;
  readonly keys: RedisKeys;
  readonly connection: ManagedConnection;
  readonly stores: Stores;
}

/** One server for the suite that calls this, with a replica of its own for each test. */
export function forgetfulRedis(): ForgetfulRedis {
  const keys = new RedisKeys('grantry:');
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    connection = await connectTo(server);
    stores = redisStores({ connection, keys });
  });
  afterEach(() => connection.close());
  afterAll(() => server.stop());
  return {
    keys,
    get server() {
      return server;
    },
    get connection() {
      return connection;
    },
    get stores() {
      return stores;
    },
  };
}

/** Does something, and has the server forget it. */
export async function losing<Value>(
  { server, connection }: Pick<ForgetfulRedis, 'server' | 'connection'>,
  work: () => Promise<Value>,
): Promise<Value> {
  await server.command('SAVE');
  const value = await work();
  await server.kill();
  await server.start();
  await connection.ready(15_000);
  return value;
}
