// What a receiver of alerts is promised by docs/guides/alerts.md: the members of the body, the signature, and when a try that
// failed is repeated. With the pace of the product, in a time that stands still until the test moves it.

import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { redeemed, redeemRequest, rotatedTo, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { type Received, type Receiver, startReceiver } from '../../webhook/receiver.ts';
import { frozen } from '../setup/frozen-time.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { DeliveringReplica, WEBHOOK_SECRET } from './delivering-replica.ts';

const guide = readFileSync(new URL('../../../docs/guides/alerts.md', import.meta.url), 'utf8');

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const keys = new RedisKeys('grantry:');
const START = Date.UTC(2026, 0, 1, 12);
const ADDRESS = '198.51.100.9';

let now = START;
let server: RedisServer;
let still: ManagedConnection;
let stores: Stores;
let receiver: Receiver;
let replica: DeliveringReplica;

/** Each misuse that raises an alert, and what the alert then says of it. */
const RAISED: Readonly<Record<Alert['type'], () => Promise<{ readonly alert: Alert; readonly says: object }>>> = {
  async 'refresh_token.reuse_detected'() {
    const grant = await rotatedTo(stores.grants, 2);
    const answer = await stores.grants.rotate(rotateRequest(grant, 0, { address: ADDRESS }));
    const says = { presentedGeneration: 0, currentGeneration: 2, lastAddress: '192.0.2.2', action: 'grant_revoked' };
    return { alert: alertIn(answer), says };
  },
  async 'refresh_token.retried_elsewhere'() {
    const { grantId } = await rotatedTo(stores.grants, 3);
    const retries = [0, 1, 2].map((generation) => ({
      grantId,
      generation,
      address: ADDRESS,
      rotatedFrom: '192.0.2.2',
    }));
    let alert: Alert | undefined;
    for (const retry of retries) alert = await stores.grants.noteRetryElsewhere(retry);
    const says = { presentedGeneration: 2, currentGeneration: 3, lastAddress: '192.0.2.2', action: 'answered_again' };
    return { alert: alertIn({ alert }), says };
  },
  async 'authorization_code.replayed'() {
    const grant = await redeemed(stores.grants);
    const answer = await stores.grants.redeem(redeemRequest(grant, { address: ADDRESS }));
    return {
      alert: alertIn(answer),
      says: { currentGeneration: 0, lastAddress: '192.0.2.1', action: 'grant_revoked' },
    };
  },
  async state_lost() {
    const grant = await redeemed(stores.grants);
    const answer = await stores.grants.rotate(rotateRequest(grant, 5, { address: ADDRESS }));
    const says = { presentedGeneration: 5, currentGeneration: 0, lastAddress: '192.0.2.1', action: 'healed_forward' };
    return { alert: alertIn(answer), says };
  },
};

function alertIn(answer: object): Alert {
  const { alert } = answer as { readonly alert?: Alert };
  if (alert === undefined) throw new Error('nothing was raised');
  return alert;
}

describeRedis('a receiver of alerts', () => {
  beforeAll(async () => {
    server = await startRedis();
    still = await connectPatiently(server, { clockOffset: () => now });
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    now = START;
    receiver = await startReceiver();
    const connection = frozen(still);
    stores = redisStores({ connection, keys });
    replica = new DeliveringReplica({
      connection,
      keys,
      webhookUrl: receiver.url,
      clock: { now: () => now },
      onReconnect: () => {},
    });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await replica.delivery.stop();
    receiver.stop();
  });
  afterAll(async () => {
    await still.close();
    await server.stop();
  });

  /** When each try was made, as its signature says: milliseconds after the alert was raised. */
  const tries = () =>
    receiver.received.map(({ headers }) => {
      const [, time] = /^t=(\d+),/.exec(String(headers['grantry-signature'])) ?? [];
      return Number(time) * SECOND - START;
    });

  /** Sweeps then; a try that this begins ends by itself. */
  async function sweepAfter(milliseconds: number): Promise<void> {
    now = START + milliseconds;
    await replica.delivery.sweep();
  }

  const ended = (count: number) =>
    until(`${count} tries have ended`, async () => {
      const outcomes = await Promise.all(
        ['delivered', 'failed', 'dead_letter'].map((each) => replica.deliveries(each)),
      );
      return outcomes.reduce((sum, each) => sum + each, 0) === count;
    });

  it.each(Object.keys(RAISED) as Alert['type'][])('is posted every member that the guide names: %s', async (type) => {
    const { alert, says } = await RAISED[type]();
    await sweepAfter(5 * SECOND);
    await ended(1);
    const { body, headers } = receiver.received[0] as Received;
    const [line] = replica.lines.filter(({ stream }) => stream === 'audit');
    expect(JSON.parse(body)).toEqual({
      id: `${alert.grantId}.${type}`,
      type,
      time: '2026-01-01T12:00:00.000Z',
      issuer: 'https://id.example',
      clientId: 'default.shop',
      subject: line?.subject,
      grantId: alert.grantId,
      address: ADDRESS,
      ...says,
    });
    // A keyed hash, and no name that a list would give away.
    expect(line?.subject).toMatch(/^[\w-]{22}$/);
    expect(line).toMatchObject({ event: type, alert: { id: alert.id } });
    const signature = createHmac('sha256', WEBHOOK_SECRET).update(`1767268805.${body}`).digest('hex');
    expect(headers['grantry-signature']).toBe(`t=1767268805,v1=${signature}`);
  });

  it('is posted no member that the guide does not name', async () => {
    const [, example = '{}'] = /```json\n(.*?)```/s.exec(guide) ?? [];
    await RAISED['refresh_token.reuse_detected']();
    await sweepAfter(5 * SECOND);
    await ended(1);
    const posted = JSON.parse(receiver.received[0]?.body ?? '{}') as object;
    expect(Object.keys(posted)).toEqual(Object.keys(JSON.parse(example) as object));
  });

  it('is tried for a day: after at most 10 s, 20 s, 40 s … and never more than an hour', async () => {
    // As long as a pause can be.
    vi.spyOn(Math, 'random').mockReturnValue(1 - Number.EPSILON);
    receiver.answer = { status: 503 };
    const { alert } = await RAISED['refresh_token.reuse_detected']();
    const pauses = [10, 20, 40, 80, 160, 320, 640, 1280, 2560].map((seconds) => seconds * SECOND);
    pauses.push(...Array<number>(22).fill(HOUR));
    await sweepAfter(5 * SECOND - 1);
    // The replica that raised it comes first.
    expect(replica.audits()).toEqual([]);
    await sweepAfter(5 * SECOND);
    await ended(1);
    const expected = [5 * SECOND];
    for (const pause of pauses) {
      const next = (expected.at(-1) ?? 0) + pause;
      await sweepAfter(next - 1);
      await sweepAfter(next);
      expected.push(next);
      await ended(expected.length);
    }
    await sweepAfter(7 * 24 * HOUR);
    expect(tries()).toEqual(expected);

    expect(await Promise.all([replica.deliveries('failed'), replica.deliveries('dead_letter')])).toEqual([
      pauses.length,
      1,
    ]);
    expect(replica.lines.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ alert: alert.id, type: alert.type, fault: 'status_503', tries: pauses.length + 1 }),
    ]);
    expect(await server.command('KEYS', '*:outbox*')).toEqual([]);
    expect(replica.audits()).toEqual(['refresh_token.reuse_detected']);
    expect(await replica.metrics.text()).toMatch(/^grantry_refresh_reuse_detected_total 1$/m);
  });

  it.each([
    ['at once', 0, [0, 0, 0]],
    ['after half of the longest pause', 0.5, [5, 10, 20]],
  ])('is tried again when chance has it: %s', async (_when, chance, pauses) => {
    vi.spyOn(Math, 'random').mockReturnValue(chance);
    receiver.answer = { status: 503 };
    await RAISED['refresh_token.reuse_detected']();
    const expected: number[] = [];
    for (const pause of [5, ...pauses]) {
      const next = (expected.at(-1) ?? 0) + pause * SECOND;
      if (pause > 0) await sweepAfter(next - 1);
      await sweepAfter(next);
      expected.push(next);
      await ended(expected.length);
    }
    expect(tries()).toEqual(expected);
  });

  it('that takes it at last is left alone, and got one alert', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1 - Number.EPSILON);
    receiver.answer = { status: 503 };
    const { alert } = await RAISED['refresh_token.reuse_detected']();
    await sweepAfter(5 * SECOND);
    await ended(1);
    receiver.answer = { status: 204 };
    await sweepAfter(15 * SECOND);
    await ended(2);
    await sweepAfter(HOUR);
    expect(tries()).toEqual([5 * SECOND, 15 * SECOND]);
    const [first, second] = receiver.received;
    expect(first?.body).toBe(second?.body);
    expect(JSON.parse(first?.body ?? '{}')).toMatchObject({ id: alert.id });
    expect(await Promise.all([replica.deliveries('failed'), replica.deliveries('delivered')])).toEqual([1, 1]);
  });
});
