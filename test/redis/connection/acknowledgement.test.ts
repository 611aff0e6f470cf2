// Real replicas that have to acknowledge, and one that stands still.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { issued, redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { connectTo, isAcknowledged, WRITE } from '../setup/connect.ts';
import { type ReplicatedRedis, startReplicated } from '../setup/replicated-redis.ts';
import { isFollowed } from '../setup/replication.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

describeRedis('stores whose replicas have to acknowledge', () => {
  let redis: ReplicatedRedis;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeAll(async () => {
    redis = await startReplicated();
    connection = await connectTo(redis, { acknowledgement: { replicas: 2, timeout: 500 } });
    stores = redisStores({ connection, keys: new RedisKeys('grantry:') });
  });
  afterEach(() => resumed());
  afterAll(async () => {
    await connection.close();
    await redis.stop();
  });

  /** Lets the replica go on, and waits until it has what it missed. */
  async function resumed(): Promise<void> {
    redis.servers[2].resume();
    await until('both replicas acknowledge', () => isAcknowledged(connection, '{s000}:test'));
  }

  it('work as ever while all do', async () => {
    const grant = await redeemed(stores.grants);
    expect(await stores.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    await stores.grants.revoke(grant.grantId);
    await stores.watermarks.raise({ kind: 'global' }, 1);
    expect(await stores.watermarks.read('uid', undefined)).toBe(1);
  });

  it('void a code that one replica may not know to be redeemed', async () => {
    const grant = await issued(stores.grants);
    redis.servers[2].pause();
    const error = await stores.grants.redeem(redeemRequest(grant)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({ retriable: false });
    await resumed();
    expect(await stores.grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    expect(await stores.grants.read(grant.grantId)).toMatchObject({ revoked: true });
  });

  it('refuse a refresh for now, and give the same successor afterwards', async () => {
    const grant = await redeemed(stores.grants);
    redis.servers[2].pause();
    const error = await stores.grants.rotate(rotateRequest(grant, 0)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({ retriable: true });
    await resumed();
    const again = await stores.grants.rotate(rotateRequest(grant, 0));
    expect(again).toMatchObject({ outcome: 'rotated', generation: 1 });
  });

  it('do not call a revocation done, also not the global kill switch', async () => {
    const grant = await redeemed(stores.grants);
    redis.servers[2].pause();
    await expect(stores.grants.revoke(grant.grantId)).rejects.toThrow(StoreUnavailableError);
    await expect(stores.watermarks.raise({ kind: 'global' }, 2)).rejects.toThrow(StoreUnavailableError);
    await resumed();
    await stores.watermarks.raise({ kind: 'global' }, 2);
    expect(await stores.watermarks.read('any', undefined)).toBe(2);
  });
});

describeRedis('a write whose script Redis has forgotten', () => {
  it('is acknowledged by no replica that has not got it', async () => {
    // No Sentinels, which write all the time: what comes before the write is acknowledged.
    const primary = await startRedis({ settings: { 'repl-diskless-sync-delay': 0 } });
    const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
    const connection = await connectTo(primary, { acknowledgement: { replicas: 1, timeout: 500 } });
    try {
      await until('the replica acknowledges', () => isAcknowledged(connection, 'known'));
      await primary.command('SCRIPT', 'FLUSH');
      await until('the replica has said that it has everything', () => isFollowed(primary, 1));
      replica.pause();
      const answer = await connection.runDurably({ script: WRITE, keys: ['forgotten'] });
      expect(answer).toEqual({ reply: 'OK', acknowledged: false });
    } finally {
      await connection.close();
      await replica.stop();
      await primary.stop();
    }
  });
});
