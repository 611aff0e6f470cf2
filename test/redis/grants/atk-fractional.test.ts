// OpenID Connect Core §2: auth_time is a JSON number of seconds; nothing says that it is whole.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { RecordMacs } from '../../../src/oauth/tokens/record-macs.ts';
import { authenticStores } from '../../../src/processes/token-server/authentic-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { issued, redeemRequest } from '../../contracts/sample-grants.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

describeRedis('a sign-in at the provider', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectTo({ url: server.url });
  });
  afterAll(async () => {
    await connection.close();
    server.stop();
  });
  it.each([1_764_148_000.123456, 1_764_148_000.5, 1e300, 1e306])('auth_time=%d → the code can be redeemed', async (seconds) => {
    const forged: string[] = [];
    const macs = new RecordMacs({ issuer: 'https://i.example', peppers: [Buffer.alloc(32, 1)] });
    const stores = authenticStores(redisStores({ connection, keys: new RedisKeys('grantry:') }), {
      macs,
      onForged: (kind) => forged.push(kind),
    });
    const grant = await issued(stores.grants, { upstreamAuthTime: seconds * 1000 });
    const answer = await stores.grants.redeem(redeemRequest(grant)).catch((error) => ({ outcome: String(error) }));
    expect([answer.outcome, forged]).toEqual(['redeemed', []]);
  });
});
