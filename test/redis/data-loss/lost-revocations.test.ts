// What was revoked, ended or withdrawn a moment before the server came back as it was earlier, like a replica that takes over
// and is behind: a replica of grantry remembers it and does it again.

import { expect, it } from 'vitest';
import type { Session } from '../../../src/oauth/ports/login-stores.ts';
import { shardOfPerson } from '../../../src/oauth/values/shard.ts';
import {
  signedIn as begin,
  CODE_LIFETIME,
  digest,
  issued,
  RETENTION,
  redeemed,
  redeemRequest,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  sampleSession,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { forgetfulRedis, losing } from '../setup/forgetful-redis.ts';
import { describeRedis } from '../setup/servers.ts';

const LIFETIME_SECONDS = 600;

/** More than are remembered of one kind. */
const FLOOD = 10_100;

/** Something that can be revoked. */
interface Revocable {
  revoke(): Promise<void>;
  isActive(): Promise<boolean>;
}

describeRedis('what was revoked and a fail-over has lost', () => {
  const redis = forgetfulRedis();

  const newTokenId = () => `${SHARD}.${digest(uniqueId())}`;
  const seconds = () => Math.ceil(Date.now() / 1000);

  async function opaqueToken(): Promise<Revocable> {
    const accessToken = {
      tokenId: newTokenId(),
      issuedAtSeconds: seconds(),
      expiresAtSeconds: seconds() + LIFETIME_SECONDS,
    };
    const { tokenId } = accessToken;
    await redis.stores.grants.redeem(redeemRequest(await issued(redis.stores.grants), { accessToken }));
    return {
      revoke: () => redis.stores.accessTokens.revoke(tokenId),
      isActive: async () => (await redis.stores.accessTokens.read(tokenId)) !== undefined,
    };
  }

  const REVOCABLES: Readonly<Record<string, () => Promise<Revocable>>> = {
    async 'a grant'() {
      const { grantId } = await redeemed(redis.stores.grants);
      return {
        revoke: () => redis.stores.grants.revoke(grantId),
        isActive: async () => (await redis.stores.grants.read(grantId))?.revoked === false,
      };
    },
    'an opaque access token': opaqueToken,
    async 'a JWT'() {
      const jti = uniqueId();
      return {
        revoke: () => redis.stores.revokedTokens.mark(jti, seconds() + LIFETIME_SECONDS),
        isActive: async () => !(await redis.stores.revokedTokens.has(jti)),
      };
    },
  };

  /** Revokes it, which the server forgets, and has a replica of grantry meet the server. */
  async function revokedAndLost(
    { revoke, isActive }: Revocable,
    revoking: () => Promise<void> = revoke,
  ): Promise<void> {
    await losing(redis, async () => {
      await revoking();
      expect(await isActive()).toBe(false);
    });
    expect(await isActive()).toBe(true);
    await redis.connection.replayRevocations('all');
  }

  it.each(Object.entries(REVOCABLES))('is revoked again, alone: %s', async (_name, made) => {
    const [revoked, other] = [await made(), await made()];
    await revokedAndLost(revoked);
    expect(await revoked.isActive()).toBe(false);
    expect(await other.isActive()).toBe(true);
  });

  it('is revoked again however many opaque tokens that never were are revoked after it', async () => {
    const token = await opaqueToken();
    await revokedAndLost(token, async () => {
      await token.revoke();
      for (let sent = 0; sent < FLOOD; sent += 100) {
        await Promise.all(Array.from({ length: 100 }, () => redis.stores.accessTokens.revoke(newTokenId())));
      }
    });
    expect(await token.isActive()).toBe(false);
  });

  it('is revoked again also where the server that was asked did not have it: an opaque access token', async () => {
    const token = await opaqueToken();
    await revokedAndLost(token, async () => {
      await redis.server.command('FLUSHALL');
      await token.revoke();
    });
    expect(await token.isActive()).toBe(false);
  });

  it('is ended again: one session, and all of a person', async () => {
    const [one, other, third] = [await signedIn('usr_alice'), await signedIn('usr_bob'), await signedIn('usr_bob')];
    const bystander = await signedIn('usr_carol');
    await losing(redis, async () => {
      await redis.stores.sessions.end({ sessionId: one, sid: 'of-one', subject: 'usr_alice' });
      await redis.stores.sessions.endAll('usr_bob');
    });
    expect(await redis.stores.sessions.use(one)).toBeDefined();
    await redis.connection.replayRevocations('all');
    for (const ended of [one, other, third]) expect(await redis.stores.sessions.use(ended)).toBeUndefined();
    expect(await redis.stores.sessions.use(bystander)).toBeDefined();
  });

  it('has its pending logouts again: one session, all of a person, and those of a user who changed', async () => {
    const { sessions, grants, logouts, users } = redis.stores;
    await users.record('usr_frank', 'first');
    const people = ['usr_alice', 'usr_erin', 'usr_frank'] as const;
    const begun: Session[] = [];
    for (const subject of people) {
      const session = await begin(sessions, { subject });
      begun.push(session);
      const login = { sessionId: session.sessionId, sid: session.sid, offline: false, namespace: 'shop' };
      await grants.issue(sampleGrant({ subject, login }), SECRET_HASH, CODE_LIFETIME, RETENTION);
    }
    const pending = async () => {
      const lists = await Promise.all(people.map((subject) => logouts.list(shardOfPerson(subject))));
      return lists.flat().map(({ sid }) => sid);
    };
    await losing(redis, async () => {
      await sessions.end(begun[0] as Session);
      await sessions.endAll('usr_erin');
      expect(await users.record('usr_frank', 'second', 'first')).toBe('ended');
      expect(await pending()).toHaveLength(3);
    });
    expect(await pending()).toEqual([]);
    await redis.connection.replayRevocations('all');
    expect(await pending()).toEqual(begun.map(({ sid }) => sid));
  });

  it('has no pending logout of a session with a later login, whether it is new or continues the one of before', async () => {
    const { sessions, grants, logouts, users } = redis.stores;
    const [continuing, starting] = ['usr_gina', 'usr_hugo'];
    /** Issues a code, which is recorded. */
    const visit = async ({ subject, sessionId, sid }: Session) => {
      const login = { sessionId, sid, offline: false, namespace: 'shop' };
      const grant = sampleGrant({ subject, login });
      expect(await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION)).toMatchObject({ outcome: 'issued' });
      return grant.grantId;
    };
    const pending = async (subject: string) => {
      return (await logouts.list(shardOfPerson(subject))).filter((each) => each.subject === subject);
    };
    const before = new Map<string, Session>();
    for (const subject of [continuing, starting]) {
      await users.record(subject, 'first');
      const session = await begin(sessions, { subject });
      before.set(subject, session);
      await visit(session);
    }
    await losing(redis, async () => {
      for (const subject of before.keys()) expect(await users.record(subject, 'second', 'first')).toBe('ended');
    });
    // On a server that knows nothing of the end.
    const next = await sessions.create(sampleSession({ subject: continuing }), undefined, before.get(continuing));
    if (next === 'outdated') throw new Error('another credential is recorded');
    expect(next.sid).toBe(before.get(continuing)?.sid);
    await visit(next);
    const fresh = await begin(sessions, { subject: starting });
    await visit(fresh);
    await redis.connection.replayRevocations('all');
    expect(await pending(continuing)).toEqual([]);
    expect((await pending(starting)).map(({ sid }) => sid)).toEqual([before.get(starting)?.sid]);
    for (const session of [next, fresh]) {
      expect(await sessions.use(session.sessionId)).toBeDefined();
      // What it has recorded is still there.
      expect((await sessions.end(session)).map(({ sid }) => sid)).toEqual([session.sid]);
    }
  });

  it('is ended again with consents of before, and what was recorded is not touched: a person who returns as another', async () => {
    const { users, consents, sessions } = redis.stores;
    const give = (clientUid: string) =>
      consents.give('usr_dan', clientUid, new Map([['https://api.example', ['read']]]), 3_600_000);
    await users.record('usr_dan', 'first');
    await users.recordAbsence('usr_dan');
    const session = await begin(sessions, { subject: 'usr_dan' });
    await give('uid-of-before');
    await losing(redis, async () => {
      expect(await users.record('usr_dan', 'second', 'first')).toBe('ended');
    });
    expect(await sessions.use(session.sessionId)).toBeDefined();
    await give('uid-of-after');
    await redis.connection.replayRevocations('all');
    expect(await sessions.use(session.sessionId)).toBeUndefined();
    expect(await consents.read('usr_dan', 'uid-of-before')).toBeUndefined();
    expect(await consents.read('usr_dan', 'uid-of-after')).toBeDefined();
    expect((await users.list()).get('usr_dan')).toEqual({ credential: 'first', isAbsent: true });
  });

  it('is withdrawn again, unless it was given since: a consent', async () => {
    const { consents } = redis.stores;
    const give = (clientUid: string) =>
      consents.give('usr_dave', clientUid, new Map([['https://api.example', ['read']]]), 3_600_000);
    await give('uid-withdrawn');
    await give('uid-given-again');
    await losing(redis, async () => {
      await consents.withdraw('usr_dave', 'uid-withdrawn');
      await consents.withdraw('usr_dave', 'uid-given-again');
    });
    expect(await consents.read('usr_dave', 'uid-withdrawn')).toBeDefined();
    await give('uid-given-again');
    await redis.connection.replayRevocations('all');
    expect(await consents.read('usr_dave', 'uid-withdrawn')).toBeUndefined();
    expect(await consents.read('usr_dave', 'uid-given-again')).toBeDefined();
  });

  async function signedIn(subject: string): Promise<string> {
    return (await begin(redis.stores.sessions, { subject })).sessionId;
  }
});
