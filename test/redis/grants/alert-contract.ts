// The contract of the outboxes of alerts, on every form of Redis: there is no other implementation.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import { shardOf, shardOfPerson } from '../../../src/oauth/values/shard.ts';
import { type AlertOutbox, placeOfAlert } from '../../../src/redis/grants/alert-outbox.ts';
import { MINUTE, redeemed, redeemRequest, rotatedTo, rotateRequest, SHARD } from '../../contracts/sample-grants.ts';
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

  const alertsIn = async (shard = SHARD, queue: 'raised' | 'webhook' = 'raised') =>
    (await world.outbox[queue].list(shard)).map(({ alert }) => alert);

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
        const found = (await alertsIn(shard)).map((alert) => alert?.id);
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
      const types = (await alertsIn()).map((alert) => [alert?.grantId, alert?.type]).sort();
      const expected = [
        [reused.grantId, 'refresh_token.reuse_detected'],
        [replayed.grantId, 'authorization_code.replayed'],
      ];
      expect(types).toEqual(expected.sort());
    });

    it('reports how long an alert has waited', async () => {
      await raised();
      world.advance(7000);
      const [entry] = await world.outbox.raised.list(SHARD);
      expect(entry?.age).toBeGreaterThanOrEqual(7000);
      expect(entry?.age).toBeLessThan(12_000);
    });

    it('forgets a delivered alert for good: the grant never raises it again', async () => {
      const { grants } = world.stores;
      const grant = await redeemed(grants);
      await grants.rotate(rotateRequest(grant, 5));
      const [alert] = await alertsIn();
      expect(alert).toMatchObject({ type: 'state_lost', presentedGeneration: 5, currentGeneration: 0 });
      const place = placeOfAlert(`${alert?.id}`);
      expect(await world.outbox.raised.acknowledge(place)).toBe(true);
      expect(await world.outbox.raised.acknowledge(place)).toBe(false);
      expect(await alertsIn()).toEqual([]);
      expect(await grants.rotate(rotateRequest(grant, 9))).toMatchObject({ outcome: 'healed', alert: undefined });
      expect(await alertsIn()).toEqual([]);
    });

    it('lists no more than asked for', async () => {
      for (let count = 0; count < 5; count++) await raised();
      expect(await world.outbox.raised.list(SHARD, 3)).toHaveLength(3);
      expect(await world.outbox.raised.list(SHARD, 9)).toHaveLength(5);
    });

    it('lists without an alert what cannot be delivered, and lets no try take what is no JSON', async () => {
      const alert = await raised();
      const bad: Readonly<Record<string, string>> = {
        [`${SHARD}.not-json`]: '{',
        [`${SHARD}.null`]: 'null',
        [`${SHARD}.another-name`]: JSON.stringify(alert),
        [`${alert.grantId}.no-time`]: JSON.stringify({ ...alert, id: `${alert.grantId}.no-time`, time: 'noon' }),
        [`${alert.grantId}.no-subject`]: JSON.stringify({ ...alert, id: `${alert.grantId}.no-subject`, subject: 7 }),
        [`${SHARD}.of-another-grant`]: JSON.stringify({ ...alert, id: `${SHARD}.of-another-grant` }),
        '008.of-another-shard': JSON.stringify({ ...alert, id: '008.of-another-shard', grantId: '008' }),
      };
      const key = world.keys.raisedAlerts(SHARD);
      for (const [field, json] of Object.entries(bad)) await world.put(key, field, json);
      const listed = await world.outbox.raised.list(SHARD);
      expect(listed.flatMap((each) => each.alert ?? [])).toEqual([alert]);
      const unreadable = listed.filter((each) => each.alert === undefined);
      expect(unreadable.map(({ shard, name }) => [shard, name]).sort()).toEqual(
        Object.keys(bad)
          .map((field) => [SHARD, field])
          .sort(),
      );
      expect(await world.outbox.raised.take({ shard: SHARD, name: `${SHARD}.not-json` }, MINUTE)).toBeUndefined();
      for (const each of unreadable) expect(await world.outbox.raised.acknowledge(each)).toBe(true);
      expect(await alertsIn()).toEqual([alert]);
    });
  });

  describe(`${name}: an alert in an outbox`, () => {
    let outbox: AlertOutbox;
    beforeEach(() => {
      outbox = world.outbox;
    });

    it('is taken by one try at a time: the next begins when its lease is over', async () => {
      const alert = await raised();
      const place = placeOfAlert(alert.id);
      const tries = await Promise.all(Array.from({ length: 20 }, () => outbox.raised.take(place, MINUTE)));
      expect(tries.filter((before) => before !== undefined)).toEqual([0]);
      world.advance(MINUTE - world.tick);
      expect([await outbox.raised.take(place, MINUTE), await alertsIn()]).toEqual([undefined, []]);
      world.advance(world.tick);
      expect(await alertsIn()).toEqual([alert]);
      expect(await outbox.raised.take(place, MINUTE)).toBe(1);
    });

    it('whose try failed is left alone for a pause, which no replica shortens', async () => {
      const place = placeOfAlert((await raised()).id);
      await outbox.raised.take(place, MINUTE);
      await outbox.raised.postpone(place, 10 * MINUTE - 0.5);
      world.advance(10 * MINUTE - world.tick);
      expect(await outbox.raised.take(place, MINUTE)).toBeUndefined();
      world.advance(world.tick);
      expect(await outbox.raised.take(place, MINUTE)).toBe(1);
      await outbox.raised.postpone(place, 0);
      expect(await outbox.raised.take(place, MINUTE)).toBe(2);
    });

    it('moves on to the webhook in one action, once, wherever it is, and also while it is taken', async () => {
      const alerts = await Promise.all(PEOPLE.map((subject) => raised(subject)));
      for (const alert of alerts) {
        const [place, shard] = [placeOfAlert(alert.id), shardOf(alert.id)];
        await outbox.raised.take(place, MINUTE);
        await outbox.forward(alert, true);
        expect(await outbox.raised.acknowledge(place)).toBe(false);
        expect(await alertsIn(shard, 'webhook')).toContainEqual(alert);
        expect(await outbox.webhook.acknowledge(place)).toBe(true);
        await outbox.forward(alert, true);
        expect(await outbox.webhook.acknowledge(place)).toBe(false);
      }
    });

    it.each([
      ['nowhere without a webhook', false],
      ['to the webhook', true],
    ])('moves on %s, and to no controller', async (_name, hasWebhook) => {
      const alert = await raised();
      await outbox.forward(alert, hasWebhook);
      expect([await alertsIn(), await alertsIn(SHARD, 'webhook')]).toEqual([[], hasWebhook ? [alert] : []]);
      expect(await outbox.controller.list(SHARD)).toEqual([]);
    });

    it('that a fail-over has lost comes to the webhook all the same, and is raised no second time', async () => {
      const { grants } = world.stores;
      const grant = await redeemed(grants);
      const answer = await grants.rotate(rotateRequest(grant, 5));
      const alert = answer.outcome === 'healed' ? answer.alert : undefined;
      if (alert === undefined) throw new Error('nothing was raised');
      await outbox.raised.acknowledge(placeOfAlert(alert.id));
      await world.put(world.keys.grant(grant.grantId), 'e', '');
      await outbox.forward(alert, true);
      expect([await alertsIn(), await alertsIn(SHARD, 'webhook')]).toEqual([[], [alert]]);
      expect(await grants.rotate(rotateRequest(grant, 9))).toMatchObject({ outcome: 'healed', alert: undefined });
      await outbox.webhook.acknowledge(placeOfAlert(alert.id));
      await outbox.forward(alert, true);
      expect([await alertsIn(), await alertsIn(SHARD, 'webhook')]).toEqual([[], []]);
    });

    it('is gone once it is acknowledged, and leaves nothing behind', async () => {
      const place = placeOfAlert((await raised()).id);
      await outbox.raised.take(place, MINUTE);
      expect([await outbox.raised.acknowledge(place), await outbox.raised.acknowledge(place)]).toEqual([true, false]);
      await outbox.raised.postpone(place, MINUTE);
      world.advance(MINUTE);
      expect(await outbox.raised.take(place, MINUTE)).toBeUndefined();
      expect(await world.fieldsOf(world.keys.raisedAlerts(SHARD))).toBe(0);
    });
  });
}
