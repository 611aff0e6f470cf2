// Real replicas that have to acknowledge, and one that stands still.

import { afterEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { issued, redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { connectTo, isAcknowledged, WRITE } from '../setup/connect.ts';
import { storesSuite } from '../setup/redis-suite.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { isFollowed } from '../setup/replication.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

describeRedis('stores whose replicas have to acknowledge', () => {
  const redis = storesSuite({ acknowledgement: { replicas: 2, timeout: 500 } }, startReplicated);
  afterEach(() => resumed());

  /** Lets the replica go on, and waits until it has what it missed. */
  async function resumed(): Promise<void> {
    redis.server.servers[2].resume();
    await until('both replicas acknowledge', () => isAcknowledged(redis.connection, '{s000}:test'));
  }

  it('work as ever while all do', async () => {
    const grant = await redeemed(redis.stores.grants);
    expect(await redis.stores.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    await redis.stores.grants.revoke(grant.grantId);
    await redis.stores.watermarks.raise({ kind: 'global' }, 1);
    expect(await redis.stores.watermarks.read('uid', undefined)).toBe(1);
  });

  it('void a code that one replica may not know to be redeemed', async () => {
    const grant = await issued(redis.stores.grants);
    redis.server.servers[2].pause();
    const error = await redis.stores.grants.redeem(redeemRequest(grant)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({ retriable: false });
    await resumed();
    expect(await redis.stores.grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    expect(await redis.stores.grants.read(grant.grantId)).toMatchObject({ revoked: true });
  });

  it('refuse a refresh for now, and give the same successor afterwards', async () => {
    const grant = await redeemed(redis.stores.grants);
    redis.server.servers[2].pause();
    const error = await redis.stores.grants.rotate(rotateRequest(grant, 0)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({ retriable: true });
    await resumed();
    const again = await redis.stores.grants.rotate(rotateRequest(grant, 0));
    expect(again).toMatchObject({ outcome: 'rotated', generation: 1 });
  });

  it('do not call a revocation done, also not the global kill switch', async () => {
    const grant = await redeemed(redis.stores.grants);
    redis.server.servers[2].pause();
    await expect(redis.stores.grants.revoke(grant.grantId)).rejects.toThrow(StoreUnavailableError);
    await expect(redis.stores.watermarks.raise({ kind: 'global' }, 2)).rejects.toThrow(StoreUnavailableError);
    await resumed();
    await redis.stores.watermarks.raise({ kind: 'global' }, 2);
    expect(await redis.stores.watermarks.read('any', undefined)).toBe(2);
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
