// A server that has become a replica knows nothing that can be relied on: it may be behind, or empty, until it is in step.

import { afterEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { GrantStore } from '../../../src/oauth/ports/grant-store.ts';
import { redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { succeeds, until } from '../../until.ts';
import { storesSuite } from '../setup/redis-suite.ts';
import { describeRedis } from '../setup/servers.ts';

describeRedis('a primary that was made a replica of another server', () => {
  const redis = storesSuite();
  afterEach(() => redis.server.command('REPLICAOF', 'NO', 'ONE'));

  it('is asked nothing: what it still holds, or does not hold, is no answer', async () => {
    const { grants, watermarks, revokedTokens } = redis.stores;
    const grant = await redeemed(grants);
    // No primary is there, so that it keeps what it has; a replica in Redis' own eyes it is all the same.
    await redis.server.command('REPLICAOF', '127.0.0.1', 1);
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
    await redis.server.command('REPLICAOF', 'NO', 'ONE');
    await until('a primary answers', () => succeeds(grants.read(grant.grantId)));
    expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
  });

  it.each<[string, string, (grants: GrantStore) => Promise<unknown>]>([
    ['a script', 'yes', (grants) => grants.read('000.unknown')],
    ['a plain read, where it answers none from old data', 'no', (grants) => grants.subjectOf('000.unknown')],
  ])('is left once it has refused %s', async (_what, servesOldData, ask) => {
    await redis.server.command('CONFIG', 'SET', 'replica-serve-stale-data', servesOldData);
    let reconnects = 0;
    redis.connection.onReconnect(() => {
      reconnects += 1;
    });
    await redis.server.command('REPLICAOF', '127.0.0.1', 1);
    await expect(ask(redis.stores.grants)).rejects.toBeInstanceOf(StoreUnavailableError);
    await until('it is connected to again', () => reconnects > 0);
  });
});
