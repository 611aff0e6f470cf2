import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Stores } from '../../src/oauth/ports.ts';
import type { RedisConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { Outbox } from '../../src/redis/outbox.ts';
import { redisStores } from '../../src/redis/stores.ts';
import { redeemed, redeemRequest, rotatedTo, rotateRequest, SHARD } from '../contracts/sample-grants.ts';
import { connectTo } from './connect.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

describeRedis('the outbox of a shard', () => {
  let server: RedisServer;
  let connection: RedisConnection;
  let stores: Stores;
  let outbox: Outbox;
  let offset = 0;
  const keys = new RedisKeys('grantry:');
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectTo(server, { clockOffset: () => offset });
    stores = redisStores({ connection, keys });
    outbox = new Outbox({ connection, keys });
  });
  beforeEach(() => server.command('FLUSHALL'));
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  const alertsIn = async (shard = SHARD) => (await outbox.list(shard)).entries.map(({ alert }) => alert);

  it('holds the very alert that the revoking request was told', async () => {
    const grant = await rotatedTo(stores.grants, 2);
    const answer = await stores.grants.rotate(rotateRequest(grant, 0, { address: '198.51.100.9' }));
    expect(answer).toMatchObject({ outcome: 'reused', alert: { id: `${grant.grantId}.refresh_token.reuse_detected` } });
    expect(await alertsIn()).toEqual([answer.outcome === 'reused' && answer.alert]);
    expect(await alertsIn('008')).toEqual([]);
  });

  it('holds one alert for each grant and type, however many replicas and tries', async () => {
    const [reused, replayed] = [await rotatedTo(stores.grants, 3), await redeemed(stores.grants)];
    const reuse = () => stores.grants.rotate(rotateRequest(reused, 0));
    const replay = () => stores.grants.redeem(redeemRequest(replayed));
    await Promise.all(Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? reuse() : replay())));
    await stores.grants.rotate(rotateRequest(replayed, 9));
    const types = (await alertsIn()).map(({ grantId, type }) => [grantId, type]).sort();
    const expected = [
      [reused.grantId, 'refresh_token.reuse_detected'],
      [replayed.grantId, 'authorization_code.replayed'],
    ];
    expect(types).toEqual(expected.sort());
  });

  it('tells how long an alert has waited', async () => {
    await stores.grants.redeem(redeemRequest(await redeemed(stores.grants)));
    offset += 7000;
    const [entry] = (await outbox.list(SHARD)).entries;
    expect(entry?.age).toBeGreaterThanOrEqual(7000);
    expect(entry?.age).toBeLessThan(12_000);
  });

  it('forgets a delivered alert for good: the grant never raises it again', async () => {
    const grant = await redeemed(stores.grants);
    await stores.grants.rotate(rotateRequest(grant, 5));
    const [alert] = await alertsIn();
    expect(alert).toMatchObject({ type: 'state_lost', presentedGeneration: 5, currentGeneration: 0 });
    expect(await outbox.discard(SHARD, `${alert?.id}`)).toBe(true);
    expect(await outbox.discard(SHARD, `${alert?.id}`)).toBe(false);
    expect(await alertsIn()).toEqual([]);
    expect(await stores.grants.rotate(rotateRequest(grant, 9))).toMatchObject({ outcome: 'healed', alert: undefined });
    expect(await alertsIn()).toEqual([]);
  });

  it('lists no more than asked for', async () => {
    for (let count = 0; count < 5; count++) {
      await stores.grants.redeem(redeemRequest(await redeemed(stores.grants)));
    }
    expect((await outbox.list(SHARD, 3)).entries).toHaveLength(3);
    expect((await outbox.list(SHARD, 9)).entries).toHaveLength(5);
  });

  it('tells apart what nobody can deliver', async () => {
    await stores.grants.redeem(redeemRequest(await redeemed(stores.grants)));
    const [alert] = await alertsIn();
    const bad: Readonly<Record<string, string>> = {
      [`${SHARD}.not-json`]: '{',
      [`${SHARD}.null`]: 'null',
      [`${SHARD}.another-name`]: JSON.stringify(alert),
      [`${SHARD}.no-time`]: JSON.stringify({ ...alert, id: `${SHARD}.no-time`, time: 'noon' }),
      [`${SHARD}.no-subject`]: JSON.stringify({ ...alert, id: `${SHARD}.no-subject`, subject: 7 }),
      '008.of-another-shard': JSON.stringify({ ...alert, id: '008.of-another-shard' }),
    };
    for (const [name, json] of Object.entries(bad)) await server.command('HSET', keys.outbox(SHARD), name, json);
    const { entries, unreadable } = await outbox.list(SHARD);
    expect(entries.map((entry) => entry.alert)).toEqual([alert]);
    expect([...unreadable].sort()).toEqual(Object.keys(bad).sort());
  });
});
