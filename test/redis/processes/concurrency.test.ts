// The same code or refresh token at three replicas at the same moment (security rows K1, K2, RF2, RF3): real processes,
// one Redis. On a busy machine a replica may answer 503 instead of waiting for Redis; a client asks again then, after
// `Retry-After`.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
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

describeRedis('three replicas on one Redis', () => {
  let redis: RedisServer;
  let replicas: Replicas;
  beforeAll(async () => {
    redis = await startRedis();
    replicas = await startReplicas(3, { GRANTRY_REDIS_URL: redis.url }, 60_000);
  });
  afterAll(async () => {
    await replicas?.stop();
    await redis.stop();
  });

  async function codeOf(client: ClientName, at = 0): Promise<string> {
    const code = await replicas.all[at]?.issueCode(client);
    if (code === undefined) throw new Error('no code was issued');
    return code;
  }

  /** What one replica says at last. */
  async function answered(replica: Replica, client: ClientName, path: string, form: Readonly<Record<string, string>>) {
    let answer = await replica.post(client, path, form);
    await until('it is no longer 503', async () => {
      if (answer.status === 503) answer = await replica.post(client, path, form);
      return answer.status !== 503;
    });
    return answer;
  }

  /** The same request so many times at once, by turns at each replica. */
  function atOnce(times: number, client: ClientName, form: Readonly<Record<string, string>>): Promise<ClientAnswer[]> {
    const { all } = replicas;
    const replicaOf = (index: number) => all[index % all.length] as Replica;
    return Promise.all(Array.from({ length: times }, (_, index) => answered(replicaOf(index), client, '/token', form)));
  }

  /**
   * Presents what may be used once so many times at once. Never more than one wins; none only when the winner's answer was
   * lost in a 503, and then there is another race, for something else.
   */
  async function winnerOf(times: number, client: ClientName, newForm: () => Promise<Readonly<Record<string, string>>>) {
    for (let race = 1; race <= MOST_RACES; race++) {
      const answers = await atOnce(times, client, await newForm());
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners.length).toBeLessThanOrEqual(1);
      expect(answers.filter((answer) => isInvalidGrant(answer))).toHaveLength(times - winners.length);
      if (winners[0] !== undefined) return winners[0].body;
    }
    throw new Error(`no request won in ${MOST_RACES} races`);
  }

  async function tokensOf(client: ClientName): Promise<ClientAnswer['body']> {
    return await winnerOf(1, client, async () => redemption(await codeOf(client)));
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

  async function expectRevokedEverywhere(client: ClientName, { access_token, refresh_token }: ClientAnswer['body']) {
    for (const replica of replicas.all) {
      for (const token of [access_token, refresh_token]) {
        const introspected = await answered(replica, client, '/introspect', { token: String(token) });
        expect(introspected).toEqual({ status: 200, body: { active: false } });
      }
      expect(await answered(replica, client, '/token', refreshing(refresh_token))).toMatchObject(INVALID_GRANT);
    }
  }

  for (const client of ['jwt', 'opaque'] as const) {
    it(`give one of 400 redemptions tokens, which are revoked afterwards, and raise one alert: ${client}`, async () => {
      const won = await winnerOf(400, client, async () => redemption(await codeOf(client, 1)));
      await expectRevokedEverywhere(client, won);
      expect(await alertsOf('authorization_code.replayed', won)).toBe(1);
    });
  }

  it('give 200 refreshes of one token the same successor, which is good at each of them', async () => {
    const { refresh_token } = await tokensOf('longgrace');
    const answers = await atOnce(200, 'longgrace', refreshing(refresh_token));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const successors = new Set(answers.map(({ body }) => body.refresh_token));
    expect(successors.size).toBe(1);
    for (const replica of replicas.all) {
      const again = await answered(replica, 'longgrace', '/token', refreshing([...successors][0]));
      expect(again.status).toBe(200);
    }
  });

  it('let one of 200 refreshes win where there is no grace, and kill what it won with one alert', async () => {
    const won = await winnerOf(200, 'graceless', async () => refreshing((await tokensOf('graceless')).refresh_token));
    await expectRevokedEverywhere('graceless', won);
    expect(await alertsOf('refresh_token.reuse_detected', won)).toBe(1);
  });

  it('kill a family everywhere once a token is used again after the grace, however often, with one alert', async () => {
    let first: ClientAnswer['body'] = {};
    const won = await winnerOf(1, 'shortgrace', async () => {
      first = await tokensOf('shortgrace');
      return refreshing(first.refresh_token);
    });
    await sleep(1100);
    const reuses = await atOnce(30, 'shortgrace', refreshing(first.refresh_token));
    expect(reuses.filter((answer) => isInvalidGrant(answer))).toHaveLength(30);
    await expectRevokedEverywhere('shortgrace', won);
    expect(await alertsOf('refresh_token.reuse_detected', won)).toBe(1);
  });

  it('have raised one alert for each of these families, also after the alerts that wait were swept up', async () => {
    await sleep(SWEPT);
    const raised = alerts().map(({ event, grantId }) => `${event} ${grantId}`);
    expect(raised.length).toBeGreaterThanOrEqual(4);
    expect(new Set(raised).size).toBe(raised.length);
  });
});

const MOST_RACES = 5;

/** By when every replica has looked for alerts that wait, in milliseconds. */
const SWEPT = 16_000;

const ALERTS = ['authorization_code.replayed', 'refresh_token.reuse_detected', 'state_lost'];
const INVALID_GRANT = { status: 400, body: { error: 'invalid_grant' } };

function isInvalidGrant({ status, body }: ClientAnswer): boolean {
  return status === INVALID_GRANT.status && body.error === INVALID_GRANT.body.error;
}
