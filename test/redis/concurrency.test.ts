// The same code or refresh token at three replicas at the same moment (security rows K1, K2, RF2, RF3): real processes, one
// Redis.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../until.ts';
import {
  type AuditLine,
  type ClientAnswer,
  type ClientName,
  grantIdOf,
  type Replica,
  type Replicas,
  redemption,
  refreshing,
  startReplicas,
} from './replicas.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

describeRedis('three replicas on one Redis', () => {
  let redis: RedisServer;
  let replicas: Replicas;
  beforeAll(async () => {
    redis = await startRedis();
    replicas = await startReplicas(3, { GRANTRY_REDIS_URL: redis.url });
  }, 60_000);
  afterAll(async () => {
    await replicas?.stop();
    await redis.stop();
  });

  async function codeOf(client: ClientName, at = 0): Promise<string> {
    const code = await replicas.all[at]?.issueCode(client);
    if (code === undefined) throw new Error('no code was issued');
    return code;
  }

  /** The same request so many times at once, by turns at each replica. */
  function atOnce(times: number, client: ClientName, form: Readonly<Record<string, string>>): Promise<ClientAnswer[]> {
    const { all } = replicas;
    const replicaOf = (index: number) => all[index % all.length] as Replica;
    return Promise.all(Array.from({ length: times }, (_, index) => replicaOf(index).post(client, '/token', form)));
  }

  async function tokensOf(client: ClientName): Promise<ClientAnswer['body']> {
    const [answer] = await atOnce(1, client, redemption(await codeOf(client)));
    expect(answer?.status).toBe(200);
    return answer?.body ?? {};
  }

  function alerts(): readonly AuditLine[] {
    const lines = replicas.all.flatMap((each) => each.audits());
    return lines.filter(({ event }) => ALERTS.includes(event));
  }

  /** How many audit lines of this kind all replicas have written about the grant of a refresh token, once there is one. */
  async function alertsOf(event: string, { refresh_token }: ClientAnswer['body']): Promise<number> {
    const grantId = grantIdOf(refresh_token);
    const count = () => alerts().filter((line) => line.event === event && line.grantId === grantId).length;
    await until(`an audit line ${event}`, () => count() > 0);
    return count();
  }

  async function expectDeadEverywhere(client: ClientName, { access_token, refresh_token }: ClientAnswer['body']) {
    for (const replica of replicas.all) {
      for (const token of [access_token, refresh_token]) {
        const introspected = await replica.post(client, '/introspect', { token: String(token) });
        expect(introspected).toEqual({ status: 200, body: { active: false } });
      }
      expect(await replica.post(client, '/token', refreshing(refresh_token))).toMatchObject(INVALID_GRANT);
    }
  }

  for (const client of ['jwt', 'opaque'] as const) {
    it(`give one of 400 redemptions tokens, which are dead afterwards, and raise one alert: ${client}`, async () => {
      const answers = await atOnce(400, client, redemption(await codeOf(client, 1)));
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners).toHaveLength(1);
      expect(answers.filter((answer) => isInvalidGrant(answer))).toHaveLength(399);
      const won = winners[0]?.body ?? {};
      await expectDeadEverywhere(client, won);
      expect(await alertsOf('authorization_code.replayed', won)).toBe(1);
    });
  }

  it('give 200 refreshes of one token the same successor, which is good at each of them', async () => {
    const { refresh_token } = await tokensOf('jwt');
    const answers = await atOnce(200, 'jwt', refreshing(refresh_token));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const successors = new Set(answers.map(({ body }) => body.refresh_token));
    expect(successors.size).toBe(1);
    for (const replica of replicas.all) {
      const again = await replica.post('jwt', '/token', refreshing([...successors][0]));
      expect(again.status).toBe(200);
    }
  });

  it('let one of 200 refreshes win where there is no grace, and kill what it won with one alert', async () => {
    const { refresh_token } = await tokensOf('graceless');
    const answers = await atOnce(200, 'graceless', refreshing(refresh_token));
    const winners = answers.filter(({ status }) => status === 200);
    expect(winners).toHaveLength(1);
    expect(answers.filter((answer) => isInvalidGrant(answer))).toHaveLength(199);
    const won = winners[0]?.body ?? {};
    await expectDeadEverywhere('graceless', won);
    expect(await alertsOf('refresh_token.reuse_detected', won)).toBe(1);
  });

  it('kill a family everywhere once a token is used again after the grace, however often, with one alert', async () => {
    const first = await tokensOf('shortgrace');
    const [second] = await atOnce(1, 'shortgrace', refreshing(first.refresh_token));
    expect(second?.status).toBe(200);
    await sleep(1100);
    const reuses = await atOnce(30, 'shortgrace', refreshing(first.refresh_token));
    expect(reuses.filter((answer) => isInvalidGrant(answer))).toHaveLength(30);
    const won = second?.body ?? {};
    await expectDeadEverywhere('shortgrace', won);
    expect(await alertsOf('refresh_token.reuse_detected', won)).toBe(1);
  });

  it('have raised one alert for each of these families, also after the alerts that wait were swept up', async () => {
    await sleep(SWEPT);
    const raised = alerts().map(({ event, grantId }) => `${event} ${grantId}`);
    expect(raised).toHaveLength(4);
    expect(new Set(raised).size).toBe(4);
  }, 30_000);
});

/** By when every replica has looked for alerts that wait, in milliseconds. */
const SWEPT = 16_000;

const ALERTS = ['authorization_code.replayed', 'refresh_token.reuse_detected', 'state_lost'];
const INVALID_GRANT = { status: 400, body: { error: 'invalid_grant' } };

function isInvalidGrant({ status, body }: ClientAnswer): boolean {
  return status === INVALID_GRANT.status && body.error === INVALID_GRANT.body.error;
}
