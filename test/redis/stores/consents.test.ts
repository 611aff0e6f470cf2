// Consents in Redis beside their contract: how long the server itself keeps them.

import { expect, it } from 'vitest';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { DAY, MINUTE } from '../../contracts/sample-grants.ts';
import { storesSuite } from '../setup/redis-suite.ts';
import { describeRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');
const YEAR = 365 * DAY;
const API = 'https://api.example';

describeRedis('the consents of a person', () => {
  const redis = storesSuite();

  const kept = async () => Number(await redis.server.command('PTTL', keys.consentsOfUser('alice')));

  it('are kept by the server as long as the last of them holds, and not for ever', async () => {
    await redis.stores.consents.give('alice', 'shop', { scope: ['read'], audiences: [API] }, YEAR);
    const least = YEAR - MINUTE;
    expect(await kept()).toBeGreaterThan(least);
    await redis.stores.consents.give('alice', 'mail', { scope: ['send'], audiences: [API] }, DAY);
    expect(await kept()).toBeGreaterThan(least);
    await redis.stores.consents.withdraw('alice', 'shop');
    await redis.stores.consents.give('alice', 'mail', { scope: ['send'], audiences: [API] }, DAY);
    const left = await kept();
    expect(left).toBeGreaterThan(DAY - MINUTE);
    expect(left).toBeLessThan(YEAR);
  });
});
