// The contract of UserStore: what a change of a local user ends, and that it ends once.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Session, USER_ABSENCE } from '../../src/oauth/ports/login-stores.ts';
import { DAY, issued, MINUTE, redeemed, rotateRequest, SECRET_HASH, sampleGrant, signedIn } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const ALICE = 'usr_alice';
const BOB = 'usr_bob';
const CLIENT = 'uid-of-shop';

/** Runs the contract of the recorded users on one implementation. */
export function userStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a local user`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    /** What a person holds: a session, a grant, a consent, a use. @returns whether each is still active */
    async function holdings(subject: string, credential = 'first') {
      const { sessions, grants, consents, uses } = world.stores;
      const session: Session = await signedIn(sessions, { subject }, credential);
      const grant = await redeemed(grants, { subject, authTime: session.authTime });
      await consents.give(subject, CLIENT, new Map([['https://api.example', ['read']]]), DAY);
      await uses.note(subject, CLIENT);
      world.advance(world.tick);
      let generation = 0;
      return async () => {
        const rotation = await grants.rotate(rotateRequest(grant, generation));
        if ('generation' in rotation) generation = rotation.generation;
        return {
          session: (await sessions.use(session.sessionId)) !== undefined,
          grant: rotation.outcome,
          consent: (await consents.read(subject, CLIENT)) !== undefined,
          use: (await uses.list(subject)).length > 0,
        };
      };
    }
    const UNTOUCHED = { session: true, grant: 'rotated', consent: true, use: true };
    const SIGNED_OUT = { session: false, grant: 'ended', consent: true, use: true };
    const FORGOTTEN = { session: false, grant: 'ended', consent: false, use: false };

    it('is recorded at first, which ends nothing', async () => {
      const { users } = world.stores;
      const held = await holdings(BOB);
      expect(await users.record(ALICE, 'first')).toBe('recorded');
      expect(await users.record(BOB, 'first')).toBe('unchanged');
      expect(await users.list()).toEqual(
        new Map([
          [ALICE, { credential: 'first', isAbsent: false }],
          [BOB, { credential: 'first', isAbsent: false }],
        ]),
      );
      expect(await held()).toEqual(UNTOUCHED);
    });

    it('with another credential loses sessions and grants, once, and no other user does', async () => {
      const { users, sessions } = world.stores;
      const [ofAlice, ofBob] = [await holdings(ALICE), await holdings(BOB)];
      expect(await users.record(ALICE, 'second')).toBe('outdated');
      expect(await users.record(ALICE, 'second', 'third')).toBe('outdated');
      expect(await ofAlice()).toEqual(UNTOUCHED);
      expect(await users.record(ALICE, 'second', 'first')).toBe('ended');
      expect([await ofAlice(), await ofBob()]).toEqual([SIGNED_OUT, UNTOUCHED]);
      expect(await sessions.list(ALICE)).toEqual([]);
      world.advance(world.tick);
      const again = await holdings(ALICE, 'second');
      expect(await users.record(ALICE, 'second')).toBe('unchanged');
      expect(await again()).toEqual(UNTOUCHED);
    });

    it('whose code is unredeemed when the credential changes finds it refused', async () => {
      const { users, grants } = world.stores;
      await users.record(ALICE, 'first');
      const grant = await issued(grants, { authTime: world.now() });
      await users.record(ALICE, 'second', 'first');
      world.advance(world.tick);
      expect(await grants.issue(sampleGrant({ authTime: grant.authTime }), SECRET_HASH, MINUTE, MINUTE)).toEqual({
        outcome: 'outdated',
      });
    });

    it('who is absent loses nothing before an hour has passed, and then all, consents too', async () => {
      const { users } = world.stores;
      const held = await holdings(ALICE);
      await users.recordAbsence(ALICE);
      expect((await users.list()).get(ALICE)).toEqual({ credential: 'first', isAbsent: true });
      world.advance(USER_ABSENCE - 2 * world.tick);
      await users.recordAbsence(ALICE);
      expect(await held()).toMatchObject({ grant: 'rotated', consent: true });
      world.advance(2 * world.tick);
      expect(await users.recordAbsence(ALICE)).toBe('ended');
      expect(await held()).toEqual(FORGOTTEN);
      expect(await users.list()).toEqual(new Map());
      expect(await users.recordAbsence(ALICE)).toBe('unknown');
    });

    it('who returns within an hour with the same credential has lost nothing', async () => {
      const { users } = world.stores;
      const held = await holdings(ALICE);
      await users.recordAbsence(ALICE);
      world.advance(10 * MINUTE);
      expect(await users.record(ALICE, 'first')).toBe('unchanged');
      expect(await held()).toEqual(UNTOUCHED);
      world.advance(USER_ABSENCE);
      // A new absence begins.
      expect(await users.recordAbsence(ALICE)).toBe('absent');
    });

    it.each([
      ['within an hour with another credential', 10 * MINUTE, 'second'],
      ['after two hours with the same credential', 2 * USER_ABSENCE, 'first'],
    ])('who returns %s has lost all, consents too', async (_name, absence, credential) => {
      const { users } = world.stores;
      const held = await holdings(ALICE);
      await users.recordAbsence(ALICE);
      world.advance(absence);
      expect(await users.record(ALICE, credential, 'first')).toBe('ended');
      expect(await held()).toEqual(FORGOTTEN);
    });

    it('that no list has named is neither marked absent nor ended', async () => {
      const { users } = world.stores;
      expect(await users.recordAbsence(ALICE)).toBe('unknown');
      expect(await users.list()).toEqual(new Map());
    });
  });
}
