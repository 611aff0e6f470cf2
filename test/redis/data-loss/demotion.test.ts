// A server that has become a replica knows nothing that can be relied on: it may be behind, or empty, until it is in step.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { GrantStore } from '../../../src/oauth/ports/grant-store.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { succeeds, until } from '../../until.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

describeRedis('a primary that was made a replica of another server', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectTo(server);
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  it('is asked nothing: what it still holds, or does not hold, is no answer', async () => {
    const stores = redisStores({ connection, keys: new RedisKeys('grantry:') });
    const { grants, watermarks, revokedTokens } = stores;
    const grant = await redeemed(grants);
    // No primary is there, so that it keeps what it has; a replica in Redis' own eyes it is all the same.
    await server.command('REPLICAOF', '127.0.0.1', 1);
    const asked = [
      () => grants.read(grant.grantId),
      () => grants.read('000.unknown'),
      () => grants.subjectOf('000.unknown'),
      () => grants.revoke('000.unknown'),
      () => grants.redeem(redeemRequest({ ...grant, grantId: '000.unknown' })),
      () => grants.rotate(rotateRequest({ ...grant, grantId: '000.unknown' }, 0)),
      () => watermarks.read('uid', 'usr_alice'),
      () => revokedTokens.has('jti'),
    ];
    for (const ask of asked) await expect(ask()).rejects.toBeInstanceOf(StoreUnavailableError);
    await server.command('REPLICAOF', 'NO', 'ONE');
    await until('a primary answers', () => succeeds(grants.read(grant.grantId)));
    expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
  });

  it.each<[string, string, (grants: GrantStore) => Promise<unknown>]>([
    ['a script', 'yes', (grants) => grants.read('000.unknown')],
    ['a plain read, where it answers none from old data', 'no', (grants) => grants.subjectOf('000.unknown')],
  ])('is left once it has refused %s', async (_what, servesOldData, ask) => {
    await server.command('CONFIG', 'SET', 'replica-serve-stale-data', servesOldData);
    await server.command('REPLICAOF', 'NO', 'ONE');
    await connection.ready(15_000);
    let reconnects = 0;
    connection.onReconnect(() => {
      reconnects += 1;
    });
    await server.command('REPLICAOF', '127.0.0.1', 1);
    const { grants } = redisStores({ connection, keys: new RedisKeys('grantry:') });
    await expect(ask(grants)).rejects.toBeInstanceOf(StoreUnavailableError);
    await until('it is connected to again', () => reconnects > 0);
  });
});
