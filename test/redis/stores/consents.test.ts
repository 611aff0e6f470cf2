// Consents in Redis beside their contract: how long the server itself keeps them.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConsentStore } from '../../../src/oauth/ports/login-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { DAY, MINUTE } from '../../contracts/sample-grants.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');
const YEAR = 365 * DAY;
const API = 'https://api.example';

describeRedis('the consents of a person', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let consents: ConsentStore;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server);
    ({ consents } = redisStores({ connection, keys }));
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  const kept = async () => Number(await server.command('PTTL', keys.consentsOfUser('alice')));

  it('are kept by the server as long as the last of them holds, and not for ever', async () => {
    await consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
    const least = YEAR - MINUTE;
    expect(await kept()).toBeGreaterThan(least);
    await consents.give('alice', 'mail', new Map([[API, ['send']]]), DAY);
    expect(await kept()).toBeGreaterThan(least);
    await consents.withdraw('alice', 'shop');
    await consents.give('alice', 'mail', new Map([[API, ['send']]]), DAY);
    const left = await kept();
    expect(left).toBeGreaterThan(DAY - MINUTE);
    expect(left).toBeLessThan(YEAR);
  });
});
