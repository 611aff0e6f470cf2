// The contract of PersonStore: what identity providers have said of people.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AssertedRecord, NewAssertedRecord } from '../../src/oauth/ports/person-store.ts';
import { DAY, uniqueId } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Of a subject of its own. */
export function assertedRecord(different: Partial<NewAssertedRecord> = {}): NewAssertedRecord {
  const record: NewAssertedRecord = {
    subject: `usr_${uniqueId()}`,
    provider: 'corp',
    issuer: 'https://corp.example.com',
    type: 'OIDC',
    username: 'ada',
    displayName: 'Ada Lovelace',
    email: 'ada@corp.example.com',
    groups: ['corp:dev', 'a group, with "signs" and 李雷'],
  };
  return Object.assign(record, different);
}

/** Runs the contract on one implementation. */
export function personStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: the record of a person`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    async function recorded(record: NewAssertedRecord, lifetime: number): Promise<AssertedRecord> {
      const stamped = await world.stores.persons.remember(record, lifetime);
      await world.stores.persons.seal(stamped, 'mac');
      return { ...stamped, mac: 'mac' };
    }

    it('is found by the subject and no other, with the time of the store', async () => {
      const earliest = world.now();
      const record = assertedRecord();
      const found = await recorded(record, DAY);
      expect(found).toEqual({ ...record, verifiedAt: found.verifiedAt, mac: 'mac' });
      expect(found.verifiedAt).toBeGreaterThanOrEqual(earliest);
      expect(found.verifiedAt).toBeLessThanOrEqual(world.now());
      expect(await world.stores.persons.read(record.subject)).toEqual(found);
      expect(await world.stores.persons.read('usr_other')).toBeUndefined();
    });

    it('without a name, an address and groups → found as such', async () => {
      const record = assertedRecord({ displayName: undefined, email: undefined, groups: [] });
      const found = await recorded(record, DAY);
      expect(await world.stores.persons.read(record.subject)).toEqual(found);
    });

    it('with an address that is not verified → found with it', async () => {
      const record = assertedRecord({ email: undefined, unverifiedEmail: 'eve@corp.example.com' });
      const found = await recorded(record, DAY);
      expect([found.unverifiedEmail, await world.stores.persons.read(record.subject)]).toEqual([
        'eve@corp.example.com',
        found,
      ]);
    });

    it('is known until just before the lifetime ends', async () => {
      const { subject } = await recorded(assertedRecord(), DAY);
      world.advance(DAY - world.tick);
      expect(await world.stores.persons.read(subject)).toBeDefined();
      world.advance(world.tick);
      expect(await world.stores.persons.read(subject)).toBeUndefined();
    });

    it('is replaced whole, and lives on from then', async () => {
      const record = assertedRecord();
      await recorded(record, DAY);
      world.advance(DAY / 2);
      const later = await recorded(assertedRecord({ subject: record.subject, groups: [] }), DAY);
      world.advance(DAY - world.tick);
      expect(await world.stores.persons.read(record.subject)).toEqual(later);
    });

    it('stands until the next one is sealed, and to its own end', async () => {
      const record = assertedRecord();
      const found = await recorded(record, DAY);
      world.advance(DAY / 2);
      await world.stores.persons.remember(assertedRecord({ subject: record.subject, groups: [] }), DAY);
      expect(await world.stores.persons.read(record.subject)).toEqual(found);
      world.advance(DAY / 2);
      expect(await world.stores.persons.read(record.subject)).toBeUndefined();
    });

    it('of two that wait, the later one is sealed', async () => {
      const earlier = await world.stores.persons.remember(assertedRecord(), DAY);
      world.advance(world.tick);
      const later = await world.stores.persons.remember(assertedRecord({ subject: earlier.subject }), DAY);
      await world.stores.persons.seal(earlier, 'mac of the earlier one');
      expect(await world.stores.persons.read(earlier.subject)).toBeUndefined();
      await world.stores.persons.seal(later, 'mac');
      expect(await world.stores.persons.read(earlier.subject)).toEqual({ ...later, mac: 'mac' });
    });
  });
}
