// The contract of the logins that sessions record and of the logouts that become pending: `create` that succeeds a session,
// `issue` that records a login, and each end.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NewGrant } from '../../src/oauth/ports/grant-store.ts';
import type { Session } from '../../src/oauth/ports/login-stores.ts';
import type { Login, PendingLogout } from '../../src/oauth/ports/logout-store.ts';
import {
  signedIn as begin,
  CODE_LIFETIME,
  MINUTE,
  RETENTION,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  sampleSession,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const HOUR = 60 * MINUTE;

/** Runs the contract on one implementation. */
export function sessionLoginsContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a session that signs in to clients`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const signedIn = (different: Parameters<typeof begin>[1] = {}) => begin(world.stores.sessions, different);

    async function succeed(former: Session, different: Parameters<typeof begin>[1] = {}): Promise<Session> {
      const session = await world.stores.sessions.create(sampleSession(different), undefined, former);
      if (session === 'outdated') throw new Error('another credential is recorded');
      return session;
    }

    const loginOf = ({ sessionId, sid }: Session, offline = false): Login => ({
      sessionId,
      sid,
      offline,
      namespace: 'shop',
      mac: 'a-mac',
    });

    async function issue(session: Session, different: Partial<NewGrant> = {}): Promise<NewGrant> {
      const { subject } = session;
      const grant = sampleGrant({ subject, login: loginOf(session), ...different });
      expect(await world.stores.grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION)).toEqual({
        outcome: 'issued',
        evicted: [],
      });
      return grant;
    }

    async function pending(): Promise<readonly PendingLogout[]> {
      const all = await world.stores.logouts.list(SHARD);
      return [...all].sort((one, other) => (one.clientUid < other.clientUid ? -1 : 1));
    }

    it('at its end has one pending logout for each client, with the grants that do not survive', async () => {
      const session = await signedIn();
      const [one, two] = [await issue(session), await issue(session)];
      await issue(session, { login: loginOf(session, true) });
      await issue(session, { clientUid: 'uid-of-wiki', login: loginOf(session, true) });
      const earliest = world.now();
      const ended = await world.stores.sessions.end(session);
      const { subject, sid } = session;
      const since = expect.toSatisfy((time: number) => time >= earliest && time <= world.now());
      const expected = [
        { clientUid: 'uid-of-shop', subject, sid, grantIds: [one.grantId, two.grantId], since, mac: 'a-mac' },
        { clientUid: 'uid-of-wiki', subject, sid, grantIds: [], since, mac: 'a-mac' },
      ];
      expect([...ended].sort((a, b) => (a.clientUid < b.clientUid ? -1 : 1))).toEqual(expected);
      expect(await pending()).toEqual(expected);
      expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
    });

    it('has no further pending logout after a second end, nor after an acknowledgement', async () => {
      const session = await signedIn();
      await issue(session);
      const [logout] = await world.stores.sessions.end(session);
      expect(await world.stores.sessions.end(session)).toEqual([]);
      expect(await pending()).toEqual([logout]);
      if (logout !== undefined) await world.stores.logouts.acknowledge(logout);
      await world.stores.sessions.end(session);
      expect(await pending()).toEqual([]);
    });

    it('has a pending logout that is taken by one try at a time, again once the lease or the pause is over', async () => {
      const { sessions, logouts } = world.stores;
      const session = await signedIn();
      await issue(session);
      const [logout] = await sessions.end(session);
      if (logout === undefined) throw new Error('no logout is pending');
      const takes = await Promise.all(Array.from({ length: 20 }, () => logouts.take(logout, MINUTE)));
      expect(takes.filter((before) => before !== undefined)).toEqual([0]);
      expect(await pending()).toEqual([]);
      world.advance(MINUTE);
      expect(await pending()).toEqual([logout]);
      expect(await logouts.take(logout, MINUTE)).toBe(1);
      await logouts.postpone(logout, HOUR);
      world.advance(MINUTE);
      expect(await logouts.take(logout, MINUTE)).toBeUndefined();
      world.advance(HOUR);
      expect(await logouts.take(logout, MINUTE)).toBe(2);
      await logouts.postpone(logout, 0);
      expect(await pending()).toEqual([logout]);
      await logouts.acknowledge(logout);
      await logouts.postpone(logout, 0);
      world.advance(MINUTE);
      expect(await logouts.take(logout, MINUTE)).toBeUndefined();
      expect(await pending()).toEqual([]);
    });

    it('has no pending logout for a grant without a login', async () => {
      const session = await signedIn();
      await issue(session, { login: undefined });
      expect(await world.stores.sessions.end(session)).toEqual([]);
      expect(await pending()).toEqual([]);
    });

    it('gives no grant once it has ended, been idle too long, or belongs to another person', async () => {
      const { grants, sessions } = world.stores;
      const refused = async (session: Session, subject = session.subject) => {
        const grant = sampleGrant({ subject, login: loginOf(session) });
        expect(await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION)).toEqual({ outcome: 'signed_out' });
        expect(await grants.read(grant.grantId)).toBeUndefined();
      };
      const [ended, all, idle] = [await signedIn(), await signedIn({ subject: 'usr_bob' }), await signedIn()];
      await refused(idle, 'usr_bob');
      await sessions.end(ended);
      await refused(ended);
      await sessions.endAll('usr_bob');
      await refused(all);
      world.advance(HOUR);
      await refused(idle);
      expect(await pending()).toEqual([]);
    });

    it('has pending logouts for whatever it gave, in every order of issue and end', async () => {
      const { grants, sessions } = world.stores;
      const session = await signedIn();
      const offered = Array.from({ length: 40 }, () => sampleGrant({ login: loginOf(session) }));
      const answers = await Promise.all(
        offered.map(async (grant, at) => {
          if (at === 20) await sessions.end(session);
          return await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
        }),
      );
      const given = offered.filter((_, at) => answers[at]?.outcome === 'issued').map(({ grantId }) => grantId);
      const promised = (await pending()).flatMap(({ grantIds }) => grantIds);
      expect([...promised].sort()).toEqual(given.sort());
    });

    it('hands its sid and its logins on to the next of the same person, and no logout is pending', async () => {
      const former = await signedIn();
      const grant = await issue(former);
      const session = await succeed(former);
      expect(session.sid).toBe(former.sid);
      expect(session.sessionId).not.toBe(former.sessionId);
      expect(await world.stores.sessions.use(former.sessionId)).toBeUndefined();
      expect(await world.stores.sessions.use(session.sessionId)).toEqual(session);
      expect(await world.stores.sessions.list(session.subject)).toEqual([session]);
      expect(await pending()).toEqual([]);
      expect(await world.stores.sessions.end(session)).toMatchObject([{ sid: former.sid, grantIds: [grant.grantId] }]);
    });

    it('hands on its logins for as long as its successor lives', async () => {
      const former = await signedIn({ absoluteLifetime: HOUR });
      await issue(former);
      world.advance(HOUR / 2);
      const session = await succeed(former);
      world.advance(HOUR - world.tick);
      expect(await world.stores.sessions.end(session)).toHaveLength(1);
    });

    it('hands nothing on to another person, nor once it has ended or been idle too long', async () => {
      const former = await signedIn();
      const ofBob = await succeed(former, { subject: 'usr_bob' });
      expect(ofBob.sid).not.toBe(former.sid);
      expect(await world.stores.sessions.use(former.sessionId)).toEqual(former);
      await world.stores.sessions.end(former);
      expect((await succeed(former)).sid).not.toBe(former.sid);
      const idle = await signedIn();
      world.advance(HOUR);
      expect((await succeed(idle)).sid).not.toBe(idle.sid);
    });

    it('that was idle too long is over, and the logouts of its logins are pending when it is ended by its sid', async () => {
      const session = await signedIn();
      await issue(session);
      world.advance(HOUR);
      expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
      expect(await pending()).toEqual([]);
      const { subject, sid } = session;
      const ended = await world.stores.sessions.end({ sessionId: sampleSession().sessionId, subject, sid });
      expect(ended).toHaveLength(1);
    });

    it('that has expired notifies no client, and its logins are forgotten', async () => {
      const session = await signedIn({ absoluteLifetime: HOUR });
      await issue(session);
      world.advance(HOUR + world.tick);
      await signedIn();
      expect(await world.stores.sessions.end(session)).toEqual([]);
      expect(await pending()).toEqual([]);
    });

    it('has the same pending logouts after the end of all, for each session, and for no other person', async () => {
      const [one, other] = [await signedIn(), await signedIn()];
      const ofBob = await signedIn({ subject: 'usr_bob' });
      for (const session of [one, other, ofBob]) await issue(session);
      await world.stores.sessions.endAll('usr_alice');
      expect((await pending()).map(({ sid }) => sid).sort()).toEqual([one.sid, other.sid].sort());
      expect(await world.stores.sessions.end(ofBob)).toHaveLength(1);
    });

    it('has the same pending logouts after a new credential of its person', async () => {
      const { users, sessions } = world.stores;
      const session = await begin(sessions, {}, 'first');
      await issue(session, { authTime: Date.UTC(2100, 0) });
      expect(await users.record('usr_alice', 'second', 'first')).toBe('ended');
      expect(await pending()).toMatchObject([{ sid: session.sid, clientUid: 'uid-of-shop' }]);
    });
  });
}
