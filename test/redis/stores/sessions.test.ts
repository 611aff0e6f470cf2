// Sessions in Redis beside their contract: a person's index lies elsewhere, and what is done to both is not one action.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Session, SessionStore } from '../../../src/oauth/ports/login-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { MINUTE, uniqueId } from '../../contracts/sample-grants.ts';
import { connectTo, methodsOf } from '../setup/connect.ts';
import { losing } from '../setup/forgetful-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');
const HOUR = 60 * MINUTE;

describeRedis('the sessions of a person', () => {
  let server: RedisServer;
  let real: ManagedConnection;
  let sessions: SessionStore;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    real = await connectTo(server);
    ({ sessions } = redisStores({ connection: real, keys }));
  });
  afterEach(() => real.close());
  afterAll(() => server.stop());

  type Run = ManagedConnection['run'];

  /** The sessions as another replica of grantry has them, whose scripts are run so. */
  function sessionsRunning(run: Run): SessionStore {
    return redisStores({ connection: { ...methodsOf(real), run }, keys }).sessions;
  }

  function session(): Session {
    const times = { authTime: Date.now(), idleLifetime: HOUR, absoluteLifetime: 12 * HOUR };
    return { sessionId: uniqueId(), subject: 'usr_alice', username: 'alice', displayName: 'Alice', ...times };
  }
  async function signedIn(): Promise<Session> {
    const made = session();
    await sessions.create(made);
    return made;
  }
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

  it('that are all ended while one begins, leave one that is listed and ends like any other', async () => {
    const old = await signedIn();
    const elsewhere = sessionsRunning(async (action, deadline) => {
      if (action.script.name === 'sessionCreate') await sessions.endAll('usr_alice');
      return await real.run(action, deadline);
    });
    const begun = session();
    await elsewhere.create(begun);
    await real.replayRevocations('all');
    expect(await sessions.use(old.sessionId)).toBeUndefined();
    expect(await sessions.list('usr_alice')).toEqual([begun]);
    await sessions.endAll('usr_alice');
    expect(await sessions.use(begun.sessionId)).toBeUndefined();
    expect(await indexed()).toBe(0);
  });

  it('of which one cannot be ended, end all the same, and that one when it is tried again', async () => {
    const stays = await signedIn();
    const others: Session[] = [];
    while (others.length < 150) others.push(await signedIn());
    let isAway = true;
    const partly = sessionsRunning(async (action, deadline) => {
      if (isAway && action.keys[0] === keys.session(stays.sessionId))
        throw new StoreUnavailableError(action.script.name);
      return await real.run(action, deadline);
    });
    await expect(partly.endAll('usr_alice')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(await sessions.list('usr_alice')).toEqual([stays]);
    expect(await indexed()).toBe(1);
    for (const { sessionId } of others.slice(-10)) expect(await sessions.use(sessionId)).toBeUndefined();
    isAway = false;
    await partly.endAll('usr_alice');
    expect(await sessions.list('usr_alice')).toEqual([]);
  });

  it('end one by one for good, also where the server has lost them and gets them back', async () => {
    const { sessionId } = await signedIn();
    const key = keys.session(sessionId);
    await server.command('RENAME', key, `${key}-kept`);
    await sessions.end(sessionId);
    await server.command('RENAME', `${key}-kept`, key);
    expect(await sessions.use(sessionId)).toBeDefined();
    await real.replayRevocations('all');
    expect(await sessions.use(sessionId)).toBeUndefined();
  });

  it('end, also where the answer is lost, for good: the end is replayed on a server that has lost it', async () => {
    const { sessionId } = await signedIn();
    const unanswered = sessionsRunning(async (action, deadline) => {
      await real.run(action, deadline);
      throw new StoreUnavailableError(action.script.name);
    });
    await losing({ server, connection: real }, async () => {
      await expect(unanswered.end(sessionId)).rejects.toBeInstanceOf(StoreUnavailableError);
    });
    expect(await sessions.use(sessionId)).toBeDefined();
    await real.replayRevocations('all');
    expect(await sessions.use(sessionId)).toBeUndefined();
  });
});
