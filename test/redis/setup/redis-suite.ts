// The life of the servers of a suite: started before its tests, or for each of them, and stopped after it, with every
// connection to them.

import { afterAll, afterEach, beforeAll, beforeEach, test } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { connectTo } from './connect.ts';
import { type RedisServer, startRedis } from './servers.ts';

/** One server, a Cluster, or a primary with replicas and Sentinels. */
export interface Started {
  readonly url: string;
  stop(): Promise<void>;
}

type Options = Omit<ConnectionOptions, 'target'>;

/** The servers of a suite. Read its members in tests and hooks alone. */
export interface RedisSuite<Of extends Started = RedisServer> {
  readonly server: Of;
  readonly keys: RedisKeys;
  /** A connection that is closed after the running test. @param way where it is not to the server itself */
  connect(options?: Options, way?: { readonly url: string }): Promise<ManagedConnection>;
}

/** The servers of a suite, and a replica of grantry on them for each test. */
export interface StoresSuite<Of extends Started = RedisServer> extends RedisSuite<Of> {
  readonly connection: ManagedConnection;
  readonly stores: Stores;
}

/** Starts what the tests of the suite that calls this share: one server, where nothing else is given. */
export function redisSuite(): RedisSuite;
export function redisSuite<Of extends Started>(start: () => Promise<Of>): RedisSuite<Of>;
export function redisSuite(start: () => Promise<Started> = startRedis): RedisSuite<Started> {
  let server: Started;
  const open: ManagedConnection[] = [];
  beforeAll(async () => {
    server = await start();
  });
  afterEach(async () => {
    for (const connection of open.splice(0)) await connection.close();
  });
  afterAll(() => server.stop());
  return {
    keys: new RedisKeys('grantry:'),
    get server() {
      return server;
    },
    async connect(options, way = server) {
      const connection = await connectTo(way, options);
      open.push(connection);
      return connection;
    },
  };
}

/** The same with a connection for each test, and its stores. */
export function storesSuite(options?: Options): StoresSuite;
export function storesSuite<Of extends Started>(options: Options, start: () => Promise<Of>): StoresSuite<Of>;
export function storesSuite(options: Options = {}, start: () => Promise<Started> = startRedis): StoresSuite<Started> {
  const suite = redisSuite(start);
  const { keys, connect } = suite;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeEach(async () => {
    connection = await connect(options);
    stores = redisStores({ connection, keys });
  });
  return {
    keys,
    connect,
    get server() {
      return suite.server;
    },
    get connection() {
      return connection;
    },
    get stores() {
      return stores;
    },
  };
}

/** An `it` whose tests run at the same time, for those that wait most of it: each has a `redis` of its own. */
export function concurrentTests<Of extends { stop(): Promise<void> }>(start: () => Promise<Of>) {
  const own = test.extend('redis', async ({ task: _task }, { onCleanup }) => {
    const redis = await start();
    onCleanup(() => redis.stop());
    return redis;
  });
  return own.concurrent;
}
