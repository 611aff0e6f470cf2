// What a client of a running grantry sees while a replica of Redis that has to acknowledge stands still, and when it goes on.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { isFollowed } from '../setup/replication.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import {
  type ClientAnswer,
  type ClientName,
  grantIdOf,
  type Replicas,
  redemption,
  refreshing,
  startReplicas,
} from './replicas.ts';

describeRedis('a client of grantry, while a replica of Redis that has to acknowledge stands still', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let grantry: Replicas;
  beforeAll(async () => {
    const settings = { 'repl-diskless-sync-delay': 0, 'repl-timeout': 3600 };
    primary = await startRedis({ settings });
    replica = await startRedis({ settings: { ...settings, replicaof: `127.0.0.1 ${primary.port}` } });
    await goesOn();
    grantry = await startReplicas(1, { GRANTRY_REDIS_URL: primary.url, GRANTRY_REDIS_WAIT: '1:300' });
  });
  afterEach(() => goesOn());
  afterAll(async () => {
    await grantry?.stop();
    await replica.stop();
    await primary.stop();
  });

  /** Lets the replica go on, and waits until it has what it missed. */
  async function goesOn(): Promise<void> {
    replica.resume();
    await until('the replica is in step', () => isFollowed(primary, 1));
  }

  async function ask(client: ClientName, form: Readonly<Record<string, string>>): Promise<ClientAnswer> {
    const [only] = grantry.all;
    if (only === undefined) throw new Error('no replica is there');
    return await only.post(client, '/token', form);
  }

  /** What it says at last: on a busy machine also a Redis that is well may not answer in time. */
  async function settled(client: ClientName, form: Readonly<Record<string, string>>): Promise<ClientAnswer> {
    let answer = await ask(client, form);
    await until('it is no longer 503', async () => {
      if (answer.status === 503) answer = await ask(client, form);
      return answer.status !== 503;
    });
    return answer;
  }

  async function codeOf(client: ClientName): Promise<string> {
    let code: string | undefined;
    await until('a code is issued', async () => {
      code = await grantry.all[0]?.issueCode(client);
      return code !== undefined;
    });
    return code ?? '';
  }

  async function tokenOf(client: ClientName): Promise<string> {
    let token: unknown;
    await until('a code is redeemed', async () => {
      const { body } = await ask(client, redemption(await codeOf(client)));
      token = body.refresh_token;
      return token !== undefined;
    });
    return String(token);
  }

  /**
   * Asks while the replica stands still, until it is refused for good: where no answer came in time, its outcome
   * is unknown, and `Retry-After` is sent.
   * @returns what was asked for
   */
  async function refusedForGood(client: ClientName, newForm: () => Promise<Readonly<Record<string, string>>>) {
    let form: Readonly<Record<string, string>> = {};
    await until('it is refused for good', async () => {
      await goesOn();
      form = await newForm();
      replica.pause();
      const { status, retryAfter } = await ask(client, form);
      expect(status).toBe(503);
      return retryAfter === undefined;
    });
    return form;
  }

  function alertsAbout(handle: unknown): readonly string[] {
    const lines = grantry.all.flatMap((each) => each.audits()).filter(({ grantId }) => grantId === grantIdOf(handle));
    return lines.map(({ event }) => event).filter((event) => /replayed|reuse_detected|state_lost/.test(event));
  }

  it('learns when to refresh again, and is given the one successor then', async () => {
    const token = await tokenOf('longgrace');
    replica.pause();
    for (let tries = 0; tries < 2; tries++) {
      expect(await ask('longgrace', refreshing(token))).toMatchObject({ status: 503, retryAfter: '1' });
    }
    await goesOn();
    const retries = [await settled('longgrace', refreshing(token)), await settled('longgrace', refreshing(token))];
    const successors = retries.map(({ body }) => String(body.refresh_token));
    expect(retries.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set(successors).size).toBe(1);
    const [successor] = successors;
    expect([token, successor].map((each) => each?.split('.')[3])).toEqual(['0', '1']);
    expect((await settled('longgrace', refreshing(successor))).status).toBe(200);
    expect(alertsAbout(token)).toEqual([]);
  });

  it('may refresh again also when its grace is long over, and no alert is raised', async () => {
    const token = await tokenOf('twosecondgrace');
    replica.pause();
    expect(await ask('twosecondgrace', refreshing(token))).toMatchObject({ status: 503, retryAfter: '1' });
    await sleep(3000);
    await goesOn();
    const { status, body } = await settled('twosecondgrace', refreshing(token));
    expect([status, String(body.refresh_token).split('.')[3]]).toEqual([200, '1']);
    expect((await settled('twosecondgrace', refreshing(body.refresh_token))).status).toBe(200);
    expect(alertsAbout(token)).toEqual([]);
  });

  it('is not asked to send a code again, which is void, and no alert is raised', async () => {
    const form = await refusedForGood('jwt', async () => redemption(await codeOf('jwt')));
    await goesOn();
    expect(await settled('jwt', form)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(alertsAbout(form.code)).toEqual([]);
  });

  it('is not asked to refresh again where it has no grace: its family is ended, and no alert is raised', async () => {
    const form = await refusedForGood('graceless', async () => refreshing(await tokenOf('graceless')));
    await goesOn();
    expect(await settled('graceless', form)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(alertsAbout(form.refresh_token)).toEqual([]);
  });
});
