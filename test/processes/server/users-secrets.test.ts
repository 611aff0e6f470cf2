// The Secrets with users of a replica over time: what counts of each, and what is reported about it.

import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import { UserLists } from '../../../src/login/local/user-lists.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { UsersSecrets } from '../../../src/processes/server/users-secrets.ts';

const passwordHash = await hashPassword('correct horse');
const ada = { username: 'ada', passwordHash };
const grace = { username: 'grace', passwordHash };

/** @param list an object, or the text under `users.yaml`; undefined: another key */
function secret(name: string, list: unknown, created = 1): KubernetesObject {
  const text = typeof list === 'string' ? list : JSON.stringify(list);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'grantry.dev/users',
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: new Date(created * 1000).toISOString(),
    },
    data: list === undefined ? { people: '' } : { 'users.yaml': Buffer.from(text).toString('base64') },
  };
}

function world() {
  let present: readonly KubernetesObject[] = [];
  const lines: string[] = [];
  const lists = new UserLists({ users: new LocalUsers({ users: [], clock: systemClock }) });
  const note = (level: string) => (fields: object, text: string) =>
    void lines.push(`${level} ${JSON.stringify(fields)} ${text}`);
  const log = { info: note('info'), error: note('error') } as never;
  const secrets = new UsersSecrets({ secrets: () => present, lists, log });
  return {
    lines,
    lists,
    secrets,
    async has(...objects: readonly KubernetesObject[]) {
      present = objects;
      await secrets.refresh();
    },
    async names() {
      const found = await Promise.all(['ada', 'grace'].map((name) => lists.users.lookUp(name)));
      return found.map((person) => person?.credential !== undefined);
    },
  };
}

describe('Secrets with users', () => {
  it('→ the people of all of them; of one that is deleted none', async () => {
    const { has, names, secrets, lines } = world();
    await secrets.refresh();
    expect(await names()).toEqual([false, false]);
    await has(secret('a', [ada]), secret('b', [grace]));
    expect([await names(), secrets.faults.size, secrets.fault]).toEqual([[true, true], 0, undefined]);
    await has(secret('b', [grace]));
    expect(await names()).toEqual([false, true]);
    // What did not change is not read again.
    expect(lines).toHaveLength(2);
    await has(secret('b', [Object.assign({}, grace, { disabled: true })]));
    expect(await names()).toEqual([false, false]);
  });

  it('with one that is faulty → it keeps what it had less what it denies, and is named without any of its text', async () => {
    const { has, names, secrets, lines } = world();
    await has(secret('a', [ada, grace]));
    const typo = { username: 'eve-is-secret', passwordhash: passwordHash };
    await has(secret('a', [ada, Object.assign({}, grace, { disabled: true }), typo]), secret('b', [], 2));
    expect(await names()).toEqual([true, false]);
    expect([...secrets.faults]).toEqual([
      ['uid-a', { name: 'a', message: expect.stringMatching(/^the list has a fault at users\[2\]\.passwordHash; /) }],
    ]);
    expect(secrets.fault).toMatch(/^the Secret a: the list has a fault/);
    expect(`${lines}${secrets.fault}`).not.toMatch(/argon2id|eve-is-secret/);
    await has(secret('a', [ada, grace]));
    expect([await names(), secrets.faults.size]).toEqual([[true, true], 0]);
  });

  it.each([
    ['no text under users.yaml', undefined, /^there is no text under users\.yaml; /],
    ['a text that is no YAML', '- [', /^the list has a fault at users; /],
    ['a text that is no list', 'ada: {}', /^the list has a fault at users; /],
  ])('with %s → the people of before, and a fault', async (_case, list, message) => {
    const { has, names, secrets } = world();
    await has(secret('a', [ada]));
    await has(secret('a', list));
    expect([await names(), [...secrets.faults.values()]]).toEqual([
      [true, false],
      [{ name: 'a', message: expect.stringMatching(message) }],
    ]);
  });

  it('created again with a fault → another Secret, which has given no one', async () => {
    const { has, names, lists } = world();
    await has(secret('a', [ada]));
    const anew = secret('a', '- [');
    await has(Object.assign({}, anew, { metadata: Object.assign({}, anew.metadata, { uid: 'another' }) }));
    expect([await names(), lists.users.isWhole]).toEqual([[false, false], false]);
  });

  it('that name one user → the older one counts, the newer is reported', async () => {
    const { has, secrets, lists } = world();
    await has(secret('a', [Object.assign({}, ada, { email: 'newer' }), grace], 2), secret('b', [ada]));
    const { subject = '' } = (await lists.users.lookUp('ada')) ?? {};
    expect([(await lists.users.find(subject))?.email, [...secrets.faults.keys()]]).toEqual([undefined, ['uid-a']]);
    expect(secrets.fault).toMatch(/^the Secret a: users\[0\] does not count/);
  });

  it('changed while they are read → the last state is served, and no call is lost', async () => {
    const { has, names } = world();
    await Promise.all([has(secret('a', [ada])), has(secret('a', [ada, grace])), has(secret('b', [grace]))]);
    expect(await names()).toEqual([false, true]);
  });
});
