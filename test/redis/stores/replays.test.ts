// Replay marks where Redis loses its state: an emptied shard revives no credential that was used before.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

describeRedis('a replay mark of a value that was issued at a known time', () => {
  const keys = new RedisKeys('grantry:');
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server);
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    for (const shard of SHARDS) await server.command('SET', keys.marker(shard), '1 history');
  });

  const issuedAt = Date.now();
  const claim = (value: string, at: number | undefined = issuedAt) =>
    redisStores({ connection, keys }).replays.claim('client_assertion', value, Date.now() + 60_000, at);

  it('with the marker of its shard in place → fresh once', async () => {
    expect([await claim('one'), await claim('one')]).toEqual(['fresh', 'seen']);
  });

  it('in the moment after all keys are gone → lost, and no mark is made', async () => {
    await claim('one');
    await server.command('FLUSHALL');
    expect(await claim('one')).toBe('lost');
    expect(await server.command('DBSIZE')).toBe(0);
    // A value that is recorded only to be noticed.
    expect(await redisStores({ connection, keys }).replays.claim('code_challenge', 'one', Date.now() + 60_000)).toBe(
      'fresh',
    );
  });

  it('with markers restored after a loss → lost if it was issued at or before the global watermark, else fresh', async () => {
    const { watermarks } = redisStores({ connection, keys });
    await watermarks.raise({ kind: 'global' }, issuedAt);
    expect([await claim('one', issuedAt - 1), await claim('one', issuedAt)]).toEqual(['lost', 'lost']);
    expect(await claim('one', issuedAt + 1)).toBe('fresh');
  });
});
