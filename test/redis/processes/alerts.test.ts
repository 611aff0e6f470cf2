// One stolen refresh token, presented to three real replicas over and over: one alert at every sink.

import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { type Received, type Receiver, startReceiver } from '../../webhook/receiver.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { type Replicas, redemption, refreshing, startReplicas } from './replicas.ts';

const SECRET = 'the secret of the receiver, 32 or more';

describeRedis('a refresh token that is used again and again', () => {
  let redis: RedisServer;
  let receiver: Receiver;
  let folder: string;
  let replicas: Replicas;
  beforeAll(async () => {
    [redis, receiver] = await Promise.all([startRedis(), startReceiver()]);
    folder = await mkdtemp(join(tmpdir(), 'grantry-alerts-'));
    await writeFile(join(folder, 'secret'), `${SECRET}\n`);
    replicas = await startReplicas(3, {
      GRANTRY_REDIS_URL: redis.url,
      GRANTRY_ALERT_WEBHOOK_URL: receiver.url,
      GRANTRY_ALERT_WEBHOOK_SECRET_FILE: join(folder, 'secret'),
    });
  });
  afterAll(async () => {
    await replicas.stop();
    receiver.stop();
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  it('is one line in the audit streams and one signed post, whichever replica was asked how often', async () => {
    const [first] = replicas.all;
    const code = (await first?.issueCode('graceless')) ?? '';
    const stolen = (await first?.post('graceless', '/token', redemption(code)))?.body.refresh_token;
    const next = await first?.post('graceless', '/token', refreshing(stolen));
    expect(next?.status).toBe(200);
    const asked = Array.from({ length: 60 }, (_, index) =>
      replicas.all[index % 3]?.post('graceless', '/token', refreshing(stolen)),
    );
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    }
    const dead = await replicas.all[1]?.post('graceless', '/token', refreshing(next?.body.refresh_token));
    expect(dead?.status).toBe(400);

    await until('the alert is posted', () => receiver.received.length > 0);
    await until(
      'the outbox is empty',
      async () => ((await redis.command('KEYS', '*:outbox*')) as string[]).length === 0,
    );
    const lines = replicas.all.flatMap((replica) => replica.audits());
    const alerts = lines.filter(({ event }) => event === 'refresh_token.reuse_detected');
    expect([alerts.length, receiver.received.length]).toEqual([1, 1]);
    const { headers, body } = receiver.received[0] as Received;
    const posted = JSON.parse(body) as Record<string, unknown>;
    expect(posted).toMatchObject({
      type: 'refresh_token.reuse_detected',
      grantId: alerts[0]?.grantId,
      clientId: 'default.graceless',
    });
    expect(body).not.toContain(String(stolen).split('.')[2]);
    const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['grantry-signature'])) ?? [];
    expect(signature).toBe(createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex'));
    expect(Math.abs(Date.now() / 1000 - Number(time))).toBeLessThan(60);
  });
});
