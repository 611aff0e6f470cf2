// What grants in Redis do beyond the contract of every store: fail-over, replicas that do not acknowledge, long values, a full
// memory.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection, RedisConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { UnansweredError } from '../../../src/redis/link/redis-errors.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  accessRequest,
  digest,
  issued,
  MINUTE,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
  SHARD,
  sampleGrant,
} from '../../contracts/sample-grants.ts';
import { methodsOf } from '../setup/connect.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { alertsAbout } from '../setup/waiting-alerts.ts';

const PREFIX = 'grantry:';
const keys = new RedisKeys(PREFIX);
const KEY = `jkt.${digest('key')}` as const;
const OTHER_KEY = `jkt.${digest('another key')}` as const;

describeRedis('grants in Redis', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server);
    stores = redisStores({ connection, keys });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  const alerts = (grant: Grant) => alertsAbout(grant, { connection, keys });

  describe('after the server has begun another history', () => {
    const failOver = () => server.command('DEBUG', 'CHANGE-REPL-ID');

    it('answers gone for a code issued before', async () => {
      const grant = await issued(stores.grants);
      await failOver();
      expect(await stores.grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    });

    it('redeems a code issued since', async () => {
      await failOver();
      const grant = await issued(stores.grants);
      expect(await stores.grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
    });

    it('still refreshes, and still knows the replay of a code redeemed before', async () => {
      const grant = await redeemed(stores.grants);
      await failOver();
      expect(await stores.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
      expect(await stores.grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'replayed' });
    });

    it.each([
      ['whose code was bound to the key', { confirmation: KEY }],
      ['whose key was lost with the redemption', {}],
    ] as const)('binds the refresh token of a public client to its key again, %s', async (_, different) => {
      const grant = await issued(stores.grants, different);
      await failOver();
      const refresh = (generation: number, confirmation?: typeof KEY) =>
        stores.grants.rotate(rotateRequest(grant, generation, { isPublic: true, confirmation }));
      expect(await refresh(0, KEY)).toMatchObject({ outcome: 'healed', generation: 1 });
      expect(await refresh(1, OTHER_KEY)).toEqual({ outcome: 'bad_proof' });
      expect(await refresh(1)).toEqual({ outcome: 'bad_proof' });
      expect(await refresh(1, KEY)).toMatchObject({ outcome: 'rotated', generation: 2 });
    });

    it('ends what a code has given whose redemption was lost with the old history, when it is sent again', async () => {
      const grant = await issued(stores.grants);
      await failOver();
      const wrong = redeemRequest(grant, { verifierChallenge: digest('another verifier') });
      expect(await stores.grants.redeem(wrong)).toEqual({ outcome: 'gone' });
      expect(await stores.grants.read(grant.grantId)).toMatchObject({ revoked: false });
      expect(await stores.grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      expect(await stores.grants.read(grant.grantId)).toMatchObject({ revoked: true });
    });
  });

  it('knows whose a grant is, whatever the person is called', async () => {
    const plain = [1, 63, 64, 126, 127, 315, 316, 500].map((length) => 'x'.repeat(length));
    // A piece ends within a character.
    for (const subject of [...plain, `${'x'.repeat(62)}é`, 'é'.repeat(40), 'é😀']) {
      const grant = await redeemed(stores.grants, { subject });
      // One that has not cached the subject.
      const { grants } = redisStores({ connection, keys });
      expect(await grants.subjectOf(grant.grantId)).toBe(subject);
    }
  });

  describe('when too few replicas acknowledge', () => {
    let acknowledged: boolean;
    let careful: Stores;
    beforeEach(() => {
      acknowledged = false;
      const unacknowledged: RedisConnection = {
        allowsCrossSlot: connection.allowsCrossSlot,
        run: (action, deadline) => connection.run(action, deadline),
        runDurably: async (action, deadline) => ({ reply: await connection.run(action, deadline), acknowledged }),
        recordForReplay: (action) => connection.recordForReplay(action),
      };
      careful = redisStores({ connection: unacknowledged, keys });
    });

    const refusal = async (asked: Promise<unknown>) => {
      const error = await asked.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      return error instanceof StoreUnavailableError ? { retriable: error.retriable } : error;
    };

    it('voids the code: no retry can succeed, and nothing is raised', async () => {
      const grant = await issued(careful.grants);
      expect(await refusal(careful.grants.redeem(redeemRequest(grant)))).toEqual({ retriable: false });
      acknowledged = true;
      expect(await careful.grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      expect(await careful.grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'gone' });
    });

    it('refuses a refresh, which then has the same successor when it is repeated', async () => {
      acknowledged = true;
      const grant = await redeemed(careful.grants);
      acknowledged = false;
      expect(await refusal(careful.grants.rotate(rotateRequest(grant, 0)))).toEqual({ retriable: true });
      acknowledged = true;
      expect(await careful.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated', generation: 1 });
    });

    it.each([0, 1000])(
      'ends the family silently where a grace of %i ms would be over before the retry',
      async (reuseGrace) => {
        acknowledged = true;
        const grant = await redeemed(careful.grants);
        const refreshed = () => careful.grants.rotate(rotateRequest(grant, 0, { reuseGrace }));
        acknowledged = false;
        expect(await refusal(refreshed())).toEqual({ retriable: false });
        acknowledged = true;
        expect(await refreshed()).toEqual({ outcome: 'gone' });
        expect(await careful.grants.read(grant.grantId)).toMatchObject({ revoked: true });
        expect(await alerts(grant)).toEqual([]);
      },
    );

    it('refuses a refresh that rotates nothing, which needs no grace to be answered again', async () => {
      acknowledged = true;
      const grant = await redeemed(careful.grants);
      const refreshed = () => careful.grants.rotate(rotateRequest(grant, 0, { rotation: 'Never', reuseGrace: 0 }));
      acknowledged = false;
      expect(await refusal(refreshed())).toEqual({ retriable: true });
      acknowledged = true;
      expect(await refreshed()).toMatchObject({ outcome: 'rotated', generation: 0 });
    });

    it('answers what is refused anyway', async () => {
      expect(await careful.grants.redeem(redeemRequest(sampleGrant()))).toEqual({ outcome: 'gone' });
      expect(await careful.grants.rotate(rotateRequest(sampleGrant(), 0))).toEqual({ outcome: 'gone' });
    });

    it('does not call a kill switch thrown', async () => {
      const { grants, accessTokens, revokedTokens, watermarks } = careful;
      const grant = await issued(grants);
      const { grantId, clientUid, clientId, subject, scope } = grant;
      const issuedAtSeconds = Math.floor(Date.now() / 1000);
      const tokenId = `${grantId.slice(0, 3)}.${digest(grantId)}`;
      const times = { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + 60, authTime: undefined };
      await accessTokens.write({ tokenId, ...times, grantId, clientUid, clientId, subject, scope, audience: 'urn:a' });
      const switches = [
        grants.revoke(grantId),
        accessTokens.revoke(tokenId),
        revokedTokens.mark('jti', Date.now() / 1000 + 60),
        watermarks.raise({ kind: 'user', subject: 'usr_alice' }, Date.now()),
        watermarks.raise({ kind: 'global' }, 1),
      ];
      const refusals = await Promise.all(switches.map(refusal));
      expect(refusals).toEqual(switches.map(() => ({ retriable: true })));
    });
  });

  describe('when an answer is lost', () => {
    interface Losing {
      readonly runs: boolean;
      readonly cause: unknown;
      /** Is given what has not run, to run it late. */
      readonly late?: (run: () => Promise<unknown>) => void;
    }
    /** Loses the answer of the next redemption or rotation, which has run or not. */
    function losing({ runs, cause, late = () => {} }: Losing): Stores {
      let lost = false;
      return redisStores({
        keys,
        connection: {
          allowsCrossSlot: connection.allowsCrossSlot,
          run: (action, deadline) => connection.run(action, deadline),
          async runDurably(action, deadline) {
            if (lost) return connection.runDurably(action, deadline);
            lost = true;
            const run = () => connection.run(action, deadline);
            if (runs) await run();
            else late(run);
            throw new StoreUnavailableError(action.script.name, cause);
          },
          recordForReplay: (action) => connection.recordForReplay(action),
        },
      });
    }
    const dropped = new Error('Connection is closed.');

    it.each([
      ['the connection broke', dropped],
      ['it took too long', new UnansweredError('timeout')],
    ])('ends what was redeemed, so that the code is gone and no replay is raised: %s', async (_how, cause) => {
      const { grants } = losing({ runs: true, cause });
      const grant = await issued(grants);
      await expect(grants.redeem(redeemRequest(grant))).rejects.toThrow(StoreUnavailableError);
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      expect(await grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'gone' });
      expect(await alerts(grant)).toEqual([]);
    });

    it('ends a family that was rotated without a grace, so that no reuse is raised', async () => {
      const { grants } = losing({ runs: true, cause: dropped });
      const grant = await redeemed(stores.grants);
      const refreshed = () => grants.rotate(rotateRequest(grant, 0, { reuseGrace: 0 }));
      await expect(refreshed()).rejects.toThrow(StoreUnavailableError);
      expect(await refreshed()).toEqual({ outcome: 'gone' });
      expect(await alerts(grant)).toEqual([]);
    });

    it('leaves a family that was not rotated as it was: the next try is good, and the one given up never', async () => {
      const grant = await redeemed(stores.grants);
      let arrive = async (): Promise<unknown> => undefined;
      const { grants } = losing({
        runs: false,
        cause: dropped,
        late: (run) => {
          arrive = run;
        },
      });
      const refreshed = (of: Stores['grants'], generation: number) =>
        of.rotate(rotateRequest(grant, generation, { reuseGrace: 0 }));
      await expect(refreshed(grants, 0)).rejects.toThrow(StoreUnavailableError);
      expect(await refreshed(stores.grants, 0)).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await arrive()).toBe('["gone"]');
      expect(await refreshed(stores.grants, 1)).toMatchObject({ outcome: 'rotated', generation: 2 });
    });

    it.each([
      ['before the next try', 0],
      ['after the next try', 1],
    ])('answers gone to the try that was given up and arrives only then: %s', async (_when, tries) => {
      let arrive = async (): Promise<unknown> => undefined;
      const { grants } = losing({
        runs: false,
        cause: new UnansweredError('timeout'),
        late: (run) => {
          arrive = run;
        },
      });
      const grant = await issued(stores.grants);
      await expect(grants.redeem(redeemRequest(grant))).rejects.toThrow();
      const next = () => stores.grants.redeem(redeemRequest(grant));
      const answers = [];
      if (tries > 0) answers.push(await next());
      expect(await arrive()).toBe('["gone"]');
      if (tries === 0) answers.push(await next());
      expect(answers).toMatchObject([{ outcome: 'redeemed' }]);
      expect(await stores.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
      expect(await alerts(grant)).toEqual([]);
    });

    it('leaves a code alone that was tried with a wrong verifier: the right one still redeems it', async () => {
      const { grants } = losing({ runs: true, cause: dropped });
      const grant = await issued(grants);
      const wrong = redeemRequest(grant, { verifierChallenge: digest('another verifier') });
      await expect(grants.redeem(wrong)).rejects.toThrow(StoreUnavailableError);
      expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
    });

    it('leaves a code that was not redeemed as it was: now and when revocations are applied again', async () => {
      const { grants } = losing({ runs: false, cause: dropped });
      const grant = await issued(grants);
      await expect(grants.redeem(redeemRequest(grant))).rejects.toThrow(StoreUnavailableError);
      expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
      await connection.replayRevocations('all');
      expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    });
  });

  describe('when the kill switches of a Cluster cannot be read afterwards', () => {
    let isAway: boolean;
    let grants: Stores['grants'];
    beforeEach(() => {
      isAway = false;
      ({ grants } = redisStores({
        keys,
        connection: {
          allowsCrossSlot: false,
          async run(action, deadline) {
            if (isAway && action.script.name.startsWith('watermarkRead'))
              throw new StoreUnavailableError(action.script.name);
            return await connection.run(action, deadline);
          },
          async runDurably(action, deadline) {
            const answer = await connection.runDurably(action, deadline);
            isAway = true;
            return answer;
          },
          recordForReplay: (action) => connection.recordForReplay(action),
        },
      }));
    });

    it('voids the code: no retry can succeed, and no replay is raised', async () => {
      const grant = await issued(grants);
      const request = () => redeemRequest(grant);
      await expect(grants.redeem(request())).rejects.toMatchObject({ retriable: false });
      isAway = false;
      expect(await grants.redeem(request())).toEqual({ outcome: 'gone' });
      expect(await alerts(grant)).toEqual([]);
    });

    it('refuses a refresh, which may be repeated; without one it ends the family, and no reuse is raised', async () => {
      const [healed, dead] = [await redeemed(stores.grants), await redeemed(stores.grants)];
      const refreshed = (grant: Grant, reuseGrace: number) => {
        isAway = false;
        return grants.rotate(rotateRequest(grant, 0, { reuseGrace }));
      };
      await expect(refreshed(healed, 10_000)).rejects.toMatchObject({ retriable: true });
      await expect(refreshed(dead, 0)).rejects.toMatchObject({ retriable: false });
      expect(await stores.grants.rotate(rotateRequest(healed, 0))).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await stores.grants.rotate(rotateRequest(dead, 0, { reuseGrace: 0 }))).toEqual({ outcome: 'gone' });
      expect(await alerts(dead)).toEqual([]);
    });
  });

  it('has no status while the kill switches of its client in another part of a Cluster cannot be read', async () => {
    const { grants } = redisStores({
      keys,
      connection: {
        ...methodsOf(connection),
        allowsCrossSlot: false,
        run: async (action, deadline) => {
          if (action.script.name === 'watermarkReadClient') throw new StoreUnavailableError(action.script.name);
          return await connection.run(action, deadline);
        },
      },
    });
    const grant = await redeemed(stores.grants);
    await expect(grants.status(grant.grantId, grant)).rejects.toThrow(StoreUnavailableError);
  });

  it('keeps values of any length and any letters as they were', async () => {
    const grant = sampleGrant({
      clientUid: `uid-${'ü'.repeat(100)}`,
      clientId: 'c'.repeat(63),
      subject: 's'.repeat(64),
      sessionId: '',
      scope: Array.from({ length: 40 }, (_, index) => `https://shop.example/scope/${index}`),
      audiences: ['https://api.example/ä"\\', `https://api.example/${'x'.repeat(2000)}`],
      redirectUri: `https://shop.example/cb?${'r'.repeat(126 - 24)}`,
    });
    await stores.grants.issue(grant, digest('secret'), MINUTE, MINUTE);
    expect((await stores.grants.read(grant.grantId))?.grant).toMatchObject(grant);
    const { scope: allowedScopes, audiences: allowedAudiences } = grant;
    const access = accessRequest({ allowedScopes, allowedAudiences });
    expect(await stores.grants.redeem(redeemRequest(grant, { access }))).toMatchObject({
      outcome: 'redeemed',
      grant,
      scope: grant.scope,
    });
  });

  it('keeps a grant in the compact encoding, with long addresses too', async () => {
    const grant = await rotatedTo(stores.grants, 1);
    expect(await server.command('OBJECT', 'ENCODING', keys.grant(grant.grantId))).toBe('listpack');
    const long = await issued(stores.grants, { redirectUri: `https://shop.example/${'x'.repeat(500)}` });
    expect(await server.command('OBJECT', 'ENCODING', keys.grant(long.grantId))).toBe('listpack');
  });

  it('lets Redis drop a grant once nothing issued under it can be alive, and not before', async () => {
    const timeToLive = async (grantId: string) => Number(await server.command('PTTL', keys.grant(grantId)));
    const grant = await issued(stores.grants);
    expect(await timeToLive(grant.grantId)).toBeGreaterThan(MINUTE - 5000);
    expect(await timeToLive(grant.grantId)).toBeLessThanOrEqual(MINUTE);
    const request = redeemRequest(grant);
    await stores.grants.redeem(request);
    expect(await timeToLive(grant.grantId)).toBeGreaterThan(request.retention - 5000);
    const longer = rotateRequest(grant, 0, { retention: 2 * request.retention });
    await stores.grants.rotate(longer);
    expect(await timeToLive(grant.grantId)).toBeGreaterThan(longer.retention - 5000);
    await stores.grants.revoke(grant.grantId);
    expect(await timeToLive(grant.grantId)).toBeGreaterThan(longer.retention - 5000);
  });

  describe('when the memory is full', () => {
    const fill = () => server.command('CONFIG', 'SET', 'maxmemory', '1');
    const empty = () => server.command('CONFIG', 'SET', 'maxmemory', '0');

    it('refuses what would need more, forgets nothing and consumes nothing', async () => {
      const [code, family] = [await issued(stores.grants), await redeemed(stores.grants)];
      const until = Date.now() + MINUTE;
      expect(await stores.replays.claim('assertion', 'one', until)).toBe('fresh');
      await fill();
      try {
        const tokenId = `${SHARD}.${digest('token')}`;
        const seconds = Math.floor(Date.now() / 1000);
        const accessToken = { tokenId, issuedAtSeconds: seconds, expiresAtSeconds: seconds + 60 };
        await expect(issued(stores.grants)).rejects.toThrow(StoreUnavailableError);
        await expect(stores.grants.redeem(redeemRequest(code, { accessToken }))).rejects.toThrow(StoreUnavailableError);
        const rotation = rotateRequest(family, 0, { accessToken });
        await expect(stores.grants.rotate(rotation)).rejects.toThrow(StoreUnavailableError);
        await expect(stores.replays.claim('assertion', 'two', until)).rejects.toThrow(StoreUnavailableError);
        expect(await stores.replays.claim('assertion', 'one', until)).toBe('seen');
      } finally {
        await empty();
      }
      expect(await stores.grants.redeem(redeemRequest(code))).toMatchObject({ outcome: 'redeemed' });
      expect(await stores.grants.rotate(rotateRequest(family, 0, { reuseGrace: 0 }))).toMatchObject({
        outcome: 'rotated',
        generation: 1,
      });
    });
  });
});
