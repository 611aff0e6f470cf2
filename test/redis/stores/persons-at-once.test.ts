// Two sign-ins of one person in one millisecond, between which the provider's word changes: the record counts.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { sealedStores } from '../../../src/oauth/sealed-stores/sealed-stores.ts';
import { RecordMacs } from '../../../src/oauth/tokens/record-macs.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

describeRedis('two sign-ins at once', () => {
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
  it('→ the record of the person counts', async () => {
    let forged = 0;
    const stores = sealedStores(redisStores({ connection, keys: new RedisKeys('grantry:') }), {
      macs: new RecordMacs({ issuer: 'https://i.example', peppers: [Buffer.alloc(32, 1)] }),
      onForged: () => {
        forged += 1;
      },
    });
    const by = { provider: 'corp', issuer: 'https://corp.example', type: 'OIDC' as const };
    const of = (subject: string, groups: readonly string[]) => ({
      subject,
      ...by,
      username: 'ada',
      displayName: undefined,
      email: undefined,
      unverifiedEmail: undefined,
      groups,
    });
    let gone = 0;
    for (let n = 0; n < 50; n += 1) {
      const subject = `usr_${String(n).padStart(22, '0')}`;
      await Promise.all([['a'], ['a', 'b']].map((groups) => stores.persons.remember(of(subject, groups), 60_000)));
      if ((await stores.persons.read(subject)) === undefined) gone += 1;
    }
    expect({ gone, forged }).toEqual({ gone: 0, forged: 0 });
  });
});
