// A server that comes back as it was a moment ago, like a replica that takes over and is behind: what a replica of grantry did
// meanwhile and remembers is done again.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Alert } from '../../src/oauth/audit.ts';
import type { RedeemAnswer, RotateAnswer } from '../../src/oauth/grant-store.ts';
import type { Session } from '../../src/oauth/login-stores.ts';
import type { Stores } from '../../src/oauth/ports.ts';
import { shardOf } from '../../src/oauth/shard.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { Outbox } from '../../src/redis/outbox.ts';
import { redisStores } from '../../src/redis/stores.ts';
import { redeemed, redeemRequest, rotatedTo, rotateRequest, uniqueId } from '../contracts/sample-grants.ts';
import { connectTo } from './connect.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

const keys = new RedisKeys('grantry:');

describeRedis('what a fail-over has lost', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    connection = await connectTo(server);
    stores = redisStores({ connection, keys });
  });
  afterEach(() => connection.close());
  afterAll(() => server.stop());

  /** Does something, and has the server forget it. */
  async function losing<Value>(work: () => Promise<Value>): Promise<Value> {
    await server.command('SAVE');
    const value = await work();
    await server.kill();
    await server.start();
    await connection.ready(5000);
    return value;
  }

  const waiting = async (grantId: string): Promise<readonly Alert[]> => {
    const { entries } = await new Outbox({ connection, keys }).list(shardOf(grantId));
    return entries.map(({ alert }) => alert).filter((alert) => alert.grantId === grantId);
  };

  interface Misuse {
    readonly grantId: string;
    readonly misuse: () => Promise<RotateAnswer | RedeemAnswer>;
  }

  const MISUSES = {
    async 'a refresh token used twice'(): Promise<Misuse> {
      const { grantId, ...grant } = await rotatedTo(stores.grants, 2);
      return { grantId, misuse: () => stores.grants.rotate(rotateRequest({ grantId, ...grant }, 0)) };
    },
    async 'a code used twice'(): Promise<Misuse> {
      const grant = await redeemed(stores.grants);
      return { grantId: grant.grantId, misuse: () => stores.grants.redeem(redeemRequest(grant)) };
    },
  };

  it.each<[string, () => Promise<Misuse>]>(Object.entries(MISUSES))(
    'is dead again, and its alert waits again, once: %s',
    async (_name, ready) => {
      const { grantId, misuse } = await ready();
      const answer = await losing(misuse);
      const alert = 'alert' in answer ? answer.alert : undefined;
      expect(alert).toBeDefined();
      expect(await waiting(grantId)).toEqual([]);
      for (let again = 0; again < 2; again++) {
        await connection.reassert('all');
        expect(await stores.grants.read(grantId)).toMatchObject({ revoked: true });
        expect(await waiting(grantId)).toEqual([alert]);
      }
    },
  );

  it('is not told again where nothing was lost and the alert is delivered', async () => {
    const { grantId, misuse } = await MISUSES['a refresh token used twice']();
    await misuse();
    const [alert] = await waiting(grantId);
    await new Outbox({ connection, keys }).discard(shardOf(grantId), alert?.id ?? '');
    await connection.reassert('all');
    expect(await waiting(grantId)).toEqual([]);
  });

  it('is told again, and the family lives, where a family was only healed', async () => {
    const grant = await redeemed(stores.grants);
    const answer = await losing(() => stores.grants.rotate(rotateRequest(grant, 5)));
    expect(answer).toMatchObject({ outcome: 'healed' });
    await connection.reassert('all');
    expect(await waiting(grant.grantId)).toMatchObject([{ type: 'state_lost' }]);
    expect(await stores.grants.read(grant.grantId)).toMatchObject({ revoked: false });
    expect(await stores.grants.rotate(rotateRequest(grant, 6))).toMatchObject({ outcome: 'healed', alert: undefined });
  });

  it('leaves nothing behind of a grant that is not there at all', async () => {
    const { grantId, misuse } = await MISUSES['a refresh token used twice']();
    await misuse();
    await server.command('FLUSHALL');
    await connection.reassert('all');
    expect(await server.command('DBSIZE')).toBe(0);
    expect(await stores.grants.read(grantId)).toBeUndefined();
  });

  it('is ended again: one session, and all of a person', async () => {
    const [one, other, third] = [await signedIn('usr_alice'), await signedIn('usr_bob'), await signedIn('usr_bob')];
    const bystander = await signedIn('usr_carol');
    await losing(async () => {
      await stores.sessions.end(one);
      await stores.sessions.endAll('usr_bob');
    });
    expect(await stores.sessions.use(one)).toBeDefined();
    await connection.reassert('all');
    for (const ended of [one, other, third]) expect(await stores.sessions.use(ended)).toBeUndefined();
    expect(await stores.sessions.use(bystander)).toBeDefined();
  });

  it('is withdrawn again, unless it was given since: a consent', async () => {
    const { consents } = stores;
    const give = (clientUid: string) =>
      consents.give('usr_dave', clientUid, { scope: ['read'], audiences: ['https://api.example'] }, 3_600_000);
    await give('uid-withdrawn');
    await give('uid-given-again');
    await losing(async () => {
      await consents.withdraw('usr_dave', 'uid-withdrawn');
      await consents.withdraw('usr_dave', 'uid-given-again');
    });
    expect(await consents.read('usr_dave', 'uid-withdrawn')).toBeDefined();
    await give('uid-given-again');
    await connection.reassert('all');
    expect(await consents.read('usr_dave', 'uid-withdrawn')).toBeUndefined();
    expect(await consents.read('usr_dave', 'uid-given-again')).toBeDefined();
  });

  async function signedIn(subject: string): Promise<string> {
    const times = { authTime: Date.now(), idleLifetime: 3_600_000, absoluteLifetime: 3_600_000 };
    const session: Session = { sessionId: uniqueId(), subject, username: subject, displayName: subject, ...times };
    await stores.sessions.create(session);
    return session.sessionId;
  }
});
