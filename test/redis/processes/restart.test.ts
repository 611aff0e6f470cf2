// Everything is restarted at once: Redis, from its append-only file, and every replica of grantry (security row RF5). What was active
// stays active, and what was revoked or used stays so. Real processes, ended by SIGKILL.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
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

const INVALID_GRANT = { status: 400, body: { error: 'invalid_grant' } };

/** What a visit ends in. */
interface Visit {
  readonly client: ClientName;
  readonly code: string;
  readonly access: string;
  readonly refresh: string;
}

describeRedis('when Redis and every replica of grantry were restarted', () => {
  let redis: RedisServer;
  let replicas: Replicas;
  let turn = 0;
  /** Of before the restart. */
  let before: Readonly<
    Record<'active' | 'redeemed' | 'rotated' | 'refreshRevoked' | 'accessRevoked' | 'reused', Visit>
  >;
  let opaque: Visit;
  let rotatedTo: string;
  let unusedCode: string;
  beforeAll(async () => {
    redis = await startRedis({ persistent: true });
    replicas = await startReplicas(2, { GRANTRY_REDIS_URL: redis.url }, 60_000);
    before = {
      active: await visit('jwt'),
      redeemed: await visit('jwt'),
      rotated: await visit('jwt'),
      refreshRevoked: await visit('jwt'),
      accessRevoked: await visit('jwt'),
      reused: await visit('graceless'),
    };
    opaque = await visit('opaque');
    const next = await token('jwt', refreshing(before.rotated.refresh));
    rotatedTo = (await token('jwt', refreshing(next.refresh))).refresh;
    await token('graceless', refreshing(before.reused.refresh));
    expect(await ask('graceless', '/token', refreshing(before.reused.refresh))).toMatchObject(INVALID_GRANT);
    for (const revoked of [before.refreshRevoked.refresh, before.accessRevoked.access]) {
      expect(await ask('jwt', '/revoke', { token: revoked })).toMatchObject({ status: 200 });
    }
    unusedCode = await codeOf('jwt');
    await until('every alert is delivered', async () => String(await redis.command('KEYS', '*:outbox*')) === '');

    await Promise.all(replicas.all.map((replica) => replica.kill()));
    await redis.kill();
    await redis.start();
    for (const replica of replicas.all) await replica.start();
  }, 120_000);
  afterAll(async () => {
    await replicas?.stop();
    await redis.stop();
  });

  /** What the replicas, by turns, say at last: on a busy machine, or at a start, one may answer 503. */
  async function ask(client: ClientName, path: string, form: Readonly<Record<string, string>>): Promise<ClientAnswer> {
    let answer: ClientAnswer = { status: 503, body: {} };
    await until('it is no longer 503', async () => {
      const replica = replicas.all[turn++ % replicas.all.length];
      answer = (await replica?.post(client, path, form)) ?? answer;
      return answer.status !== 503;
    });
    return answer;
  }

  async function token(client: ClientName, form: Readonly<Record<string, string>>) {
    const { status, body } = await ask(client, '/token', form);
    expect(status).toBe(200);
    return { access: String(body.access_token), refresh: String(body.refresh_token) };
  }

  async function codeOf(client: ClientName): Promise<string> {
    const code = await replicas.all[0]?.issueCode(client);
    if (code === undefined) throw new Error('no code was issued');
    return code;
  }

  async function visit(client: ClientName): Promise<Visit> {
    const code = await codeOf(client);
    return { client, code, ...(await token(client, redemption(code))) };
  }

  async function expectRevoked({ client, access }: Visit, ...refreshTokens: readonly string[]): Promise<void> {
    for (const refresh of refreshTokens) {
      expect(await ask(client, '/token', refreshing(refresh))).toMatchObject(INVALID_GRANT);
    }
    expect(await ask(client, '/introspect', { token: access })).toEqual({ status: 200, body: { active: false } });
  }

  /** The audit lines of one event about the grant of a visit, of all replicas and all their lives. */
  function auditsOf(event: string, { refresh }: Visit): number {
    const lines = replicas.all.flatMap((replica) => replica.audits());
    return lines.filter((line) => line.event === event && line.grantId === grantIdOf(refresh)).length;
  }

  it('a refresh token that was good is, and so is what it is renewed by', async () => {
    const { client, access, refresh } = before.active;
    expect(await ask(client, '/introspect', { token: access })).toMatchObject({ status: 200, body: { active: true } });
    const next = await token(client, refreshing(refresh));
    await token(client, refreshing(next.refresh));
  });

  it('an opaque access token is still known', async () => {
    const seen = await ask(opaque.client, '/introspect', { token: opaque.access });
    expect(seen).toMatchObject({ status: 200, body: { active: true } });
  });

  it('a code that was redeemed is a replay, which ends what it gave', async () => {
    const { client, code, refresh } = before.redeemed;
    expect(await ask(client, '/token', redemption(code))).toMatchObject(INVALID_GRANT);
    await expectRevoked(before.redeemed, refresh);
    await until('there is an alert', () => auditsOf('authorization_code.replayed', before.redeemed) > 0);
    expect(auditsOf('authorization_code.replayed', before.redeemed)).toBe(1);
  });

  it('a code that was not redeemed is gone', async () => {
    expect(await ask('jwt', '/token', redemption(unusedCode))).toMatchObject(INVALID_GRANT);
  });

  it('a refresh token that was rotated is reuse, which ends the family', async () => {
    const { client, refresh } = before.rotated;
    expect(await ask(client, '/token', refreshing(refresh))).toMatchObject(INVALID_GRANT);
    await expectRevoked(before.rotated, rotatedTo);
    await until('there is an alert', () => auditsOf('refresh_token.reuse_detected', before.rotated) > 0);
    expect(auditsOf('refresh_token.reuse_detected', before.rotated)).toBe(1);
  });

  it('a family that was ended by reuse is revoked, and raises no further alert', async () => {
    await expectRevoked(before.reused, before.reused.refresh);
    expect(auditsOf('refresh_token.reuse_detected', before.reused)).toBe(1);
  });

  it('a refresh token that was revoked stays revoked, and an access token that was does, alone', async () => {
    await expectRevoked(before.refreshRevoked, before.refreshRevoked.refresh);
    await expectRevoked(before.accessRevoked);
    await token('jwt', refreshing(before.accessRevoked.refresh));
  });
});
