// The contracts of SessionStore, InteractionStore and ConsentStore: sign-ins and decisions of people.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Interaction,
  type NewSession,
  OPEN_INTERACTIONS_PER_SESSION,
  type Session,
  type TakeAttempt,
} from '../../src/oauth/ports/login-stores.ts';
import { signedIn as begin, DAY, digest, MINUTE, sampleSession, uniqueId } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const HOUR = 60 * MINUTE;

/** A try to take an interaction, after others that got no answer. */
function aTry(...unanswered: readonly TakeAttempt[]): TakeAttempt {
  return { attemptId: uniqueId(), after: unanswered.map(({ attemptId }) => attemptId) };
}

/** Runs the contract of sessions on one implementation. */
export function sessionStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a session`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const signedIn = (different: Partial<NewSession> = {}, credential?: string) =>
      begin(world.stores.sessions, different, credential);

    it('begins at the time of the store', async () => {
      const earliest = world.now();
      const { authTime } = await signedIn();
      expect(authTime).toBeGreaterThanOrEqual(earliest);
      expect(authTime).toBeLessThanOrEqual(world.now());
    });

    it('is found by its id and no other', async () => {
      const session = await signedIn();
      expect(await world.stores.sessions.use(session.sessionId)).toEqual(session);
      expect(await world.stores.sessions.use(sampleSession().sessionId)).toBeUndefined();
    });

    it('lives until just before it has been idle too long', async () => {
      const session = await signedIn();
      world.advance(HOUR - world.tick);
      expect(await world.stores.sessions.use(session.sessionId)).toEqual(session);
    });

    it('is over once it has been idle too long, and stays over', async () => {
      const session = await signedIn();
      world.advance(HOUR);
      expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
      expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
    });

    it('is renewed by each use, but not past its absolute lifetime', async () => {
      const session = await signedIn({ absoluteLifetime: 2 * HOUR });
      world.advance(HOUR - world.tick);
      expect(await world.stores.sessions.use(session.sessionId)).toEqual(session);
      world.advance(HOUR - world.tick);
      expect(await world.stores.sessions.use(session.sessionId)).toEqual(session);
      world.advance(2 * world.tick);
      expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
    });

    it('ends when it is ended, alone', async () => {
      const [one, other] = [await signedIn(), await signedIn()];
      await world.stores.sessions.end(one);
      await world.stores.sessions.end(one);
      expect(await world.stores.sessions.use(one.sessionId)).toBeUndefined();
      expect(await world.stores.sessions.use(other.sessionId)).toEqual(other);
    });

    it('ends with all of its person’s sessions, and with no other person’s', async () => {
      const ofAlice = [await signedIn(), await signedIn(), await signedIn()];
      const ofBob = await signedIn({ subject: 'usr_bob', username: 'bob' });
      await world.stores.sessions.endAll('usr_alice');
      for (const session of ofAlice) expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
      expect(await world.stores.sessions.use(ofBob.sessionId)).toEqual(ofBob);
    });

    it('keeps the MAC that it is sealed with, and is not begun by it', async () => {
      const { sessions } = world.stores;
      const session = await signedIn();
      await sessions.seal(session, 'a-mac');
      expect(await sessions.use(session.sessionId)).toEqual({ ...session, mac: 'a-mac' });
      expect(await sessions.list('usr_alice')).toEqual([{ ...session, mac: 'a-mac' }]);
      await sessions.end(session);
      await sessions.seal(session, 'a-mac');
      expect(await sessions.use(session.sessionId)).toBeUndefined();
    });

    it('keeps where and by which provider the person signed in, and succeeds a session without that', async () => {
      const { sessions } = world.stores;
      const former = await signedIn();
      const place = {
        address: '2001:db8::1',
        browser: 'Samsung Internet',
        provider: 'corp',
        upstreamAuthTime: former.authTime - DAY,
      };
      const session = await sessions.create(sampleSession(place), undefined, former);
      expect(session).toMatchObject(place);
      expect(await sessions.list('usr_alice')).toEqual([session]);
    });

    it('is over at the watermark of its person, and not at that of another', async () => {
      const [ofAlice, ofBob] = [await signedIn(), await signedIn({ subject: 'usr_bob', username: 'bob' })];
      await world.stores.watermarks.raise({ kind: 'user', subject: 'usr_alice' }, ofAlice.authTime);
      expect(await world.stores.sessions.use(ofAlice.sessionId)).toBeUndefined();
      expect(await world.stores.sessions.list('usr_alice')).toEqual([]);
      expect(await world.stores.sessions.use(ofBob.sessionId)).toEqual(ofBob);
      world.advance(world.tick);
      const later = await signedIn();
      expect(await world.stores.sessions.use(later.sessionId)).toEqual(later);
    });

    it('begins only by the recorded credential of its person, which the first sign-in records', async () => {
      const { sessions } = world.stores;
      const first = await signedIn({}, 'digest-of-a-hash');
      expect(await sessions.create(sampleSession(), 'digest-of-another')).toBe('outdated');
      expect(await sessions.list('usr_alice')).toEqual([first]);
      await signedIn({}, 'digest-of-a-hash');
      await signedIn({ subject: 'usr_bob', username: 'bob' }, 'digest-of-another');
      await signedIn();
    });

    describe('in the list of its person', () => {
      const listed = async (subject = 'usr_alice') => {
        const sessions = await world.stores.sessions.list(subject);
        return [...sessions].sort((one, other) => one.sessionId.localeCompare(other.sessionId));
      };
      const sorted = (...sessions: Session[]) =>
        sessions.sort((one, other) => one.sessionId.localeCompare(other.sessionId));

      it('is there while it lives, with all of theirs and no other person’s', async () => {
        const [one, other] = [await signedIn(), await signedIn({ idleLifetime: 2 * HOUR })];
        await signedIn({ subject: 'usr_bob', username: 'bob' });
        expect(await listed()).toEqual(sorted(one, other));
        expect(await listed('usr_carol')).toEqual([]);
        world.advance(HOUR);
        expect(await listed()).toEqual([other]);
      });

      it('is not there once ended', async () => {
        const [one, other] = [await signedIn(), await signedIn()];
        await world.stores.sessions.end(one);
        expect(await listed()).toEqual([other]);
        await world.stores.sessions.endAll('usr_alice');
        expect(await listed()).toEqual([]);
        const later = await signedIn();
        expect(await listed()).toEqual([later]);
      });

      it('is there, and ends, with all of theirs however many they are', async () => {
        const ids: string[] = [];
        while (ids.length < 1500) {
          const wave = await Promise.all(Array.from({ length: 100 }, () => signedIn()));
          ids.push(...wave.map(({ sessionId }) => sessionId));
        }
        const { sessions } = world.stores;
        expect((await sessions.list('usr_alice')).map(({ sessionId }) => sessionId).sort()).toEqual(ids.sort());
        await sessions.endAll('usr_alice');
        expect(await sessions.list('usr_alice')).toEqual([]);
        for (const sessionId of ids.slice(-10)) expect(await sessions.use(sessionId)).toBeUndefined();
      });

      it('is there with those that may live longest where they are more than are asked for', async () => {
        const { sessions } = world.stores;
        const begun = [];
        for (const hours of [5, 9, 7, 6, 8]) begun.push(await signedIn({ absoluteLifetime: hours * HOUR }));
        const ends = async (most?: number) =>
          (await sessions.list('usr_alice', most)).map(({ absoluteLifetime }) => absoluteLifetime / HOUR).sort();
        expect(await ends(3)).toEqual([7, 8, 9]);
        expect(await ends(5)).toEqual([5, 6, 7, 8, 9]);
        expect(await ends(100)).toEqual([5, 6, 7, 8, 9]);
        expect(await ends(0)).toEqual([]);
        expect(await ends()).toHaveLength(begun.length);
      });

      it('is not renewed by a read', async () => {
        const session = await signedIn();
        world.advance(HOUR - world.tick);
        expect(await listed()).toEqual([session]);
        world.advance(world.tick);
        expect(await world.stores.sessions.use(session.sessionId)).toBeUndefined();
      });
    });
  });
}

/** Runs the contract of interactions on one implementation. */
export function interactionStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: an interaction`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const LIFETIME = 10 * MINUTE;

    async function opened(changes: Partial<Interaction> = {}): Promise<Omit<Interaction, 'decision'>> {
      const interaction: Omit<Interaction, 'decision'> = {
        interactionId: digest(uniqueId()),
        sessionId: digest('session of alice'),
        subject: 'usr_alice',
        authTime: 1_700_000_000_000,
        request: {
          clientUid: 'uid-of-shop',
          clientId: 'default.shop',
          redirectUri: 'https://shop.example/cb?x=%20+',
          scope: ['read', 'write'],
          audiences: ['https://api.example'],
          codeChallenge: digest('verifier'),
          state: 'as sent: \u00e4 "\\\u2028',
        },
        ...changes,
      };
      await world.stores.interactions.create(interaction, LIFETIME);
      return interaction;
    }

    it('is read as it was opened, undecided', async () => {
      const interaction = await opened();
      const read = await world.stores.interactions.read(interaction.interactionId, interaction.sessionId);
      expect(read).toEqual({ ...interaction, decision: undefined });
    });

    it('keeps a request without state as one without state', async () => {
      const interaction = await opened();
      const without = { ...interaction, interactionId: digest(uniqueId()) };
      const request = { ...interaction.request, state: undefined };
      await world.stores.interactions.create({ ...without, request }, LIFETIME);
      const read = await world.stores.interactions.read(without.interactionId, without.sessionId);
      expect(read).toBeDefined();
      expect(read?.request.state).toBeUndefined();
    });

    it('keeps what a request of OpenID Connect says, and the key of its code', async () => {
      const openid = {
        nonce: 'n ü"\\\u2028',
        prompt: ['login', 'consent'] as const,
        maxAge: 60,
        loginHint: 'bob',
        subject: 'usr_bob',
      };
      const confirmation = `jkt.${digest('key')}` as const;
      const { request } = await opened();
      const { interactionId, sessionId } = await opened({ request: { ...request, confirmation, openid } });
      const read = await world.stores.interactions.read(interactionId, sessionId);
      expect(read?.request).toEqual({ ...request, confirmation, openid });
    });

    it('is hidden from every other session: not read, not decided, not taken', async () => {
      const { interactionId, sessionId } = await opened();
      const { interactions } = world.stores;
      const stranger = digest('another session');
      expect(await interactions.read(interactionId, stranger)).toBeUndefined();
      expect(await interactions.decide(interactionId, stranger, 'allow')).toBe('gone');
      expect(await interactions.decide(interactionId, sessionId, 'allow')).toBe('decided');
      expect(await interactions.take(interactionId, stranger, aTry())).toBeUndefined();
      expect(await interactions.take(interactionId, sessionId, aTry())).toMatchObject({ decision: 'allow' });
    });

    for (const decision of ['allow', 'deny'] as const) {
      const contrary = decision === 'allow' ? 'deny' : 'allow';
      it(`decided ${decision} stays so: the same again is fine, the contrary is a conflict`, async () => {
        const { interactionId, sessionId } = await opened();
        const { interactions } = world.stores;
        expect(await interactions.decide(interactionId, sessionId, decision)).toBe('decided');
        expect(await interactions.decide(interactionId, sessionId, decision)).toBe('decided');
        expect(await interactions.decide(interactionId, sessionId, contrary)).toBe('conflict');
        expect(await interactions.read(interactionId, sessionId)).toMatchObject({ decision });
        expect(await interactions.take(interactionId, sessionId, aTry())).toMatchObject({ decision });
      });
    }

    it('has one decision out of many parallel contrary ones', async () => {
      const { interactionId, sessionId } = await opened();
      const tries = Array.from({ length: 100 }, (_, index) =>
        world.stores.interactions.decide(interactionId, sessionId, index % 2 === 0 ? 'allow' : 'deny'),
      );
      const answers = await Promise.all(tries);
      expect(answers.filter((answer) => answer === 'decided')).toHaveLength(50);
      expect(answers.filter((answer) => answer === 'conflict')).toHaveLength(50);
    });

    it('cannot be taken undecided, and survives the try', async () => {
      const { interactionId, sessionId } = await opened();
      const { interactions } = world.stores;
      expect(await interactions.take(interactionId, sessionId, aTry())).toBeUndefined();
      expect(await interactions.decide(interactionId, sessionId, 'deny')).toBe('decided');
      expect(await interactions.take(interactionId, sessionId, aTry())).toMatchObject({ decision: 'deny' });
    });

    it('is taken once, with all it holds', async () => {
      const interaction = await opened();
      const { interactionId, sessionId } = interaction;
      const { interactions } = world.stores;
      await interactions.decide(interactionId, sessionId, 'allow');
      expect(await interactions.take(interactionId, sessionId, aTry())).toEqual({ ...interaction, decision: 'allow' });
      expect(await interactions.take(interactionId, sessionId, aTry())).toBeUndefined();
      expect(await interactions.read(interactionId, sessionId)).toBeUndefined();
      expect(await interactions.decide(interactionId, sessionId, 'allow')).toBe('gone');
    });

    it('keeps its MAC and that of its decision, and a repeated decision may have another', async () => {
      const interaction = await opened({ mac: 'a-mac' });
      const { interactionId, sessionId } = interaction;
      const { interactions } = world.stores;
      expect(await interactions.decide(interactionId, sessionId, 'allow', 'one')).toBe('decided');
      expect(await interactions.decide(interactionId, sessionId, 'allow', 'other')).toBe('decided');
      expect(await interactions.decide(interactionId, sessionId, 'deny', 'one')).toBe('conflict');
      const decided = { ...interaction, decision: 'allow', decisionMac: 'one' };
      expect(await interactions.take(interactionId, sessionId, aTry())).toEqual(decided);
    });

    it('is taken once in 100 parallel tries', async () => {
      const { interactionId, sessionId } = await opened();
      await world.stores.interactions.decide(interactionId, sessionId, 'allow');
      const tries = Array.from({ length: 100 }, () => world.stores.interactions.take(interactionId, sessionId, aTry()));
      expect((await Promise.all(tries)).filter((taken) => taken !== undefined)).toHaveLength(1);
    });

    describe('whose taker got no answer', () => {
      async function taken(): Promise<{
        take: (by: TakeAttempt) => Promise<Interaction | undefined>;
        lost: TakeAttempt;
      }> {
        const { interactionId, sessionId } = await opened();
        const { interactions } = world.stores;
        await interactions.decide(interactionId, sessionId, 'allow');
        const take = (by: TakeAttempt) => interactions.take(interactionId, sessionId, by);
        const lost = aTry();
        expect(await take(lost)).toMatchObject({ interactionId, decision: 'allow' });
        return { take, lost };
      }

      it('is taken again by the same try, and by the one that comes after it', async () => {
        const { take, lost } = await taken();
        const again = await take(lost);
        expect(again).toMatchObject({ decision: 'allow' });
        expect(await take(aTry(lost))).toEqual(again);
      });

      it('is taken by one of many that come after it', async () => {
        const { take, lost } = await taken();
        const answers = await Promise.all(Array.from({ length: 50 }, () => take(aTry(lost))));
        expect(answers.filter((answer) => answer !== undefined)).toHaveLength(1);
        expect(await take(lost)).toBeUndefined();
      });

      it('is taken by the last of several that got none, whichever of them was done', async () => {
        const { take, lost } = await taken();
        const undone = aTry(lost);
        const done = aTry(lost, undone);
        expect(await take(done)).toBeDefined();
        expect(await take(aTry(lost, undone, done))).toBeDefined();
        expect(await take(aTry(lost, undone))).toBeUndefined();
      });

      it('is gone for every other try, and to be read and decided', async () => {
        const { interactionId, sessionId } = await opened();
        const { interactions } = world.stores;
        await interactions.decide(interactionId, sessionId, 'allow');
        const lost = aTry();
        await interactions.take(interactionId, sessionId, lost);
        expect(await interactions.take(interactionId, sessionId, aTry(aTry()))).toBeUndefined();
        expect(await interactions.read(interactionId, sessionId)).toBeUndefined();
        expect(await interactions.decide(interactionId, sessionId, 'deny')).toBe('gone');
        expect(await interactions.take(interactionId, digest('another session'), aTry(lost))).toBeUndefined();
      });

      it('is gone when its time is over', async () => {
        const { take, lost } = await taken();
        world.advance(LIFETIME);
        expect(await take(aTry(lost))).toBeUndefined();
      });
    });

    it('lives until just before its time is over', async () => {
      const { interactionId, sessionId } = await opened();
      world.advance(LIFETIME - world.tick);
      expect(await world.stores.interactions.read(interactionId, sessionId)).toBeDefined();
      expect(await world.stores.interactions.decide(interactionId, sessionId, 'allow')).toBe('decided');
    });

    it('is gone when its time is over, decided or not: a decision prolongs nothing', async () => {
      const [one, other] = [await opened(), await opened()];
      const { interactions } = world.stores;
      world.advance(LIFETIME - MINUTE);
      await interactions.decide(one.interactionId, one.sessionId, 'allow');
      world.advance(MINUTE);
      expect(await interactions.take(one.interactionId, one.sessionId, aTry())).toBeUndefined();
      expect(await interactions.read(other.interactionId, other.sessionId)).toBeUndefined();
      expect(await interactions.decide(other.interactionId, other.sessionId, 'allow')).toBe('gone');
    });

    it('is one of a bounded number of its session: the oldest goes', async () => {
      const first = await opened();
      const elsewhere = await opened({ sessionId: 'another session' });
      const { sessionId } = first;
      const later = [];
      for (let count = 0; count < OPEN_INTERACTIONS_PER_SESSION; count++) later.push(await opened({ sessionId }));
      const { interactions } = world.stores;
      expect(await interactions.read(first.interactionId, sessionId)).toBeUndefined();
      for (const { interactionId } of later) expect(await interactions.read(interactionId, sessionId)).toBeDefined();
      expect(await interactions.read(elsewhere.interactionId, elsewhere.sessionId)).toBeDefined();
    });

    it('is unknown when it was never opened', async () => {
      const { interactions } = world.stores;
      expect(await interactions.read('unknown', 'session')).toBeUndefined();
      expect(await interactions.decide('unknown', 'session', 'allow')).toBe('gone');
      expect(await interactions.take('unknown', 'session', aTry())).toBeUndefined();
    });
  });
}

/** Runs the contract of consents on one implementation. */
export function consentStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a consent`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const YEAR = 365 * DAY;
    const API = 'https://api.example';
    const FILES = 'https://files.example';

    async function read(subject = 'alice', clientUid = 'shop') {
      const consent = await world.stores.consents.read(subject, clientUid);
      return consent && Object.fromEntries([...consent].map(([audience, scope]) => [audience, [...scope].sort()]));
    }

    it('is what was given, to that client, by that person', async () => {
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      expect(await read()).toEqual({ [API]: ['read'] });
      expect(await read('bob')).toBeUndefined();
      expect(await read('alice', 'other')).toBeUndefined();
      expect(await read('shop', 'alice')).toBeUndefined();
    });

    it('widens at each resource by itself, each entry once', async () => {
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read', 'write']]]), YEAR);
      await world.stores.consents.give('alice', 'shop', new Map([[FILES, ['read', 'admin']]]), YEAR);
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      expect(await read()).toEqual({ [API]: ['read', 'write'], [FILES]: ['admin', 'read'] });
    });

    it('is given at several resources at once, at each its own scope', async () => {
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      const wider = new Map([
        [API, ['write']],
        [FILES, ['list']],
      ]);
      await world.stores.consents.give('alice', 'shop', wider, YEAR);
      expect(await read()).toEqual({ [API]: ['read', 'write'], [FILES]: ['list'] });
    });

    it('loses nothing to parallel ones', async () => {
      const names = Array.from({ length: 50 }, (_, index) => `scope-${String(index).padStart(2, '0')}`);
      await Promise.all(
        names.map((scope) => world.stores.consents.give('alice', 'shop', new Map([[API, [scope]]]), YEAR)),
      );
      expect(await read()).toEqual({ [API]: names });
    });

    it('is forgotten when its time is over, and giving again restarts the time', async () => {
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      world.advance(YEAR - world.tick);
      expect(await read()).toBeDefined();
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['write']]]), YEAR);
      world.advance(YEAR - world.tick);
      expect(await read()).toEqual({ [API]: ['read', 'write'] });
      world.advance(world.tick);
      expect(await read()).toBeUndefined();
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['other']]]), YEAR);
      expect(await read()).toEqual({ [API]: ['other'] });
    });

    it('withdrawn is gone, and what is given later does not restore it', async () => {
      await world.stores.consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      await world.stores.consents.give('bob', 'shop', new Map([[API, ['read']]]), YEAR);
      await world.stores.consents.withdraw('alice', 'shop');
      await world.stores.consents.withdraw('alice', 'shop');
      expect(await read()).toBeUndefined();
      expect(await read('bob')).toBeDefined();
      await world.stores.consents.give('alice', 'shop', new Map([[FILES, ['write']]]), YEAR);
      expect(await read()).toEqual({ [FILES]: ['write'] });
    });

    it('is in the list of its person until withdrawn or forgotten', async () => {
      const { consents } = world.stores;
      const listed = async (subject = 'alice') => {
        const given = await consents.list(subject);
        const plain = given.map(({ clientUid, access }) => ({ clientUid, access: Object.fromEntries(access) }));
        return plain.sort((one, other) => one.clientUid.localeCompare(other.clientUid));
      };
      expect(await listed()).toEqual([]);
      await consents.give('alice', 'shop', new Map([[API, ['read']]]), YEAR);
      await consents.give('alice', 'mail', new Map([[FILES, ['send']]]), DAY);
      await consents.give('alice', 'blog', new Map([[API, ['post']]]), YEAR);
      await consents.give('bob', 'shop', new Map([[API, ['read']]]), YEAR);
      await consents.withdraw('alice', 'blog');
      const shop = { clientUid: 'shop', access: { [API]: ['read'] } };
      expect(await listed()).toEqual([{ clientUid: 'mail', access: { [FILES]: ['send'] } }, shop]);
      expect(await listed('bob')).toEqual([shop]);
      world.advance(DAY);
      expect(await listed()).toEqual([shop]);
    });
  });
}
