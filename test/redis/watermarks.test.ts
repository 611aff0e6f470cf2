// The global watermark has a copy in each shard. Raising it may fail half-way, on a server that is replaced before it is
// tried again; what was seen once must hold wherever Redis goes on.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../src/oauth/error.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { RedisWatermarks } from '../../src/redis/watermarks.ts';
import { connectTo } from './connect.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

const CLIENTS = Array.from({ length: 100 }, (_, index) => `uid-${index}`);

describeRedis('the global watermark', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    // There is no replica that could acknowledge.
    connection = await connectTo(server, { acknowledgement: { replicas: 1, timeout: 1 } });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  it('is raised in every shard after a fail-over, also where the first try was not acknowledged', async () => {
    const watermarks = new RedisWatermarks({ connection, keys: new RedisKeys('grantry:') });
    await expect(watermarks.raise({ kind: 'global' }, 1234)).rejects.toBeInstanceOf(StoreUnavailableError);
    await server.command('FLUSHALL');
    await connection.reassert('all');
    for (const uid of CLIENTS) expect(await watermarks.read(uid, undefined)).toBe(1234);
  });
});
