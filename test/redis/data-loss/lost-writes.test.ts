// A server that comes back as it was a moment ago, like a replica that takes over and is behind: what a replica of grantry did
// meanwhile and remembers is done again. What was revoked without a misuse is in lost-revocations.test.ts.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import type { RedeemAnswer, RotateAnswer } from '../../../src/oauth/ports/grant-store.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { AlertOutbox, placeOfAlert } from '../../../src/redis/grants/alert-outbox.ts';
import {
  CODE_LIFETIME,
  DAY,
  issued,
  RETENTION,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
} from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { type Receiver, startReceiver } from '../../webhook/receiver.ts';
import { DeliveringReplica } from '../processes/delivering-replica.ts';
import { connectTo } from '../setup/connect.ts';
import { forgetfulRedis, losing } from '../setup/forgetful-redis.ts';
import { describeRedis } from '../setup/servers.ts';
import { alertsAbout } from '../setup/waiting-alerts.ts';

/** Of replicas that sweep when a test calls for it, and take what is there. */
const PACE = { sweep: 3_600_000, written: 10, leftBehind: 0, lease: 2000, first: 20, longest: 40, triedFor: DAY };

describeRedis('what a fail-over has lost', () => {
  const redis = forgetfulRedis();
  const { keys } = redis;

  const waiting = (grantId: string) => alertsAbout({ grantId }, redis);

  interface Misuse {
    readonly grantId: string;
    readonly misuse: () => Promise<RotateAnswer | RedeemAnswer>;
  }

  const MISUSES = {
    async 'a refresh token used twice'(): Promise<Misuse> {
      const { grantId, ...grant } = await rotatedTo(redis.stores.grants, 2);
      return { grantId, misuse: () => redis.stores.grants.rotate(rotateRequest({ grantId, ...grant }, 0)) };
    },
    async 'a code used twice'(): Promise<Misuse> {
      const grant = await redeemed(redis.stores.grants);
      return { grantId: grant.grantId, misuse: () => redis.stores.grants.redeem(redeemRequest(grant)) };
    },
  };

  it.each<[string, () => Promise<Misuse>]>(Object.entries(MISUSES))(
    'is revoked again, and its alert waits again, once: %s',
    async (_name, ready) => {
      const { grantId, misuse } = await ready();
      const answer = await losing(redis, misuse);
      const alert = 'alert' in answer ? answer.alert : undefined;
      expect(alert).toBeDefined();
      expect(await waiting(grantId)).toEqual([]);
      for (let again = 0; again < 2; again++) {
        await redis.connection.replayRevocations('all');
        expect(await redis.stores.grants.read(grantId)).toMatchObject({ revoked: true });
        expect(await waiting(grantId)).toEqual([alert]);
      }
    },
  );

  describe('an alert that a fail-over raises again', () => {
    const ended: (() => Promise<void>)[] = [];
    let receiver: Receiver;
    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(async () => {
      for (const end of ended.splice(0).reverse()) await end();
      receiver.stop();
    });

    /** A replica that sweeps when the test calls for it, on a connection of its own unless it is the one that raises. */
    async function aReplica(over?: ManagedConnection) {
      const own = over ?? (await connectTo(redis.server));
      if (over === undefined) ended.push(() => own.close());
      const onReconnect = (listener: () => void) => void own.onReconnect(listener);
      const replica = new DeliveringReplica({
        connection: own,
        keys,
        onReconnect,
        webhookUrl: receiver.url,
        pace: PACE,
      });
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
      await redis.connection.replayRevocations('all');
      expect(await waiting(alert.grantId)).toEqual([alert]);
      const { replica } = await aReplica();
      await replica.delivery.sweep();
      await delivered(alert);
      return replica;
    }

    it('is one line of all audit streams, though another replica delivers it', async () => {
      const { replica } = await aReplica(redis.connection);
      const reuse = await MISUSES['a refresh token used twice']();
      const alert = await losing(redis, async () => {
        const own = await raised(reuse);
        replica.raise(own);
        await delivered(own);
        return own;
      });
      expect(told(alert, replica, await swept(alert))).toBe(1);
    });

    it('is audit-logged by another replica where the one that raised it has not', async () => {
      const reuse = await MISUSES['a refresh token used twice']();
      const alert = await losing(redis, () => raised(reuse));
      expect(told(alert, await swept(alert))).toBe(1);
    });

    it('is one line, too, where the replica that logged it had found it in the outbox', async () => {
      const { replica, connection: own } = await aReplica();
      const alert = await raised(await MISUSES['a refresh token used twice']());
      await losing(redis, async () => {
        await replica.delivery.sweep();
        await delivered(alert);
      });
      await own.ready(15_000);
      await own.replayRevocations('all');
      expect(told(alert, replica, await swept(alert))).toBe(1);
    });
  });

  it('is not reported again where nothing was lost and the alert is delivered', async () => {
    const { grantId, misuse } = await MISUSES['a refresh token used twice']();
    await misuse();
    const [alert] = await waiting(grantId);
    await new AlertOutbox(redis).raised.acknowledge(placeOfAlert(alert?.id ?? ''));
    await redis.connection.replayRevocations('all');
    expect(await waiting(grantId)).toEqual([]);
  });

  it('is reported again, and the family lives, where a family was only healed', async () => {
    const grant = await redeemed(redis.stores.grants);
    const answer = await losing(redis, () => redis.stores.grants.rotate(rotateRequest(grant, 5)));
    expect(answer).toMatchObject({ outcome: 'healed' });
    await redis.connection.replayRevocations('all');
    expect(await waiting(grant.grantId)).toMatchObject([{ type: 'state_lost' }]);
    expect(await redis.stores.grants.read(grant.grantId)).toMatchObject({ revoked: false });
    expect(await redis.stores.grants.rotate(rotateRequest(grant, 6))).toMatchObject({
      outcome: 'healed',
      alert: undefined,
    });
  });

  describe('a redemption that a fail-over has lost', () => {
    async function aCode() {
      const grant = await issued(redis.stores.grants);
      const redeem = () => redis.stores.grants.redeem(redeemRequest(grant));
      // Less than the record is needed for.
      const lifetimes = { idleLifetime: DAY, absoluteLifetime: DAY };
      const refresh = (generation: number) => redis.stores.grants.rotate(rotateRequest(grant, generation, lifetimes));
      return { ...grant, redeem, refresh };
    }

    it('is reported and made up for by a token that it gave, and the code stays redeemed', async () => {
      const { grantId, redeem, refresh } = await aCode();
      await losing(redis, redeem);
      expect(await refresh(0)).toMatchObject({ outcome: 'healed', generation: 1 });
      expect(await waiting(grantId)).toMatchObject([{ type: 'state_lost', presentedGeneration: 0 }]);
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2, alert: undefined });
      const kept = Number(await redis.server.command('PTTL', keys.grant(grantId)));
      expect(kept).toBeGreaterThan(RETENTION - CODE_LIFETIME);
      expect(await redeem()).toMatchObject({ outcome: 'replayed', alert: { grantId } });
      expect(await refresh(2)).toEqual({ outcome: 'gone' });
    });

    it('is made up for by a later token, too', async () => {
      const { redeem, refresh } = await aCode();
      await losing(redis, async () => {
        await redeem();
        await refresh(0);
      });
      expect(await refresh(1)).toMatchObject({ outcome: 'healed', generation: 2 });
      expect(await refresh(1)).toMatchObject({ outcome: 'benign_retry', generation: 2 });
    });

    it('is not where the code came again first: that ends what it gave', async () => {
      const { redeem, refresh } = await aCode();
      await losing(redis, redeem);
      expect(await redeem()).toEqual({ outcome: 'gone' });
      expect(await refresh(0)).toEqual({ outcome: 'gone' });
    });

    it('is not once the family was revoked', async () => {
      const { grantId, redeem, refresh } = await aCode();
      await losing(redis, async () => {
        await redeem();
        await redis.stores.grants.revoke(grantId);
      });
      await redis.connection.replayRevocations('all');
      expect(await refresh(0)).toEqual({ outcome: 'gone' });
    });
  });

  it('leaves nothing behind of a grant that is not there at all', async () => {
    const { grantId, misuse } = await MISUSES['a refresh token used twice']();
    await misuse();
    await redis.server.command('FLUSHALL');
    await redis.connection.replayRevocations('all');
    expect(await redis.server.command('DBSIZE')).toBe(0);
    expect(await redis.stores.grants.read(grantId)).toBeUndefined();
  });
});
