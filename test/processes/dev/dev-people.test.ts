// The lists of people that `grantry dev` serves over time.

import { expect, it } from 'vitest';
import { usersIn } from '../../../src/folder-registry/users-in-manifests.ts';
import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import { DevPeople, userOf } from '../../../src/processes/dev/dev-people.ts';
import { manifestsOf } from '../../manifests/a-folder.ts';

const PASSWORD = 'a long password';
const HASH = await hashPassword(PASSWORD);
const clock = { now: () => Date.parse('2026-03-01T00:00:00Z') };

type Entry = Readonly<Record<string, unknown>>;

const entry = (username: string, more: Entry = {}): Entry => ({ username, passwordHash: HASH, ...more });

function secret(entries: readonly Entry[] | string, name = 'people'): string {
  const list = typeof entries === 'string' ? entries : JSON.stringify(entries);
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\ntype: grantry.dev/users\nstringData: {users.yaml: ${JSON.stringify(list)}}\n`;
}

async function peopleOf(given: readonly string[] = []) {
  const users = await Promise.all(given.map((name) => userOf(`${name}:${PASSWORD}`)));
  const people = new DevPeople(new LocalUsers({ users: [], clock }), users, true);
  return {
    people,
    /** Serves these Secrets. @returns who of `names` can sign in, and how many faults there are */
    serve: async (secrets: readonly string[], names: readonly string[]) => {
      const { objects } = await manifestsOf({ 'people.yaml': secrets.join('---\n') });
      const { lists, faults } = usersIn(objects, { now: clock.now(), providers: new Set() });
      await people.replace({ userLists: lists });
      const able: string[] = [];
      for (const name of names) {
        const { subject = '' } = (await people.users.lookUp(name)) ?? {};
        if ((await people.users.find(subject)) !== undefined) able.push(name);
      }
      return { able, faults: faults.length };
    },
  };
}

it('given a list that gets a fault → only the people that it denies are shut out', async () => {
  const { serve } = await peopleOf();
  const names = ['ann', 'bob', 'carol', 'dora'];
  const sound = [entry('ann'), entry('bob'), entry('carol')];
  expect(await serve([secret(sound)], names)).toEqual({ able: ['ann', 'bob', 'carol'], faults: 0 });
  const faulty = [entry('ann', { emial: 'a@example.com' }), entry('bob', { disabled: true }), entry('dora')];
  // Once more with the same fault: nothing of what it had before is forgotten.
  for (let times = 0; times < 2; times++) {
    expect(await serve([secret(faulty)], names)).toEqual({ able: ['ann'], faults: 1 });
  }
  expect(await serve([secret('no list')], names)).toEqual({ able: ['ann'], faults: 1 });
  expect(await serve([secret([...sound, entry('dora')])], names)).toEqual({ able: names, faults: 0 });
});

it('given a Secret that loses its text → its people stay; given one that is deleted → they are gone', async () => {
  const { serve } = await peopleOf();
  const others = secret([entry('bob')], 'others');
  await serve([secret([entry('ann')]), others], []);
  const empty = secret('').replace(/stringData.*/, 'stringData: {}');
  expect(await serve([empty, others], ['ann', 'bob'])).toEqual({ able: ['ann', 'bob'], faults: 1 });
  expect(await serve([others], ['ann', 'bob'])).toEqual({ able: ['bob'], faults: 0 });
});

it('given a list with a fault at the start → it gives no user and keeps its names from younger lists', async () => {
  const { people, serve } = await peopleOf();
  const faulty = secret([entry('ann', { emial: '' })], 'a');
  expect(await serve([faulty, secret([entry('ann'), entry('bob')], 'b')], ['ann', 'bob', 'demo'])).toEqual({
    able: ['bob'],
    faults: 2,
  });
  expect(people.users.isWhole).toBe(false);
});

it('given two lists with one name → that of the command line counts, then that of the older Secret', async () => {
  const { people, serve } = await peopleOf(['ann']);
  const dated = (year: number) => (text: string) =>
    text.replace('metadata: {', `metadata: {creationTimestamp: '${year}-01-01T00:00:00Z', `);
  const young = dated(2025)(
    secret([entry('ann', { email: 'secret@example.com' }), entry('bob', { email: 'young@example.com' })], 'a'),
  );
  const old = dated(2024)(secret([entry('bob', { email: 'old@example.com' })], 'b'));
  expect((await serve([young, old], ['ann', 'bob'])).able).toEqual(['ann', 'bob']);
  const emailOf = async (name: string) => {
    const { subject = '' } = (await people.users.lookUp(name)) ?? {};
    return (await people.users.find(subject))?.email;
  };
  expect([await emailOf('ann'), await emailOf('bob')]).toEqual([undefined, 'old@example.com']);
  const { objects } = await manifestsOf({ 'people.yaml': `${young}---\n${old}` });
  const { faults } = usersIn(objects, { now: clock.now(), providers: new Set() });
  expect(faults.map(({ place }) => place.document)).toEqual([1]);
});

it('given no Secret and no option → demo, until there is a Secret, and again without', async () => {
  const { people, serve } = await peopleOf();
  expect(await serve([], ['demo'])).toEqual({ able: ['demo'], faults: 0 });
  expect(people.hasDemo).toBe(true);
  expect(await serve([secret([entry('ann')])], ['ann', 'demo'])).toEqual({ able: ['ann'], faults: 0 });
  expect(people.hasDemo).toBe(false);
  expect((await serve([], ['ann', 'demo'])).able).toEqual(['demo']);
});
