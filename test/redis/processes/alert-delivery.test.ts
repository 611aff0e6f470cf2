// Alerts from the outbox to the sinks, by replicas of the delivery over one Redis and a real receiver.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { DeliveryPace } from '../../../src/delivery/alert-delivery.ts';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection, RedisConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { AlertOutbox, placeOfAlert } from '../../../src/redis/grants/alert-outbox.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { redeemed, rotatedTo, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { type Receiver, startReceiver } from '../../webhook/receiver.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { DeliveringReplica } from './delivering-replica.ts';

const FAST: DeliveryPace = {
  sweep: 50,
  written: 10,
  leftBehind: 100,
  lease: 2000,
  first: 20,
  longest: 40,
  triedFor: 3_600_000,
};
/** Never by itself. */
const QUIET: DeliveryPace = { ...FAST, sweep: 3_600_000 };

/** Lua: the names in all outboxes, in one action. */
const NAMES = `
local names = {}
for _, key in ipairs(redis.call('KEYS', '*:outbox*')) do
  for _, name in ipairs(redis.call('HKEYS', key)) do names[#names + 1] = name end
end
return names
`;

interface ReplicaOptions {
  readonly pace?: DeliveryPace;
  readonly webhook?: boolean;
  /** How it reaches Redis. */
  readonly over?: RedisConnection;
}

describeRedis('the delivery of alerts', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  let outbox: AlertOutbox;
  let receiver: Receiver;
  const keys = new RedisKeys('grantry:');
  const replicas = new Set<DeliveringReplica>();

  beforeAll(async () => {
    // A write that Redis has answered is on the disk: a kill loses none of them.
    server = await startRedis({ persistent: true, settings: { appendfsync: 'always' } });
    connection = await connectTo(server);
    stores = redisStores({ connection, keys });
    outbox = new AlertOutbox({ connection, keys });
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await Promise.all([...replicas].map(({ delivery }) => delivery.stop()));
    replicas.clear();
    receiver.stop();
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  function aReplica({ pace = FAST, webhook = true, over = connection }: ReplicaOptions = {}) {
    const replica = new DeliveringReplica({
      connection: over,
      keys,
      pace,
      webhookUrl: webhook ? receiver.url : undefined,
      onReconnect: (listener) => connection.onReconnect(listener),
    });
    replicas.add(replica);
    return replica;
  }

  /** Redis, but for what a test keeps from it. */
  function exceptFor(isLost: (key: string) => boolean): RedisConnection {
    return {
      allowsCrossSlot: true,
      recordForReplay: () => {},
      runDurably: (...request) => connection.runDurably(...request),
      async run(action, deadline) {
        if (action.keys.some(isLost)) throw new StoreUnavailableError(action.script.name);
        return await connection.run(action, deadline);
      },
    };
  }

  /** A family whose first refresh token came again. @param by the replica that got the reply; undefined when it died */
  async function reuse(by?: DeliveringReplica): Promise<string> {
    const grant = await rotatedTo(stores.grants, 2);
    const answer = await stores.grants.rotate(rotateRequest(grant, 0, { address: '198.51.100.9' }));
    const alert = answer.outcome === 'reused' ? answer.alert : undefined;
    if (alert === undefined) throw new Error('nothing was raised');
    by?.raise(alert);
    return alert.id;
  }

  /** Has it raised so many milliseconds before. */
  async function antedate(id: string, by: number): Promise<void> {
    const place = [keys.raisedAlerts(id.slice(0, 3)), id] as const;
    const alert = JSON.parse(String(await server.command('HGET', ...place))) as { time: number };
    await server.command('HSET', ...place, JSON.stringify({ ...alert, time: alert.time - by }));
  }

  /** So many without an audit line, in one shard. */
  async function untold(count: number): Promise<readonly Alert[]> {
    const id = await reuse();
    const shard = id.slice(0, 3);
    const queued = await outbox.raised.list(shard);
    await outbox.raised.acknowledge(placeOfAlert(id));
    const alerts = queued.flatMap(({ alert }) =>
      alert === undefined ? [] : Array.from({ length: count }, (_, index) => ({ ...alert, id: `${id}-${index}` })),
    );
    const words = alerts.flatMap((alert) => [alert.id, JSON.stringify(alert)]);
    await server.command('HSET', keys.raisedAlerts(shard), ...words);
    return alerts;
  }

  /** How many alerts of a shard wait for the webhook, taken or not. */
  const forWebhook = async (shard: string) => Number(await server.command('HLEN', keys.webhookAlerts(shard)));

  /** The names in all outboxes, taken or not. */
  async function waitingAlerts(): Promise<readonly string[]> {
    return (await server.command('EVAL', NAMES, '0')) as readonly string[];
  }

  const emptied = () => until('the outboxes are empty', async () => (await waitingAlerts()).length === 0);
  const ids = () => receiver.received.map(({ body }) => (JSON.parse(body) as { id: string }).id);

  it('is at once, by the replica that raised one; audit line and webhook name the same alert', async () => {
    const replica = aReplica({ pace: QUIET }).start();
    const id = await reuse(replica);
    await emptied();
    expect(ids()).toEqual([id]);
    const [line] = replica.lines as [{ subject: string; alert: Record<string, unknown> }];
    const posted = JSON.parse(receiver.received[0]?.body ?? '') as Record<string, unknown>;
    expect(posted).toMatchObject({
      id,
      type: 'refresh_token.reuse_detected',
      issuer: 'https://id.example',
      subject: line.subject,
      presentedGeneration: 0,
      currentGeneration: 2,
      address: '198.51.100.9',
      action: 'grant_revoked',
    });
    expect(line.alert.id).toBe(id);
    expect(await replica.deliveries('delivered')).toBe(1);
  });

  it('empties the outbox where no webhook is configured', async () => {
    const replica = aReplica({ pace: QUIET, webhook: false }).start();
    await reuse(replica);
    await emptied();
    expect(replica.audits()).toEqual(['refresh_token.reuse_detected']);
  });

  it('is counted for the controller by the one replica that writes its line, and waits for no controller', async () => {
    const [first, second] = [aReplica({ pace: QUIET }).start(), aReplica().start()];
    const id = await reuse(first);
    const orphan = await reuse();
    await emptied();
    expect([first.counted, second.counted]).toEqual([[id], [orphan]]);
  });

  it('that a replica of an earlier version left for its controller is counted once, and logged and posted by none', async () => {
    const id = await reuse();
    const [queued] = await outbox.raised.list(id.slice(0, 3));
    if (queued?.alert === undefined) throw new Error('nothing was raised');
    await outbox.raised.acknowledge(queued);
    await server.command('HSET', keys.controllerAlerts(queued.shard), id, JSON.stringify(queued.alert));
    const replicas = [aReplica({ pace: QUIET }), aReplica({ pace: QUIET, webhook: false })];
    await Promise.all(replicas.map(({ delivery }) => delivery.sweep()));
    expect(await waitingAlerts()).toEqual([]);
    expect(replicas.flatMap(({ counted }) => counted)).toEqual([id]);
    expect([...replicas.flatMap((replica) => replica.audits()), ...ids()]).toEqual([]);
  });

  it('is by another replica when the one that raised it is gone, with audit line and counter', async () => {
    const [first, second] = [aReplica().start(), aReplica().start()];
    const id = await reuse();
    await emptied();
    expect(ids()).toEqual([id]);
    expect([...first.audits(), ...second.audits()]).toEqual(['refresh_token.reuse_detected']);
    const counts = await Promise.all([first, second].map(({ metrics }) => metrics.text()));
    expect(counts.join('\n').match(/^grantry_refresh_reuse_detected_total 1$/gm)).toHaveLength(1);
  });

  it('is by another replica when one ends with the lease and has reported nothing, with audit line and counter', async () => {
    const id = await reuse();
    expect(await outbox.raised.take(placeOfAlert(id), 200)).toBe(0);
    const next = aReplica().start();
    await emptied();
    expect(ids()).toEqual([id]);
    expect(next.audits()).toEqual(['refresh_token.reuse_detected']);
    expect(await next.metrics.text()).toMatch(/^grantry_refresh_reuse_detected_total 1$/m);
  });

  it('is by another replica when one is killed before its audit line is written out', async () => {
    const killed = aReplica({ pace: { ...QUIET, written: 3_600_000 } }).start();
    const next = aReplica().start();
    const id = await reuse(killed);
    await emptied();
    expect(ids()).toEqual([id]);
    expect(next.audits()).toEqual(['refresh_token.reuse_detected']);
  });

  it('is logged and posted also where no replica was there for a week, and no controller is waited for', async () => {
    const id = await reuse();
    await antedate(id, 8 * 24 * 3_600_000);
    const replica = aReplica({ pace: QUIET });
    await replica.delivery.sweep();
    await emptied();
    expect([ids(), replica.audits()]).toEqual([[id], ['refresh_token.reuse_detected']]);
  });

  it('is logged once, however many replicas find it and cannot post it', async () => {
    receiver.answer = { status: 500 };
    const all = Array.from({ length: 3 }, () => aReplica().start());
    await reuse();
    await until('it was tried several times', () => receiver.received.length >= 4);
    receiver.answer = { status: 204 };
    await emptied();
    expect(all.flatMap((replica) => replica.audits())).toEqual(['refresh_token.reuse_detected']);
  });

  it('goes on with the other shards where one cannot be reached, and where one holds something else', async () => {
    await server.command('SET', keys.raisedAlerts('001'), 'not a hash');
    const over = exceptFor((key) => key.includes('{s000}'));
    const replica = aReplica({ pace: { ...QUIET, leftBehind: 0 }, over });
    const id = await reuse();
    await replica.delivery.sweep();
    await server.command('DEL', keys.raisedAlerts('001'));
    await emptied();
    expect(ids()).toEqual([id]);
    const [fault] = replica.lines.filter(({ msg }) => msg === 'alert delivery failed');
    expect(fault?.cause).toMatch(/^caused by ReplyError: WRONGTYPE$/m);
  });

  it('takes what is no alert, or none of its shard, out of the outbox, says so in the log, counts it, and goes on', async () => {
    const id = await reuse();
    const shard = id.slice(0, 3);
    const other = shard === '000' ? '001' : '000';
    const misplaced = `${shard}.misplaced`;
    const alert = JSON.parse(String(await server.command('HGET', keys.raisedAlerts(shard), id))) as Alert;
    for (const [where, name, json] of [
      [shard, `${shard}.broken`, '{"id":'],
      [shard, 'no shard', '{}'],
      [other, misplaced, JSON.stringify({ ...alert, id: misplaced })],
    ] as const) {
      await server.command('HSET', keys.raisedAlerts(where), name, json);
    }
    const replicas = [1, 2].map(() => aReplica({ pace: { ...QUIET, leftBehind: 0 } }));
    await Promise.all(replicas.map(({ delivery }) => delivery.sweep()));
    await emptied();
    expect(ids()).toEqual([id]);
    const errors = replicas.flatMap(({ lines }) => lines.filter(({ level }) => level === 'error'));
    expect(errors.map(({ alert, fault }) => [alert, fault]).sort()).toEqual([
      [`${shard}.broken`, 'unreadable'],
      [misplaced, 'unreadable'],
      ['no shard', 'unreadable'],
    ]);
    const counts = await Promise.all(replicas.map((replica) => replica.deliveries('dead_letter')));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
  });

  it('leaves a fresh alert to the replica that raised it', async () => {
    const sweeping = aReplica({ pace: { ...QUIET, leftBehind: 60_000 } });
    await reuse();
    await sweeping.delivery.sweep();
    expect([ids(), sweeping.audits()]).toEqual([[], []]);
    expect(await waitingAlerts()).toHaveLength(1);
  });

  it('never sends one alert from two replicas at once, however many sweep', async () => {
    const all = Array.from({ length: 5 }, () => aReplica({ pace: { ...QUIET, leftBehind: 0 } }));
    const raised = [await reuse(), await reuse(), await reuse()];
    await Promise.all(all.flatMap(({ delivery }) => [delivery.sweep(), delivery.sweep()]));
    await emptied();
    expect([...ids()].sort()).toEqual([...raised].sort());
    expect(all.flatMap((replica) => replica.audits())).toHaveLength(3);
  });

  it('of many takes no more than sixteen at once, and the next when one of them has ended', async () => {
    receiver.answer = undefined;
    const alerts = await untold(40);
    aReplica().start();
    await until('sixteen wait for their answer', () => receiver.received.length >= 16);
    receiver.answer = { status: 204 };
    receiver.answerWaiting();
    await emptied();
    expect(new Set(ids())).toEqual(new Set(alerts.map(({ id }) => id)));
    expect(receiver.mostWaiting).toBe(16);
  });

  it('of more than sixteen that were raised at once has the rest wait, logged; another replica goes on when it stops', async () => {
    receiver.answer = undefined;
    const alerts = await untold(40);
    const raising = aReplica({ pace: QUIET }).start();
    for (const alert of alerts) raising.raise(alert);
    const shard = alerts[0]?.id.slice(0, 3) ?? '';
    await until('all are logged', async () => (await forWebhook(shard)) === 40);
    await until('sixteen wait for their answer', () => receiver.received.length === 16);
    const stopped = raising.delivery.stop();
    receiver.answer = { status: 204 };
    receiver.answerWaiting();
    await stopped;
    expect(receiver.mostWaiting).toBe(16);
    const sweeping = aReplica().start();
    await emptied();
    expect(new Set(ids())).toEqual(new Set(alerts.map(({ id }) => id)));
    expect([raising.audits().length, sweeping.audits()]).toEqual([40, []]);
  });

  it('is tried again after a pause, and the audit line stays one', async () => {
    receiver.answer = { status: 500 };
    const replica = aReplica().start();
    const id = await reuse(replica);
    await until('it was tried twice', () => receiver.received.length >= 2);
    receiver.answer = { status: 204 };
    await emptied();
    expect(new Set(ids())).toEqual(new Set([id]));
    expect(replica.audits()).toEqual(['refresh_token.reuse_detected']);
    expect(await replica.deliveries('delivered')).toBe(1);
    expect(await replica.deliveries('failed')).toBeGreaterThanOrEqual(2);
  });

  it('is given up when it is old and a try has failed, said in the log and counted', async () => {
    receiver.answer = { status: 500 };
    const id = await reuse();
    await antedate(id, 60_000);
    const replica = aReplica({ pace: { ...FAST, triedFor: 60_000 } }).start();
    await emptied();
    expect(ids()).toEqual([id]);
    expect(await replica.deliveries('dead_letter')).toBe(1);
    expect(replica.lines.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ alert: id, fault: 'status_500', tries: 1 }),
    ]);
  });

  it('is given up for a webhook that no replica has for a week, said in the log', async () => {
    const id = await reuse();
    const [queued] = await outbox.raised.list(id.slice(0, 3));
    if (queued?.alert === undefined) throw new Error('nothing was raised');
    const { shard, alert } = queued;
    await outbox.raised.acknowledge(queued);
    const replica = aReplica({ pace: QUIET, webhook: false });
    const sweptAtTheAge = async (age: number) => {
      const json = JSON.stringify({ ...alert, time: Date.now() - age });
      await server.command('HSET', keys.webhookAlerts(shard), id, json);
      await replica.delivery.sweep();
      return await waitingAlerts();
    };
    const week = 7 * 24 * 3_600_000;
    expect(await sweptAtTheAge(week - 60_000)).toEqual([id]);
    expect(await sweptAtTheAge(week + 1)).toEqual([]);
    const given = replica.lines.filter(({ level }) => level === 'error').map(({ alert, sink }) => [alert, sink]);
    expect(given).toEqual([[id, 'webhook']]);
  });

  it('is logged, and counted for the controller, though the webhook hangs', async () => {
    receiver.answer = undefined;
    await untold(40);
    const replica = aReplica({ pace: { ...QUIET, leftBehind: 0 } }).start();
    const swept = replica.delivery.sweep();
    await until('sixteen wait for their answer', () => receiver.received.length === 16);
    await until('all are counted', () => replica.counted.length === 40);
    expect([replica.audits().length, receiver.mostWaiting]).toEqual([40, 16]);
    receiver.answer = { status: 204 };
    receiver.answerWaiting();
    await swept;
  });

  it('is by the next replica when one ends in the middle of a try', async () => {
    receiver.answer = undefined;
    const dying = aReplica({ pace: { ...QUIET, lease: 200 } }).start();
    const id = await reuse(dying);
    await until('the try is under way', () => receiver.received.length === 1);
    receiver.answer = { status: 204 };
    const next = aReplica().start();
    await emptied();
    expect(ids()).toEqual([id, id]);
    expect([...dying.audits(), ...next.audits()]).toEqual(['refresh_token.reuse_detected']);
  });

  it('ends only after the try under way', async () => {
    receiver.answer = undefined;
    const replica = aReplica({ pace: QUIET }).start();
    await reuse(replica);
    await until('the try is under way', () => receiver.received.length === 1);
    await replica.delivery.stop();
    expect(await replica.deliveries('failed')).toBe(1);
  });

  it('begins none once it is stopped, though a sweep has found more than are taken at once', async () => {
    receiver.answer = undefined;
    await untold(17);
    const replica = aReplica({ pace: { ...QUIET, leftBehind: 0 } });
    const swept = replica.delivery.sweep();
    await until('sixteen wait for their answer', () => receiver.received.length === 16);
    const stopped = replica.delivery.stop();
    receiver.answer = { status: 204 };
    receiver.answerWaiting();
    await Promise.all([stopped, swept]);
    // What was sent to Redis before this has been done.
    expect((await waitingAlerts()).length).toBe(1);
  });

  it('waits for Redis to come back, and no other replica writes a second audit line', async () => {
    const [raising, other] = [
      aReplica({ pace: QUIET }).start(),
      aReplica({ pace: { ...FAST, leftBehind: 1500 } }).start(),
    ];
    const grant = await rotatedTo(stores.grants, 2);
    const answer = await stores.grants.rotate(rotateRequest(grant, 0));
    await server.kill();
    const alert = answer.outcome === 'reused' ? answer.alert : undefined;
    raising.audit.record({ type: 'refresh_token.reuse_detected', alert });
    await server.start();
    await connection.ready(15_000);
    await until('it moves on', async () => (await connection.replayRevocations('pending')).applied > 0);
    await emptied();
    expect(ids()).toEqual([alert?.id]);
    expect([...raising.audits(), ...other.audits()]).toEqual(['refresh_token.reuse_detected']);
  });

  it('leaves what is there when Redis recovers to the replicas that raised it, as if it were fresh', async () => {
    const pace = { ...QUIET, leftBehind: 60_000 };
    const sweeping = aReplica({ pace }).start();
    const id = await reuse();
    await antedate(id, 120_000);
    await server.kill();
    await server.start();
    await connection.ready(15_000);
    await sweeping.delivery.sweep();
    expect([ids(), sweeping.audits(), await waitingAlerts()]).toEqual([[], [], [id]]);
    await aReplica({ pace }).delivery.sweep();
    await emptied();
    expect(ids()).toEqual([id]);
  });

  it('logs an alert once, though a store that lost writes raises it again', async () => {
    const replica = aReplica({ pace: QUIET }).start();
    const id = await reuse(replica);
    await emptied();
    await server.command('FLUSHALL');
    const grantId = id.replace(/\.refresh_token\.reuse_detected$/, '');
    const grant = await redeemed(stores.grants, { grantId });
    await stores.grants.rotate(rotateRequest(grant, 0));
    await stores.grants.rotate(rotateRequest(grant, 1));
    const answer = await stores.grants.rotate(rotateRequest(grant, 0));
    expect(answer).toMatchObject({ outcome: 'reused', alert: { id } });
    replica.audit.record({
      type: 'refresh_token.reuse_detected',
      alert: answer.outcome === 'reused' ? answer.alert : undefined,
    });
    expect(replica.audits()).toHaveLength(1);
  });
});
