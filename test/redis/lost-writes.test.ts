// A server that comes back as it was a moment ago, like a replica that takes over and is behind: what a replica of grantry did
// meanwhile and remembers is done again.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../src/oauth/audit.ts';
import type { RedeemAnswer, RotateAnswer } from '../../src/oauth/grant-store.ts';
import type { Session } from '../../src/oauth/login-stores.ts';
import type { Stores } from '../../src/oauth/ports.ts';
import { shardOf } from '../../src/oauth/shard.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { Outbox } from '../../src/redis/outbox.ts';
import { redisStores } from '../../src/redis/stores.ts';
import {
  CODE_LIFETIME,
  DAY,
  issued,
  RETENTION,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
  uniqueId,
} from '../contracts/sample-grants.ts';
import { until } from '../until.ts';
import { connectTo } from './connect.ts';
import { DeliveringReplica } from './delivering-replica.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

const keys = new RedisKeys('grantry:');

/** Of replicas that sweep when a test tells them to, and take what is there. */
const PACE = { sweep: 3_600_000, written: 10, leftBehind: 0, lease: 2000, backOff: 20, longestBackOff: 40, tries: 4 };

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

  describe('an alert that a fail-over raises again', () => {
    const ended: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const end of ended.splice(0).reverse()) await end();
    });

    /** A replica that sweeps when it is told to, on a connection of its own unless it is the one that raises. */
    async function aReplica(over?: ManagedConnection) {
      const own = over ?? (await connectTo(server));
      if (over === undefined) ended.push(() => own.close());
      const onReconnect = (listener: () => void) => void own.onReconnect(listener);
      const replica = new DeliveringReplica({ connection: own, keys, onReconnect, webhookUrl: undefined, pace: PACE });
      ended.push(() => replica.delivery.stop());
      return { replica: replica.start(), connection: own };
    }

    async function raised({ misuse }: Misuse): Promise<Alert> {
      const answer = await misuse();
      if (!('alert' in answer) || answer.alert === undefined) throw new Error('nothing was raised');
      return answer.alert;
    }

    const delivered = ({ grantId }: Alert) =>
      until('it is delivered', async () => (await waiting(grantId)).length === 0);

    /** How often it is in these audit streams. */
    const told = ({ id }: Alert, ...replicas: readonly DeliveringReplica[]) =>
      replicas.flatMap(({ lines }) => lines).filter(({ alert }) => (alert as Alert | undefined)?.id === id).length;

    /** Raises it again, and has another replica sweep. */
    async function swept(alert: Alert): Promise<DeliveringReplica> {
      await connection.reassert('all');
      expect(await waiting(alert.grantId)).toEqual([alert]);
      const { replica } = await aReplica();
      await replica.delivery.sweep();
      await delivered(alert);
      return replica;
    }

    it('is one line of all audit streams, though another replica delivers it', async () => {
      const { replica } = await aReplica(connection);
      const reuse = await MISUSES['a refresh token used twice']();
      const alert = await losing(async () => {
        const own = await raised(reuse);
        replica.raise(own);
        await delivered(own);
        return own;
      });
      expect(told(alert, replica, await swept(alert))).toBe(1);
    });

    it('is told by another replica where the one that raised it has not', async () => {
      const reuse = await MISUSES['a refresh token used twice']();
      const alert = await losing(() => raised(reuse));
      expect(told(alert, await swept(alert))).toBe(1);
    });

    it('is one line, too, where the replica that told it had found it in the outbox', async () => {
      const { replica, connection: own } = await aReplica();
      const alert = await raised(await MISUSES['a refresh token used twice']());
      await losing(async () => {
        await replica.delivery.sweep();
        await delivered(alert);
      });
      await own.ready(5000);
      await own.reassert('all');
      expect(told(alert, replica, await swept(alert))).toBe(1);
    });
  });

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

  describe('a redemption that a fail-over has lost', () => {
    async function aCode() {
      const grant = await issued(stores.grants);
      const redeem = () => stores.grants.redeem(redeemRequest(grant));
      // Less than the record is needed for.
      const lifetimes = { idleLifetime: DAY, absoluteLifetime: DAY };
      const refresh = (generation: number) => stores.grants.rotate(rotateRequest(grant, generation, lifetimes));
      return { ...grant, redeem, refresh };
    }

    it('is told and made up for by a token that it gave, and the code stays redeemed', async () => {
      const { grantId, redeem, refresh } = await aCode();
      await losing(redeem);
      expect(await refresh(0)).toMatchObject({ outcome: 'healed', generation: 1 });
      expect(await waiting(grantId)).toMatchObject([{ type: 'state_lost', presentedGeneration: 0 }]);
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2, alert: undefined });
      const kept = Number(await server.command('PTTL', keys.grant(grantId)));
      expect(kept).toBeGreaterThan(RETENTION - CODE_LIFETIME);
      expect(await redeem()).toMatchObject({ outcome: 'replayed', alert: { grantId } });
      expect(await refresh(2)).toEqual({ outcome: 'gone' });
    });

    it('is made up for by a later token, too', async () => {
      const { redeem, refresh } = await aCode();
      await losing(async () => {
        await redeem();
        await refresh(0);
      });
      expect(await refresh(1)).toMatchObject({ outcome: 'healed', generation: 2 });
      expect(await refresh(1)).toMatchObject({ outcome: 'benign_retry', generation: 2 });
    });

    it('is not where the code came again first: that ends what it gave', async () => {
      const { redeem, refresh } = await aCode();
      await losing(redeem);
      expect(await redeem()).toEqual({ outcome: 'gone' });
      expect(await refresh(0)).toEqual({ outcome: 'gone' });
    });

    it('is not once the family was revoked', async () => {
      const { grantId, redeem, refresh } = await aCode();
      await losing(async () => {
        await redeem();
        await stores.grants.revoke(grantId);
      });
      await connection.reassert('all');
      expect(await refresh(0)).toEqual({ outcome: 'gone' });
    });
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
