// People of identity providers beside local users: how long a provider's word counts, and what ends it.

import { beforeEach, describe, expect, it } from 'vitest';
import { BlockedPeople } from '../../src/login/blocked-people.ts';
import { Blocks } from '../../src/login/blocks.ts';
import { Everyone } from '../../src/login/everyone.ts';
import { LocalUsers } from '../../src/login/local/local-users.ts';
import { memoryStores } from '../../src/memory/stores.ts';
import type { PersonStore } from '../../src/oauth/ports/person-store.ts';
import type { IdentityProvider } from '../../src/oauth/registry/identity-provider.ts';
import { TestClock } from '../grantry.ts';
import { aGitHubProvider, anOidcProvider } from './upstream/providers.ts';

const ADA = {
  subject: 'usr_ada-------------------',
  username: 'ada',
  displayName: undefined,
  email: 'ada@corp.example.com',
  groups: ['corp:dev'],
  authTime: undefined,
};
const DAY = 86_400_000;
const corp = anOidcProvider;

let clock: TestClock;
let persons: PersonStore;
let served: IdentityProvider[];
let users: LocalUsers;
let people: Everyone;
let blocks: Blocks;
let ended: [string, number | undefined][];
let faults: unknown[];
/** What ending fails with. */
let end: (() => Promise<void>) | undefined;
beforeEach(() => {
  clock = new TestClock();
  persons = sealing(memoryStores({ clock }).persons);
  served = [anOidcProvider()];
  users = new LocalUsers({ clock, users: [{ username: 'alice', passwordHash: 'unused' }] });
  const providers = {
    provider: (name: string) => served.find((provider) => provider.name === name),
    get count() {
      return served.length;
    },
  };
  blocks = new Blocks();
  [ended, faults, end] = [[], [], undefined];
  const blocked = new BlockedPeople({
    blocks,
    clock,
    end: async (subject, before) => (end === undefined ? void ended.push([subject, before]) : end()),
    onFault: (fault) => void faults.push(fault),
  });
  people = new Everyone({ users, persons, providers, clock, blocked });
});

/** As the server has it: each record gets its MAC. */
function sealing(store: PersonStore): PersonStore {
  return {
    async remember(record, lifetime) {
      const stamped = await store.remember(record, lifetime);
      await store.seal(stamped, 'mac');
      return stamped;
    },
    seal: (record, mac) => store.seal(record, mac),
    read: (subject) => store.read(subject),
  };
}

async function signedIn() {
  await people.remember(ADA, anOidcProvider());
  const person = await people.find(ADA.subject);
  if (person === undefined) throw new Error('the provider has just asserted it');
  return person;
}

describe('a person of a provider', () => {
  it('that asserted the person → found, with the assertion', async () => {
    const verifiedAt = clock.now();
    const provider = { name: 'corp', issuer: 'https://corp.example.com', type: 'OIDC', verifiedAt };
    const { authTime: _unknown, ...said } = ADA;
    expect(await people.remember(ADA, anOidcProvider())).toEqual({ ...said, provider });
    expect(await people.find(ADA.subject)).toEqual({ ...said, provider });
    expect(people.revokedBefore(await signedIn())).toBe(0);
  });

  it('who signs in twice at once, for the first time → known at both, though neither record can be read yet', async () => {
    const store = memoryStores({ clock }).persons;
    persons.read = (subject) => store.read(subject);
    persons.remember = async (record, lifetime) => {
      const stamped = await store.remember(record, lifetime);
      clock.advance(1);
      await store.remember(record, lifetime);
      await store.seal(stamped, 'mac');
      return stamped;
    };
    expect(await people.remember(ADA, anOidcProvider())).toMatchObject({ subject: ADA.subject });
    expect(await people.find(ADA.subject)).toBeUndefined();
  });

  it('who is revoked until later, or whose provider is suspended meanwhile → does not sign in', async () => {
    for (const changes of [{ revokedBefore: clock.now() + 1 }, { isSuspended: true }]) {
      served = [anOidcProvider(changes)];
      expect(await people.remember(ADA, anOidcProvider())).toBeUndefined();
    }
  });

  it('is known until `verifyEvery` after that, and again from the next sign-in on', async () => {
    const person = await signedIn();
    clock.advance(DAY - 1);
    expect(await people.find(ADA.subject)).toBeDefined();
    clock.advance(1);
    expect([await people.find(ADA.subject), people.revokedBefore(person)]).toEqual([
      undefined,
      Number.POSITIVE_INFINITY,
    ]);
    expect(await signedIn()).toBeDefined();
  });

  it('whose provider now asks for a shorter time → not known any longer', async () => {
    await signedIn();
    clock.advance(DAY / 2);
    served = [anOidcProvider({ verifyEvery: DAY / 2 })];
    expect(await people.find(ADA.subject)).toBeUndefined();
  });

  it.each<[string, IdentityProvider[]]>([
    ['deleted', [anOidcProvider({ name: 'other' })]],
    ['suspended', [anOidcProvider({ isSuspended: true })]],
    ['of another issuer', [anOidcProvider({ issuer: 'https://other.example.com' })]],
    ['of another type', [aGitHubProvider({ host: 'https://corp.example.com' })]],
  ])('whose provider is %s → holds nothing, at once', async (_case, now) => {
    const person = await signedIn();
    served = now;
    expect([await people.find(ADA.subject), people.revokedBefore(person)]).toEqual([
      undefined,
      Number.POSITIVE_INFINITY,
    ]);
  });

  it('whose provider has a fault of its Secret or of reach → keeps all', async () => {
    const person = await signedIn();
    served = [anOidcProvider({ credentials: undefined })];
    expect([await people.find(ADA.subject), people.revokedBefore(person)]).toEqual([person, 0]);
  });

  it('whose provider revokes what came before a time → by that time; ahead → nothing', async () => {
    const person = await signedIn();
    const revokedBefore = clock.now() + 1000;
    served = [anOidcProvider({ revokedBefore })];
    expect(people.revokedBefore(person)).toBe(Number.POSITIVE_INFINITY);
    clock.advance(1000);
    expect([await people.find(ADA.subject), people.revokedBefore(person)]).toEqual([person, revokedBefore]);
  });
});

describe('a local user', () => {
  it('→ found without a store', async () => {
    persons.read = () => Promise.reject(new Error('no store is read'));
    const { subject = '' } = (await people.lookUp('alice')) ?? {};
    const alice = await people.find(subject);
    expect([alice?.username, alice?.provider]).toEqual(['alice', undefined]);
  });

  it('of an install without providers, unknown → no store is read', async () => {
    served = [];
    persons.read = () => Promise.reject(new Error('no store is read'));
    expect(await people.find('usr_other')).toBeUndefined();
  });
});

describe('a person of a provider that a block means', () => {
  const [byName, byAddress] = [
    { provider: 'corp', username: 'ADA', disabled: true },
    { provider: 'corp', email: 'Ada@home.example.com', disabled: true },
  ];
  const settled = () => new Promise((done) => setImmediate(done));

  it('→ holds nothing, at once, and it is ended once; a later change of the blocks ends it again', async () => {
    const person = await signedIn();
    blocks.replace([byName]);
    expect([people.revokedBefore(person), await people.find(ADA.subject)]).toEqual([
      Number.POSITIVE_INFINITY,
      undefined,
    ]);
    people.revokedBefore(person);
    expect(ended).toEqual([[ADA.subject, undefined]]);
    blocks.replace([]);
    expect(await people.find(ADA.subject)).toEqual(person);
    blocks.replace([byName]);
    people.revokedBefore(person);
    expect(ended).toHaveLength(2);
  });

  it('by an address that the provider did not verify → the same, also when the record is read later', async () => {
    blocks.replace([byAddress]);
    expect(await signedIn()).toBeDefined();
    await people.remember(
      Object.assign({}, ADA, { email: undefined, unverifiedEmail: 'ada@home.example.com' }),
      corp(),
    );
    expect([await people.find(ADA.subject), ended]).toEqual([undefined, [[ADA.subject, undefined]]]);
    blocks.replace([]);
    const found = await people.find(ADA.subject);
    expect([found?.email, found?.provider?.unverifiedEmail]).toEqual([undefined, 'ada@home.example.com']);
  });

  it('before a time → by that time; ahead → nothing until it has come', async () => {
    const person = await signedIn();
    const revokeTokensBefore = clock.now() + 1000;
    blocks.replace([{ provider: 'corp', username: 'ada', revokeTokensBefore }]);
    expect(people.revokedBefore(person)).toBe(Number.POSITIVE_INFINITY);
    clock.advance(1000);
    expect([await people.find(ADA.subject), people.revokedBefore(person)]).toEqual([person, revokeTokensBefore]);
    served = [corp({ revokedBefore: revokeTokensBefore - 1 })];
    expect(people.revokedBefore(person)).toBe(revokeTokensBefore);
    expect(ended).toEqual([[ADA.subject, undefined]]);
  });

  it('while the store is unavailable → shut out all the same, and ended by the next request', async () => {
    const person = await signedIn();
    blocks.replace([byName]);
    const fault = new Error('the store is unavailable');
    end = () => Promise.reject(fault);
    expect(people.revokedBefore(person)).toBe(Number.POSITIVE_INFINITY);
    await settled();
    expect(faults).toEqual([fault]);
    end = undefined;
    people.revokedBefore(person);
    expect(ended).toEqual([[ADA.subject, undefined]]);
  });
});
