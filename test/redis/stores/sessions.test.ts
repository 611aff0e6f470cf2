// Sessions in Redis beside their contract: how many are read at a time, and that an end outlives a fail-over.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { SessionStore } from '../../../src/oauth/ports/login-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { signedIn as begin } from '../../contracts/sample-grants.ts';
import { methodsOf } from '../setup/connect.ts';
import { losing } from '../setup/forgetful-redis.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

describeRedis('the sessions of a person', () => {
  let server: RedisServer;
  let real: ManagedConnection;
  let sessions: SessionStore;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    real = await connectPatiently(server);
    ({ sessions } = redisStores({ connection: real, keys }));
  });
  afterEach(() => real.close());
  afterAll(() => server.stop());

  type Run = ManagedConnection['run'];

  /** The sessions as another replica of grantry has them, whose scripts are run so. */
  function sessionsRunning(run: Run): SessionStore {
    return redisStores({ connection: { ...methodsOf(real), run }, keys }).sessions;
  }

  const signedIn = () => begin(sessions);
  const indexed = () => server.command('ZCARD', keys.sessionsOfUser('usr_alice'));

  it('are asked for a hundred at a time at most, so that others are served', async () => {
    for (let made = 0; made < 250; made++) await signedIn();
    let [asked, most] = [0, 0];
    const counted = sessionsRunning(async (...action) => {
      most = Math.max(most, ++asked);
      return await real.run(...action).finally(() => asked--);
    });
    expect(await counted.list('usr_alice')).toHaveLength(250);
    expect(most).toBe(100);
    await counted.endAll('usr_alice');
    expect([most, await indexed()]).toEqual([100, 0]);
  });

  it('end one by one for good, also where the server has lost them and gets them back', async () => {
    const session = await signedIn();
    const { sessionId } = session;
    await losing({ server, connection: real }, () => sessions.end(session));
    expect(await sessions.use(sessionId)).toBeDefined();
    await real.replayRevocations('all');
    expect(await sessions.use(sessionId)).toBeUndefined();
  });

  it('end, also where the answer is lost, for good: the end is replayed on a server that has lost it', async () => {
    const session = await signedIn();
    const { sessionId } = session;
    const unanswered = sessionsRunning(async (action, deadline) => {
      await real.run(action, deadline);
      throw new StoreUnavailableError(action.script.name);
    });
    await losing({ server, connection: real }, async () => {
      await expect(unanswered.end(session)).rejects.toBeInstanceOf(StoreUnavailableError);
    });
    expect(await sessions.use(sessionId)).toBeDefined();
    await real.replayRevocations('all');
    expect(await sessions.use(sessionId)).toBeUndefined();
  });
});
