// What the stores do while the memory of Redis is full (`maxmemory` with `noeviction`): what ends something is done, what
// reads is answered, all else is refused, and nothing is lost by it.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Interaction } from '../../../src/oauth/ports/login-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { ShardMarkers } from '../../../src/redis/data-loss/shard-markers.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  CODE_LIFETIME,
  digest,
  issued,
  MINUTE,
  RETENTION,
  redeemed,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  sampleSession,
  signedIn,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { connectTo } from '../setup/connect.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

interface Deployment {
  readonly url: string;
  /** Every server that may be a primary. */
  readonly servers: readonly RedisServer[];
  stop(): Promise<void>;
}

const DEPLOYMENTS: Readonly<Record<string, () => Promise<Deployment>>> = {
  'one Redis server': async () => {
    const server = await startRedis();
    return { url: server.url, servers: [server], stop: () => server.stop() };
  },
  'a Redis Cluster': async () => {
    const { url, primaries, stop } = await startCluster();
    return { url, servers: primaries, stop };
  },
  'Redis under Sentinels': startReplicated,
};

const SUBJECT = 'usr_alice';
const CLIENT = 'uid-of-shop';
const CONSENT = new Map([['https://api.example', ['read']]]);
const SOON = Math.floor(Date.now() / 1000) + 600;

function interaction(): Omit<Interaction, 'decision'> {
  const { clientUid, clientId, redirectUri, scope, audiences, codeChallenge = '' } = sampleGrant();
  const request = { clientUid, clientId, redirectUri, scope, audiences, codeChallenge, state: undefined };
  return { interactionId: digest(uniqueId()), sessionId: 'session of alice', subject: SUBJECT, authTime: 1, request };
}

function accessToken() {
  return {
    tokenId: `007.${digest(uniqueId())}`,
    issuedAtSeconds: SOON - 600,
    expiresAtSeconds: SOON,
    clientUid: CLIENT,
    clientId: 'default.shop',
    subject: 'default.shop',
    scope: ['read'],
    audience: 'https://api.example',
    grantId: undefined,
    authTime: undefined,
  };
}

for (const [name, start] of Object.entries(DEPLOYMENTS)) {
  describeRedis(`while the memory of ${name} is full`, () => {
    let deployment: Deployment;
    let connection: ManagedConnection;
    beforeAll(async () => {
      deployment = await start();
      connection = await connectTo(deployment);
    });
    beforeEach(() => allow(0));
    afterEach(() => allow(0));
    afterAll(async () => {
      await connection.close();
      await deployment.stop();
    });

    const keys = new RedisKeys('full:');
    const stores = () => redisStores({ connection, keys });

    /** @param bytes 0 for no limit */
    async function allow(bytes: number): Promise<void> {
      await Promise.all(deployment.servers.map((each) => each.command('CONFIG', 'SET', 'maxmemory', bytes)));
    }

    const refused = (work: Promise<unknown>) =>
      expect(work).rejects.toMatchObject({
        constructor: StoreUnavailableError,
        reason: 'out_of_memory',
        retriable: true,
      });

    it('grants and tokens are revoked', async () => {
      const { grants, accessTokens, revokedTokens } = stores();
      const [code, family, opaque] = [await issued(grants), await redeemed(grants), accessToken()];
      await accessTokens.write(opaque);
      await allow(1);
      await grants.revoke(code.grantId);
      await grants.revoke(family.grantId);
      await accessTokens.revoke(opaque.tokenId);
      await accessTokens.revoke(`007.${digest('a made-up token')}`);
      await revokedTokens.mark('a jti', SOON);
      expect(await grants.read(family.grantId)).toMatchObject({ revoked: true });
      expect(await accessTokens.read(opaque.tokenId)).toBeUndefined();
      expect(await revokedTokens.has('a jti')).toBe(true);
      await allow(0);
      expect(await grants.redeem(redeemRequest(code))).toEqual({ outcome: 'gone' });
      expect(await grants.rotate(rotateRequest(family, 0))).toEqual({ outcome: 'gone' });
    });

    it('each kill switch takes effect, again after a fail-over too', async () => {
      const { watermarks } = stores();
      await allow(1);
      const time = Date.now() - 60_000;
      await watermarks.raise({ kind: 'client', clientUid: 'a client' }, time + 1);
      await watermarks.raise({ kind: 'user', subject: 'usr_bob' }, time + 2);
      await watermarks.raise({ kind: 'consent', clientUid: 'another client', subject: 'usr_carol' }, time + 3);
      expect(await watermarks.read('a client', undefined)).toBe(time + 1);
      expect(await watermarks.read('another client', 'usr_bob')).toBe(time + 2);
      expect(await watermarks.read('another client', 'usr_carol')).toBe(time + 3);
      await watermarks.raise({ kind: 'global' }, time + 4);
      expect(await watermarks.read('a client', undefined)).toBe(time + 4);
      expect(await connection.replayRevocations('all')).toMatchObject({ errors: [] });
    });

    it('a user who changes or leaves loses everything', async () => {
      const { users, sessions } = stores();
      await users.record(SUBJECT, 'credential-1');
      const before = await signedIn(sessions, {}, 'credential-1');
      await allow(1);
      expect(await users.record(SUBJECT, 'credential-2', 'credential-1')).toBe('ended');
      expect(await sessions.use(before.sessionId)).toBeUndefined();
      expect(await connection.replayRevocations('all')).toMatchObject({ errors: [] });
    });

    it('a person signs out, denies a request and withdraws a consent', async () => {
      const { sessions, interactions, consents, uses } = stores();
      const [here, elsewhere, asked] = [await signedIn(sessions), await signedIn(sessions), interaction()];
      await interactions.create(asked, 10 * MINUTE);
      await consents.give(SUBJECT, CLIENT, CONSENT, MINUTE);
      await uses.note(SUBJECT, CLIENT);
      await allow(1);
      const { interactionId, sessionId } = asked;
      expect(await sessions.use(here.sessionId)).toEqual(here);
      expect(await interactions.decide(interactionId, sessionId, 'deny')).toBe('decided');
      const attempt = { attemptId: uniqueId(), after: [] };
      expect(await interactions.take(interactionId, sessionId, attempt)).toEqual({ ...asked, decision: 'deny' });
      expect(await interactions.read(interactionId, sessionId)).toBeUndefined();
      await consents.withdraw(SUBJECT, CLIENT);
      await uses.forget(SUBJECT, CLIENT);
      await sessions.end(here);
      await sessions.endAll(SUBJECT);
      await allow(0);
      expect(await consents.read(SUBJECT, CLIENT)).toBeUndefined();
      expect(await uses.list(SUBJECT)).toEqual([]);
      expect(await sessions.use(here.sessionId)).toBeUndefined();
      expect(await sessions.use(elsewhere.sessionId)).toBeUndefined();
    });

    it('a session that ends has pending logouts, which are acknowledged; none is pending twice after a fail-over', async () => {
      const { sessions, grants, logouts } = stores();
      const [session, other] = [await signedIn(sessions), await signedIn(sessions)];
      const { sessionId, sid } = session;
      const family = await redeemed(grants, { login: { sessionId, sid, offline: false, namespace: 'shop' } });
      await issued(grants, {
        login: { sessionId: other.sessionId, sid: other.sid, offline: false, namespace: 'shop' },
      });
      await allow(1);
      const [pending] = await sessions.end(session);
      if (pending === undefined) throw new Error('no logout is pending');
      expect(pending).toMatchObject({ sid, grantIds: [family.grantId] });
      await grants.revoke(family.grantId);
      expect(await logouts.take(pending, MINUTE)).toBe(0);
      await logouts.postpone(pending, 0);
      expect(await logouts.take(pending, 0)).toBe(1);
      await sessions.endAll(SUBJECT);
      expect((await logouts.list(SHARD)).map((each) => each.sid).sort()).toEqual([sid, other.sid].sort());
      for (const each of await logouts.list(SHARD)) await logouts.acknowledge(each);
      expect(await connection.replayRevocations('all')).toMatchObject({ errors: [] });
      expect(await logouts.list(SHARD)).toEqual([]);
      await allow(0);
      expect(await grants.rotate(rotateRequest(family, 0))).toEqual({ outcome: 'gone' });
    });

    it('what would store something is refused and consumes nothing, and what reads is answered', async () => {
      const { grants, accessTokens, sessions, interactions, consents, uses, replays, rateLimits } = stores();
      const [code, family, used, opaque] = [
        await issued(grants),
        await redeemed(grants),
        await signedIn(sessions),
        accessToken(),
      ];
      const [asked, allowed] = [interaction(), interaction()];
      await accessTokens.write(opaque);
      await interactions.create(asked, 10 * MINUTE);
      await interactions.create(allowed, 10 * MINUTE);
      await interactions.decide(allowed.interactionId, allowed.sessionId, 'allow');
      const [redemption, rotation] = [redeemRequest(code), rotateRequest(family, 0)];
      const attempt = { attemptId: uniqueId(), after: [] };
      await allow(1);

      await refused(grants.issue(sampleGrant(), SECRET_HASH, CODE_LIFETIME, RETENTION));
      await refused(grants.redeem(redemption));
      await refused(grants.rotate(rotation));
      await refused(accessTokens.write(accessToken()));
      await refused(sessions.create(sampleSession(), undefined));
      await refused(interactions.create(interaction(), MINUTE));
      await refused(interactions.decide(asked.interactionId, asked.sessionId, 'allow'));
      await refused(interactions.take(allowed.interactionId, allowed.sessionId, attempt));
      await refused(consents.give(SUBJECT, CLIENT, CONSENT, MINUTE));
      await refused(uses.note(SUBJECT, uniqueId()));
      await refused(replays.claim('code_challenge', uniqueId(), Date.now() + MINUTE));
      await refused(rateLimits.hit('a name', 5, MINUTE));
      expect(await grants.read(family.grantId)).toMatchObject({ revoked: false, generation: 0 });
      expect(await accessTokens.read(opaque.tokenId)).toEqual(opaque);
      expect(await interactions.read(asked.interactionId, asked.sessionId)).toMatchObject({ decision: undefined });

      await allow(0);
      expect(await grants.redeem(redemption)).toMatchObject({ outcome: 'redeemed' });
      expect(await grants.rotate(rotation)).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await sessions.use(used.sessionId)).toEqual(used);
      expect(await interactions.take(allowed.interactionId, allowed.sessionId, attempt)).toEqual({
        ...allowed,
        decision: 'allow',
      });
    });

    it('the heartbeats go on, so that the time is not taken for a loss', async () => {
      const markers = new ShardMarkers({ connection, keys });
      const shards = markers.groups[0] ?? [];
      await markers.restore(await markers.inspect(shards), { watermark: 1, least: 1 });
      const group = await markers.inspect(shards);
      await allow(1);
      await expect(markers.beat(group)).resolves.toBeUndefined();
    });
  });
}
