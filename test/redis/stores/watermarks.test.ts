// The global watermark has a copy in each shard. Raising it may fail half-way, on a server that is replaced before it is
// tried again; what was seen once must hold wherever Redis goes on.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { RedisWatermarks } from '../../../src/redis/stores/watermarks.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { slotOf } from '../../../src/redis/topology/slot.ts';
import { issued, redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { connectTo } from '../setup/connect.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

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
    await connection.replayRevocations('all');
    for (const uid of CLIENTS) expect(await watermarks.read(uid, undefined)).toBe(1234);
  });
});

describeRedis('the global watermark of a Cluster', () => {
  it('ends a family, whatever other primary than that of the family is emptied, that of the client included', async () => {
    const cluster = await startCluster();
    const connection = await connectTo(cluster);
    try {
      const keys = new RedisKeys('grantry:');
      const { grants, watermarks } = redisStores({ connection, keys });
      const grant = await redeemed(grants);
      const code = await issued(grants);
      const { createdAt } = (await grants.read(code.grantId))?.grant ?? { createdAt: Number.NaN };
      await watermarks.raise({ kind: 'global' }, createdAt);
      const holders = async (key: string) => {
        const count = (each: RedisServer) => each.command('CLUSTER', 'COUNTKEYSINSLOT', slotOf(key));
        return (await Promise.all(cluster.primaries.map(count))).map((keysThere) => Number(keysThere) > 0);
      };
      const ofFamily = await holders(keys.grant(grant.grantId));
      expect(await holders(keys.clientWatermark(grant.clientUid))).not.toEqual(ofFamily);
      const others = cluster.primaries.filter((_, index) => !ofFamily[index]);
      await Promise.all(others.map((primary) => primary.command('FLUSHALL')));
      const answer = await grants.rotate(rotateRequest(grant, 0));
      expect(answer).toEqual({ outcome: 'ended' });
      expect(await grants.redeem(redeemRequest(code))).toEqual({ outcome: 'ended' });
    } finally {
      await connection.close();
      await cluster.stop();
    }
  });
});
