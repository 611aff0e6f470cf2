// The contract of PersonStore: what identity providers have said of people.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NewVouchedRecord } from '../../src/oauth/ports/person-store.ts';
import { DAY, uniqueId } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Of a subject of its own. */
export function vouchedRecord(different: Partial<NewVouchedRecord> = {}): NewVouchedRecord {
  const record: NewVouchedRecord = {
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

    it('is found by the subject and no other, with the time of the store', async () => {
      const earliest = world.now();
      const record = vouchedRecord();
      const noted = await world.stores.persons.remember(record, DAY);
      expect(noted).toEqual({ ...record, verifiedAt: noted.verifiedAt });
      expect(noted.verifiedAt).toBeGreaterThanOrEqual(earliest);
      expect(noted.verifiedAt).toBeLessThanOrEqual(world.now());
      expect(await world.stores.persons.read(record.subject)).toEqual(noted);
      expect(await world.stores.persons.read('usr_other')).toBeUndefined();
    });

    it('without a name, an address and groups → found as such', async () => {
      const record = vouchedRecord({ displayName: undefined, email: undefined, groups: [] });
      const noted = await world.stores.persons.remember(record, DAY);
      expect(await world.stores.persons.read(record.subject)).toEqual(noted);
    });

    it('is known until just before the lifetime ends', async () => {
      const { subject } = await world.stores.persons.remember(vouchedRecord(), DAY);
      world.advance(DAY - world.tick);
      expect(await world.stores.persons.read(subject)).toBeDefined();
      world.advance(world.tick);
      expect(await world.stores.persons.read(subject)).toBeUndefined();
    });

    it('is replaced whole, and lives on from then', async () => {
      const record = vouchedRecord();
      await world.stores.persons.seal(await world.stores.persons.remember(record, DAY), 'mac');
      world.advance(DAY / 2);
      const later = await world.stores.persons.remember(vouchedRecord({ subject: record.subject, groups: [] }), DAY);
      world.advance(DAY - world.tick);
      expect(await world.stores.persons.read(record.subject)).toEqual(later);
    });

    it('keeps the MAC of this record, and not that of an earlier one', async () => {
      const earlier = await world.stores.persons.remember(vouchedRecord(), DAY);
      world.advance(world.tick);
      const later = await world.stores.persons.remember(vouchedRecord({ subject: earlier.subject }), DAY);
      await world.stores.persons.seal(earlier, 'mac of the earlier one');
      expect((await world.stores.persons.read(earlier.subject))?.mac).toBeUndefined();
      await world.stores.persons.seal(later, 'mac');
      expect((await world.stores.persons.read(earlier.subject))?.mac).toBe('mac');
    });
  });
}
