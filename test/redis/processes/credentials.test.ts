// What each credential of examples/credentials/ gets while Redis is unavailable, as docs/guides/credentials.md says.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExampleClone, shown } from '../../clients/example-clone.ts';
import { until } from '../../until.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

describeRedis('the clients of examples/credentials/, while Redis is unavailable', () => {
  let redis: RedisServer;
  let clone: ExampleClone;
  let assertionRequest: string;
  beforeAll(async () => {
    redis = await startRedis();
    clone = await ExampleClone.serve('--redis', redis.url);
    assertionRequest = await clone.withOwnKey('private-key-jwt');
    await redis.kill();
    const readiness = async () => (await fetch(`${clone.admin}/readyz`)).text();
    await until('readiness has noticed', async () => /redis: away/.test(await readiness()));
  });
  afterAll(async () => {
    await clone.remove();
    await redis.stop();
  });

  it.each(['client-secret-basic', 'client-secret-post', 'kubernetes-service-account', 'tls-client-auth', 'dpop'])(
    '%s → a token',
    async (name) => {
      expect(await clone.answer(shown(name))).toHaveProperty('access_token');
    },
  );

  it('self-signed-tls-client-auth → a token', async () => {
    expect(await clone.answer(await clone.withOwnKey('self-signed-tls-client-auth'))).toHaveProperty('access_token');
  });

  it('private-key-jwt → 503', async () => {
    const before = clone.output.length;
    await expect(clone.answer(assertionRequest)).rejects.toThrow('unexpected HTTP response status code');
    const line = /"route":"token".*"status":503.*"reason":"store_unavailable"/;
    await until('the answer 503 is logged', () => line.test(clone.output.slice(before)));
  });
});
