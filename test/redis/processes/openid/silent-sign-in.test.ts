// `prompt=none` without a code, with sessions in Redis: what Redis holds before and after it is the same.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { TestClock } from '../../../grantry.ts';
import { browserOf, key, SILENT_CASES } from '../../../http/sign-in/openid/silent-cases.ts';
import { OPENID, openidPath, signedIn } from '../../../http/sign-in/openid-world.ts';
import { answerOf } from '../../../http/sign-in/sign-in-browser.ts';
import { aWorld, type World } from '../../../http/sign-in/sign-in-world.ts';
import { dump } from '../../setup/dump.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const keys = new RedisKeys('grantry:');

describeRedis('a silent request', () => {
  const clock = new TestClock();
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectFrozen(server, { now: () => clock.now() });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  async function aRedisWorld(clients: readonly (typeof OPENID)[]): Promise<World> {
    await server.command('FLUSHALL');
    const world = await aWorld({ clients, keys: [key], clock, stores: redisStores({ connection, keys }) });
    await world.usersRecorded();
    return world;
  }

  /** All that Redis holds, but until when sessions live that stay idle: each request of their browser moves that. */
  const held = async () => (await dump(server)).replaceAll(/"u","\d+"/g, '"u","…"');

  it.each(SILENT_CASES)(
    'given %s → the error at the client, nothing stored, no cookie',
    async (_what, given, error) => {
      const world = await aRedisWorld(given.clients);
      const browser = await browserOf(world, given);
      await given.before?.(world);
      const path = openidPath(world, { prompt: 'none', ...(await given.changes?.(world)) });
      const before = await held();
      const answer = await browser.get(path);
      expect([answer.status, answerOf(answer).error, answer.headers.getSetCookie()]).toEqual([302, error, []]);
      expect(await held()).toBe(before);
    },
  );

  it('given a person who need not be asked → a code, which is stored', async () => {
    const world = await aRedisWorld([OPENID]);
    const browser = await signedIn(world);
    const before = await held();
    expect(answerOf(await browser.get(openidPath(world, { prompt: 'none' })))).toHaveProperty('code');
    expect(await held()).not.toBe(before);
  });
});
