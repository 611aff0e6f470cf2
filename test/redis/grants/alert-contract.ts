// The contract of the outbox and of the delivery leases of its alerts, on every form of Redis: there is no other
// implementation.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import { shardOf, shardOfPerson } from '../../../src/oauth/values/shard.ts';
import type { DeliveryLeases } from '../../../src/redis/grants/delivery-leases.ts';
import {
  DAY,
  MINUTE,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
  SHARD,
} from '../../contracts/sample-grants.ts';
import type { RedisWorld } from '../setup/redis-world.ts';

/** People enough to be in every part of a Cluster. */
const PEOPLE = Array.from({ length: 30 }, (_, index) => `usr_person-${index}`);

/** Runs the contract on one form of Redis. */
export function alertContract(name: string, makeWorld: () => Promise<RedisWorld>): void {
  let world: RedisWorld;
  beforeEach(async () => {
    world = await makeWorld();
  });
  afterEach(() => world.dispose());

  const alertsIn = async (shard = SHARD) => (await world.outbox.list(shard)).entries.map(({ alert }) => alert);

  /** An alert in the outbox: of a code that came again. */
  async function raised(subject = 'usr_alice'): Promise<Alert> {
    const answer = await world.stores.grants.redeem(redeemRequest(await redeemed(world.stores.grants, { subject })));
    const alert = answer.outcome === 'replayed' ? answer.alert : undefined;
    if (alert === undefined) throw new Error('nothing was raised');
    return alert;
  }

  describe(`${name}: the outbox of a shard`, () => {
    it('holds the very alert that the revoking request got', async () => {
      const { grants } = world.stores;
      const grant = await rotatedTo(grants, 2);
      const answer = await grants.rotate(rotateRequest(grant, 0, { address: '198.51.100.9' }));
      const id = `${grant.grantId}.refresh_token.reuse_detected`;
      expect(answer).toMatchObject({ outcome: 'reused', alert: { id } });
      expect(await alertsIn()).toEqual([answer.outcome === 'reused' && answer.alert]);
      expect(await alertsIn('008')).toEqual([]);
    });

    it('holds what was raised in it and nothing else, wherever it is', async () => {
      const alerts = await Promise.all(PEOPLE.map((subject) => raised(subject)));
      const shards = Map.groupBy(alerts, ({ subject }) => shardOfPerson(subject));
      expect(shards.size).toBeGreaterThan(10);
      for (const [shard, own] of shards) {
        const found = (await alertsIn(shard)).map(({ id }) => id);
        expect(found.sort()).toEqual(own.map(({ id }) => id).sort());
      }
    });

    it('holds one alert for each grant and type, however many replicas and tries', async () => {
      const { grants } = world.stores;
      const [reused, replayed] = [await rotatedTo(grants, 3), await redeemed(grants)];
      const reuse = () => grants.rotate(rotateRequest(reused, 0));
      const replay = () => grants.redeem(redeemRequest(replayed));
      await Promise.all(Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? reuse() : replay())));
      await grants.rotate(rotateRequest(replayed, 9));
      const types = (await alertsIn()).map(({ grantId, type }) => [grantId, type]).sort();
      const expected = [
        [reused.grantId, 'refresh_token.reuse_detected'],
        [replayed.grantId, 'authorization_code.replayed'],
      ];
      expect(types).toEqual(expected.sort());
    });

    it('reports how long an alert has waited', async () => {
      await raised();
      world.advance(7000);
      const [entry] = (await world.outbox.list(SHARD)).entries;
      expect(entry?.age).toBeGreaterThanOrEqual(7000);
      expect(entry?.age).toBeLessThan(12_000);
    });

    it('forgets a delivered alert for good: the grant never raises it again', async () => {
      const { grants } = world.stores;
      const grant = await redeemed(grants);
      await grants.rotate(rotateRequest(grant, 5));
      const [alert] = await alertsIn();
      expect(alert).toMatchObject({ type: 'state_lost', presentedGeneration: 5, currentGeneration: 0 });
      expect(await world.outbox.discard(SHARD, `${alert?.id}`)).toBe(true);
      expect(await world.outbox.discard(SHARD, `${alert?.id}`)).toBe(false);
      expect(await alertsIn()).toEqual([]);
      expect(await grants.rotate(rotateRequest(grant, 9))).toMatchObject({ outcome: 'healed', alert: undefined });
      expect(await alertsIn()).toEqual([]);
    });

    it('lists no more than asked for', async () => {
      for (let count = 0; count < 5; count++) await raised();
      expect((await world.outbox.list(SHARD, 3)).entries).toHaveLength(3);
      expect((await world.outbox.list(SHARD, 9)).entries).toHaveLength(5);
    });

    it('lists apart what cannot be delivered', async () => {
      const alert = await raised();
      const bad: Readonly<Record<string, string>> = {
        [`${SHARD}.not-json`]: '{',
        [`${SHARD}.null`]: 'null',
        [`${SHARD}.another-name`]: JSON.stringify(alert),
        [`${SHARD}.no-time`]: JSON.stringify({ ...alert, id: `${SHARD}.no-time`, time: 'noon' }),
        [`${SHARD}.no-subject`]: JSON.stringify({ ...alert, id: `${SHARD}.no-subject`, subject: 7 }),
        '008.of-another-shard': JSON.stringify({ ...alert, id: '008.of-another-shard' }),
      };
      for (const [field, json] of Object.entries(bad)) await world.put(world.keys.outbox(SHARD), field, json);
      const { entries, unreadable } = await world.outbox.list(SHARD);
      expect(entries.map((entry) => entry.alert)).toEqual([alert]);
      expect([...unreadable].sort()).toEqual(Object.keys(bad).sort());
    });
  });

  describe(`${name}: the delivery leases of an alert`, () => {
    const OWN = { lease: MINUTE, isAuditLogged: false } as const;
    let leases: DeliveryLeases;
    beforeEach(() => {
      leases = world.leases();
    });

    const left = (alertId: string) => world.fieldsOf(world.keys.deliveryLeases(shardOf(alertId)));

    it('are one at a time: the next begins when its lease is over', async () => {
      const { id } = await raised();
      const tries = await Promise.all(Array.from({ length: 20 }, () => leases.take(id, OWN)));
      expect(tries.filter((lease) => lease !== undefined)).toEqual([{ tries: 1, isAuditLogged: false }]);
      world.advance(MINUTE - world.tick);
      expect(await leases.take(id, OWN)).toBeUndefined();
      world.advance(world.tick);
      expect(await leases.take(id, OWN)).toEqual({ tries: 2, isAuditLogged: false });
    });

    it('are those of one alert, wherever it is', async () => {
      const ids = (await Promise.all(PEOPLE.map((subject) => raised(subject)))).map(({ id }) => id);
      for (const id of ids) expect(await leases.take(id, OWN)).toEqual({ tries: 1, isAuditLogged: false });
      const waiting = async (id: string) => (await alertsIn(shardOf(id))).map((alert) => alert.id);
      for (const id of ids) {
        expect(await waiting(id)).toContain(id);
        await leases.acknowledge(id, 'delivery');
        expect(await waiting(id)).not.toContain(id);
      }
      for (const id of ids) expect([await waiting(id), await left(id)]).toEqual([[], 0]);
    });

    it('know whether its line was written, also by a replica without a lease', async () => {
      const [{ id }, other] = [await raised(), await raised()];
      await leases.take(id, OWN);
      expect(await leases.take(id, { ...OWN, isAuditLogged: true })).toBeUndefined();
      await leases.recordAuditLogged(other.id);
      world.advance(MINUTE);
      expect(await leases.take(id, OWN)).toEqual({ tries: 2, isAuditLogged: true });
      expect(await leases.take(other.id, OWN)).toEqual({ tries: 1, isAuditLogged: true });
    });

    it('that failed are followed by a pause, which no replica shortens and the line outlives', async () => {
      const { id } = await raised();
      await leases.take(id, { ...OWN, isAuditLogged: true });
      await leases.postpone(id, 10 * MINUTE - 0.5);
      world.advance(10 * MINUTE - world.tick);
      expect(await leases.take(id, OWN)).toBeUndefined();
      world.advance(world.tick);
      expect(await leases.take(id, OWN)).toEqual({ tries: 2, isAuditLogged: true });
      await leases.postpone(id, 0);
      expect(await leases.take(id, OWN)).toEqual({ tries: 3, isAuditLogged: true });
    });

    it('end when it is delivered, and leave nothing behind', async () => {
      const { id } = await raised();
      await leases.take(id, OWN);
      expect([await left(id), await leases.isPendingFor(id, 'delivery')]).toEqual([1, true]);
      await leases.acknowledge(id, 'delivery');
      await leases.acknowledge(id, 'delivery');
      await leases.recordAuditLogged(id);
      await leases.postpone(id, MINUTE);
      world.advance(MINUTE);
      expect(await leases.take(id, OWN)).toBeUndefined();
      expect([await alertsIn(), await left(id), await leases.isPendingFor(id, 'delivery')]).toEqual([[], 0, false]);
    });

    it('take nothing of an alert that is not there', async () => {
      const id = `${SHARD}.nothing`;
      await world.put(world.keys.deliveryLeases(SHARD), id, '0:3:1:0');
      expect(await leases.take(id, OWN)).toBeUndefined();
      expect(await left(id)).toBe(0);
    });

    it.each([
      ['delivery', 'controller'],
      ['controller', 'delivery'],
    ] as const)('end when %s and then %s has it, where both have to', async (first, second) => {
      const both = world.leases({ hasController: true });
      const { id } = await raised();
      expect([await both.isPendingFor(id, first), await both.isPendingFor(id, second)]).toEqual([true, true]);
      await both.acknowledge(id, first);
      await both.acknowledge(id, first);
      expect([await both.isPendingFor(id, first), await both.isPendingFor(id, second)]).toEqual([false, true]);
      expect((await alertsIn()).map((alert) => alert.id)).toEqual([id]);
      const lease = await both.take(id, OWN);
      expect(lease).toEqual(first === 'delivery' ? undefined : { tries: 1, isAuditLogged: false });
      await both.acknowledge(id, second);
      expect([await alertsIn(), await left(id), await both.isPendingFor(id, second)]).toEqual([[], 0, false]);
    });

    it('count on where an earlier version left them, and begin again where they cannot be parsed', async () => {
      const [earlier, garbled] = [await raised(), await raised()];
      const key = world.keys.deliveryLeases(SHARD);
      await world.put(key, earlier.id, `${Math.floor(world.now()) - DAY}:4:1`);
      await world.put(key, garbled.id, 'no turn: at all');
      expect(await leases.take(earlier.id, OWN)).toEqual({ tries: 5, isAuditLogged: true });
      expect(await leases.take(garbled.id, OWN)).toEqual({ tries: 1, isAuditLogged: false });
    });
  });
}
