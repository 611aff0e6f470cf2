// A replica that serves asks for nothing in a shard that it has not looked at yet, whichever way a store asks.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../src/oauth/error.ts';
import type { Grant } from '../../src/oauth/grant-store.ts';
import type { Stores } from '../../src/oauth/ports.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { GuardedConnection } from '../../src/redis/guarded-connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { redisStores } from '../../src/redis/stores.ts';
import { digest, redeemed, redeemRequest, rotateRequest, SHARD, uniqueId } from '../contracts/sample-grants.ts';
import { connectTo, methodsOf } from './connect.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

const keys = new RedisKeys('grantry:');

const JTI = 'a token id';
const SHARD_OF_JTI = keys.shardOfKey(keys.revokedToken(JTI));

/** Something that is asked of a store, and the shard that it is about. */
interface Asked {
  readonly shard: string;
  ask(stores: Stores): Promise<unknown>;
}

const ASKED: Readonly<Record<string, (grant: Grant) => Asked>> = {
  'redeem a code': (grant) => ({ shard: SHARD, ask: ({ grants }) => grants.redeem(redeemRequest(grant)) }),
  'rotate a refresh token': (grant) => ({ shard: SHARD, ask: ({ grants }) => grants.rotate(rotateRequest(grant, 0)) }),
  'revoke a grant': ({ grantId }) => ({ shard: SHARD, ask: ({ grants }) => grants.revoke(grantId) }),
  'read a grant': ({ grantId }) => ({ shard: SHARD, ask: ({ grants }) => grants.read(grantId) }),
  'revoke an opaque access token': () => ({
    shard: SHARD,
    ask: ({ accessTokens }) => accessTokens.revoke(`${SHARD}.${digest(uniqueId())}`),
  }),
  'mark a JWT': () => ({
    shard: SHARD_OF_JTI,
    ask: ({ revokedTokens }) => revokedTokens.mark(JTI, Math.ceil(Date.now() / 1000) + 600),
  }),
  'look for the mark on a JWT': () => ({
    shard: SHARD_OF_JTI,
    ask: ({ revokedTokens }) => revokedTokens.has(JTI),
  }),
};

describeRedis('in a shard that was not looked at yet', () => {
  let server: RedisServer;
  let real: ManagedConnection;
  let stores: Stores;
  const [open, sent, remembered] = [new Set<string>(), new Set<string>(), new Set<string>()];
  beforeAll(async () => {
    server = await startRedis();
    real = await connectTo(server);
  });
  afterAll(async () => {
    await real.close();
    await server.stop();
  });
  beforeEach(() => {
    for (const noted of [open, sent, remembered]) noted.clear();
    const noted: ManagedConnection = {
      ...methodsOf(real),
      run: (...action) => sent.add(action[0].name) && real.run(...action),
      runDurably: (...action) => sent.add(action[0].name) && real.runDurably(...action),
      remember: (...action) => remembered.add(action[0].name) && real.remember(...action),
    };
    const connection = new GuardedConnection({ connection: noted, keys, isOpen: (shard) => open.has(shard) });
    stores = redisStores({ connection, keys });
  });

  it.each(Object.entries(ASKED))('nothing is sent, and nothing is to be done later: %s', async (_name, about) => {
    const others = redisStores({ connection: real, keys });
    const { shard, ask } = about(await redeemed(others.grants));
    const refusal = await ask(stores).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toMatchObject({ reason: 'not_joined', retriable: true });
    // What is taken back of a try that may have run goes out by itself, right behind it.
    await real.info();
    expect([...sent, ...remembered]).toEqual([]);
    open.add(shard);
    await ask(stores);
    expect(sent.size).toBeGreaterThan(0);
  });
});
