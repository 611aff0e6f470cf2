// The contract of UseStore: which clients have used the access of a person, and when.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { USE_INTERVAL, USE_MEMORY } from '../../src/oauth/ports/login-stores.ts';
import { CODE_LIFETIME, MINUTE, RETENTION, SECRET_HASH, sampleGrant } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const SHOP = 'uid-of-shop';

const ALICE = 'usr_alice';
const BOB = 'usr_bob';

/** Runs the contract of uses on one implementation. */
export function useStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: the use of a person’s access by a client`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const listed = async (subject = ALICE) => {
      const uses = await world.stores.uses.list(subject);
      return [...uses].sort((one, other) => (one.clientUid < other.clientUid ? -1 : 1));
    };

    it('given none → nothing', async () => {
      expect(await listed()).toEqual([]);
    });

    it('given one → first and last use are the time of the store', async () => {
      const earliest = world.now();
      await world.stores.uses.note(ALICE, 'shop');
      const [use] = await listed();
      expect(use).toEqual({ clientUid: 'shop', firstUsed: use?.firstUsed, lastUsed: use?.firstUsed });
      expect(use?.firstUsed).toBeGreaterThanOrEqual(earliest);
      expect(use?.firstUsed).toBeLessThanOrEqual(world.now());
    });

    it('given another within the hour → the same times', async () => {
      await world.stores.uses.note(ALICE, 'shop');
      const before = await listed();
      world.advance(USE_INTERVAL - world.tick);
      await world.stores.uses.note(ALICE, 'shop');
      expect(await listed()).toEqual(before);
    });

    it('given another after an hour → that is the last, and the first stays', async () => {
      await world.stores.uses.note(ALICE, 'shop');
      const [{ firstUsed } = { firstUsed: 0 }] = await listed();
      world.advance(USE_INTERVAL);
      const earliest = world.now();
      await world.stores.uses.note(ALICE, 'shop');
      const [use] = await listed();
      expect(use?.firstUsed).toBe(firstUsed);
      expect(use?.lastUsed).toBeGreaterThanOrEqual(earliest);
    });

    it('given a code → one, with the interval and the first time of any other', async () => {
      const issue = (grant = sampleGrant()) => world.stores.grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      const earliest = world.now();
      await issue();
      const [first] = await listed();
      expect(first).toEqual({ clientUid: SHOP, firstUsed: first?.firstUsed, lastUsed: first?.firstUsed });
      expect(first?.firstUsed).toBeGreaterThanOrEqual(earliest);
      world.advance(USE_INTERVAL - world.tick);
      await issue();
      expect(await listed()).toEqual([first]);
      world.advance(world.tick);
      const later = world.now();
      await issue();
      const [last] = await listed();
      expect(last?.firstUsed).toBe(first?.firstUsed);
      expect(last?.lastUsed).toBeGreaterThanOrEqual(later);
      expect(await listed(BOB)).toEqual([]);
    });

    it('given a code that is refused, or issued again, after the use was forgotten → none', async () => {
      const { grants, uses } = world.stores;
      const grant = sampleGrant();
      await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      await uses.forget(ALICE, SHOP);
      await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      const login = { sessionId: grant.grantId, sid: 'sid', offline: false, namespace: 'default' };
      const refused = await grants.issue(sampleGrant({ login }), SECRET_HASH, CODE_LIFETIME, RETENTION);
      expect(refused.outcome).toBe('signed_out');
      expect(await listed()).toEqual([]);
    });

    it('is that of one person and one client', async () => {
      const { uses } = world.stores;
      for (const clientUid of ['shop', 'mail']) await uses.note(ALICE, clientUid);
      await uses.note(BOB, 'shop');
      expect((await listed()).map(({ clientUid }) => clientUid)).toEqual(['mail', 'shop']);
      expect((await listed(BOB)).map(({ clientUid }) => clientUid)).toEqual(['shop']);
      expect(await listed('shop')).toEqual([]);
    });

    it('once forgotten is gone, alone, and the next is a first one', async () => {
      const { uses } = world.stores;
      for (const clientUid of ['shop', 'mail']) await uses.note(ALICE, clientUid);
      await uses.note(BOB, 'shop');
      await uses.forget(ALICE, 'shop');
      await uses.forget(ALICE, 'shop');
      expect((await listed()).map(({ clientUid }) => clientUid)).toEqual(['mail']);
      expect(await listed(BOB)).toHaveLength(1);
      world.advance(MINUTE);
      const earliest = world.now();
      await uses.note(ALICE, 'shop');
      expect((await listed()).at(-1)?.firstUsed).toBeGreaterThanOrEqual(earliest);
    });

    it('given none for a year → gone, also where another client is used', async () => {
      const { uses } = world.stores;
      await uses.note(ALICE, 'shop');
      world.advance(USE_MEMORY - world.tick);
      await uses.note(ALICE, 'mail');
      expect((await listed()).map(({ clientUid }) => clientUid)).toEqual(['mail', 'shop']);
      world.advance(world.tick);
      expect((await listed()).map(({ clientUid }) => clientUid)).toEqual(['mail']);
      const earliest = world.now();
      await uses.note(ALICE, 'shop');
      expect((await listed()).at(-1)?.firstUsed).toBeGreaterThanOrEqual(earliest);
    });

    it('given the same ones at once → one entry for each client', async () => {
      const clients = Array.from({ length: 50 }, (_, index) => `client-${String(index).padStart(2, '0')}`);
      await Promise.all([...clients, ...clients].map((clientUid) => world.stores.uses.note(ALICE, clientUid)));
      expect((await listed()).map(({ clientUid }) => clientUid)).toEqual(clients);
    });
  });
}
