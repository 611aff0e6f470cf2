import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Denials, hashPassword, LocalUsers, UsersFileError } from '../../../src/login/local/local-users.ts';
import { parseUsers } from '../../../src/login/local/users-yaml.ts';
import { OAuthError } from '../../../src/oauth/ports/error.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { blockedMilliseconds, COSTLY_BEFORE, costlyYaml, threadMilliseconds } from '../../manifests/costly-yaml.ts';

const aliceHash = await hashPassword('correct horse');
const bobHash = await hashPassword('battery staple');
const alice = { username: 'alice', passwordHash: aliceHash, displayName: 'Alice Ang' };
const bob = { username: 'bob', passwordHash: bobHash };

const SUB = 'usr_0123456789-_abcdefghij';
const REVOKED_FIELD = 'users[0].revokeTokensBefore';

function revokedBefore(time: unknown) {
  return { ...alice, revokeTokensBefore: time };
}

describe('a users file', () => {
  it('names people with all fields of an entry', () => {
    const users = parseUsers(`
- username: alice
  passwordHash: ${aliceHash}
  displayName: Alice Ang
  email: alice@example.com
  groups: [staff, on-call]
- username: bob
  passwordHash: ${bobHash}
  disabled: true
`);
    expect(users).toEqual([
      { ...alice, email: 'alice@example.com', groups: ['staff', 'on-call'] },
      { ...bob, disabled: true },
    ]);
  });

  it('names people who are blocked by entries without a hash', () => {
    const users = parseUsers(`
- provider: corp
  email: Eve@Corp.Example.com
  disabled: true
- {provider: local, username: bob, revokeTokensBefore: "2026-01-31T12:00:00Z"}
- {sub: ${SUB}, disabled: true}
- {provider: corp, sub: ${SUB}, disabled: true, revokeTokensBefore: "2026-01-31T12:00:00Z"}
`);
    const revokeTokensBefore = Date.UTC(2026, 0, 31, 12);
    expect(users).toEqual([
      { provider: 'corp', email: 'Eve@Corp.Example.com', disabled: true },
      { provider: 'local', username: 'bob', revokeTokensBefore },
      { sub: SUB, disabled: true },
      { provider: 'corp', sub: SUB, disabled: true, revokeTokensBefore },
    ]);
  });

  it('may be empty', () => {
    expect(parseUsers('')).toEqual([]);
    expect(parseUsers('[]')).toEqual([]);
  });

  it.each([
    ['is a mapping', 'alice: x', 'users'],
    ['has an unknown field', [{ ...alice, passwort: 'x' }], 'users[0]'],
    ['has no hash', [alice, { username: 'bob' }], 'users[1].passwordHash'],
    ['has a bcrypt hash', [{ ...alice, passwordHash: '$2b$12$abcdefghijklmnopqrstuv' }], 'users[0].passwordHash'],
    ['has an argon2i hash', [{ ...alice, passwordHash: aliceHash.replace('2id', '2i') }], 'users[0].passwordHash'],
    ['has a clear password', [{ ...alice, passwordHash: 'correct horse' }], 'users[0].passwordHash'],
    ['asks for 4 TiB', [{ ...alice, passwordHash: aliceHash.replace('19456', '4294967295') }], 'users[0].passwordHash'],
    ['asks for 2 GiB', [{ ...alice, passwordHash: aliceHash.replace('19456', '2097152') }], 'users[0].passwordHash'],
    ['asks for 99 passes', [{ ...alice, passwordHash: aliceHash.replace('t=2', 't=99') }], 'users[0].passwordHash'],
    ['has a weak hash', [{ ...alice, passwordHash: aliceHash.replace('19456', '64') }], 'users[0].passwordHash'],
    ['has a hash of impossible length', [{ ...alice, passwordHash: oddHash(13, 25) }], 'users[0].passwordHash'],
    ['has a salt of impossible length', [{ ...alice, passwordHash: oddHash(13, 43) }], 'users[0].passwordHash'],
    ['has a hash with bits left over', [{ ...alice, passwordHash: oddHash(22, 43, 'B') }], 'users[0].passwordHash'],
    ['names a user twice', [alice, bob, alice], 'users[2].username'],
    [
      'gives an id twice',
      [
        { ...alice, id: '7' },
        { ...bob, id: '7' },
      ],
      'users[1].id',
    ],
    ['has an id that is a number', [{ ...alice, id: 7 }], 'users[0].id'],
    ['has an empty id', [{ ...alice, id: '' }], 'users[0].id'],
    ['revokes before a day that does not exist', [revokedBefore('2026-02-30T12:00:00Z')], REVOKED_FIELD],
    ['revokes before a time without an offset', [revokedBefore('2026-02-20T12:00:00')], REVOKED_FIELD],
    ['revokes before a number', [revokedBefore(1_767_225_600)], REVOKED_FIELD],
    ['names a user twice in two Unicode spellings', [named('é'), named('e\u0301')], 'users[1].username'],
    ['has a name with white space around it', [named(' alice')], 'users[0].username'],
    ['has a field twice', `- username: a\n  username: b\n  passwordHash: ${aliceHash}`, 'users[0]'],
    ['has a map as key', `- {username: a, passwordHash: ${aliceHash}}\n- {{a: 1}: 2}`, 'users[1]'],
    ['has a list as key of the whole', '? [a]\n: b', 'users'],
    ['is huge', '#'.repeat(256 * 1024 + 1), 'users'],
    ['nests brackets', '['.repeat(100_000), 'users'],
    ['nests blocks', '- '.repeat(100_000), 'users'],
    ['has directives', '%A\n'.repeat(50_000), 'users'],
    ['has a second document', '- username: a\n---\n- username: b\n', 'users'],
    ['has many documents', '---\n- a\n'.repeat(20_000), 'users'],
    ['is all commas', `[${','.repeat(100_000)}`, 'users'],
    ['is all anchors', '&a '.repeat(50_000), 'users'],
    ['is broken YAML', '- username: "alice\n  passwordHash: [', 'users'],
    ['is a YAML bomb', '- &a [x]\n- *a\n- *a', 'users'],
    ['blocks no person', [alice, { provider: 'corp', disabled: true }], 'users[1]'],
    ['blocks by two names', [{ provider: 'corp', email: 'a@b', username: 'a', disabled: true }], 'users[0]'],
    ['blocks a username without a provider', [{ username: 'a', disabled: true }], 'users[0].passwordHash'],
    ['blocks nothing', [{ provider: 'corp', email: 'a@b', disabled: false }], 'users[0]'],
    [
      'blocks by a provider that is no name',
      [{ provider: 'Corp!', email: 'a@b', disabled: true }],
      'users[0].provider',
    ],
    ['blocks by a sub that is none', [{ sub: 'eve', disabled: true }], 'users[0].sub'],
    ['blocks by an address that is no text', [{ provider: 'corp', email: 7, disabled: true }], 'users[0].email'],
    ['blocks until a time that is none', [{ sub: SUB, revokeTokensBefore: 'soon' }], 'users[0].revokeTokensBefore'],
    ['has a block with a field of a user', [{ sub: SUB, disabled: true, groups: [] }], 'users[0]'],
    ['has a user with a field of a block', [{ ...alice, provider: 'corp' }], 'users[0]'],
  ])('that %s is refused and the place is named', (_fault, source, place) => {
    expect(() => parseUsers(source)).toThrow(UsersFileError);
    expect(() => parseUsers(source)).toThrow(new RegExp(`^${place.replace(/[[\].]/g, '\\$&')}:`));
  });

  it('with a password instead of its hash says which field is missing, which is not known, and no value', () => {
    const messageOf = (source: unknown) => {
      try {
        parseUsers(source);
      } catch (error) {
        return String(error);
      }
      return undefined;
    };
    const message = messageOf('- username: ann\n  password: hunter2\n');
    expect(message).toMatch(/users\[0\]\.passwordHash: is missing; .*users\[0\]: .*: password$/);
    expect(message).not.toContain('hunter2');
    expect(messageOf([{ ...alice, [aliceHash]: 1, 'correct horse': 1 }])).not.toMatch(/argon2id|horse/);
    for (const wrong of [{ ...alice, username: 5 }, { ...alice, username: '' }, { ...alice, disabled: 'no' }, 'ann']) {
      expect(messageOf([wrong])).not.toMatch(/Invalid|expected|Too/);
    }
  });

  it('with many keys in one map costs no more than its length', () => {
    const keys = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: v`).join('\n');
    const timeOf = (source: string) =>
      threadMilliseconds(() => expect(() => parseUsers(source)).toThrow(UsersFileError));
    timeOf(keys(2_000));
    const [one, eight] = [timeOf(keys(2_500)), timeOf(keys(20_000))];
    // Each key compared with each other key would make it 64.
    expect(eight / one).toBeLessThan(32);
  });

  it.each(COSTLY_BEFORE)('of %s is refused, and the event loop is held for less than 250 ms', (_, text) => {
    expect(blockedMilliseconds(() => denialsIn(text))).toBeLessThan(250);
    expect(() => parseUsers(text)).toThrow(UsersFileError);
  });

  it('of any YAML indicators up to 8 KiB holds the event loop for less than 250 ms', () => {
    fc.assert(
      fc.property(costlyYaml, (text) => {
        expect(blockedMilliseconds(() => denialsIn(text))).toBeLessThan(250);
      }),
    );
  });

  it('never shows a hash in its error', () => {
    try {
      parseUsers([{ ...alice, passwordHash: `${aliceHash}!` }]);
      expect.unreachable();
    } catch (error) {
      expect(String(error)).not.toContain(aliceHash.slice(-20));
    }
  });
});

/** What still counts of a file with a fault; undefined for a file without. */
function denialsIn(source: unknown): Denials | undefined {
  try {
    parseUsers(source);
    return undefined;
  } catch (error) {
    if (!(error instanceof UsersFileError)) throw error;
    return error.denials;
  }
}

describe('a users file with a fault', () => {
  const denied = { ...alice, disabled: true };
  const revoked = new Map<string, number>();
  const both = { disabled: new Set(['alice']), revoked, named: new Set(['alice', 'bob']), blocks: [] };

  it.each<readonly [string, unknown, Denials]>([
    ['another entry lacks its hash → it counts', [denied, { username: 'bob' }], both],
    ['its own entry lacks its hash → it counts', [{ username: 'alice', disabled: true }, bob], both],
    ['its own entry has an unknown field → it counts', [{ ...denied, mail: 'x' }, bob], both],
    ['its entry is named twice → the one that disables counts', [alice, bob, denied], both],
    [
      'another entry has a key twice → it counts',
      '- {username: alice, disabled: true}\n- {username: bob, email: a, email: b}',
      both,
    ],
    [
      'its own entry says disabled twice → true counts',
      '- {username: alice, disabled: true, disabled: false}\n- {username: bob}',
      both,
    ],
    [
      'another entry has an alias → it counts',
      '- {username: alice, disabled: true}\n- {username: bob, email: *a}',
      both,
    ],
    [
      'another username cannot be read → it counts, and no user is known to be gone',
      [denied, { user: 'bob' }],
      { ...both, named: undefined },
    ],
    ['disabled is yes, as a text → it counts', [{ ...alice, disabled: 'yes' }, bob], both],
    ['disabled is an alias → it counts', '- {username: alice, disabled: *on}\n- {username: bob}', both],
    [
      'disabled is no, as a text → it does not count',
      [{ ...alice, disabled: 'No' }, bob],
      { ...both, disabled: new Set() },
    ],
    [
      'its username has white space around it → it counts',
      [{ ...denied, username: 'alice ' }, { username: 'bob' }],
      both,
    ],
    [
      'another entry revokes tokens → that counts',
      [denied, { username: 'bob', revokeTokensBefore: '2026-01-31T12:00:00Z' }],
      { ...both, revoked: new Map([['bob', Date.UTC(2026, 0, 31, 12)]]) },
    ],
    [
      'its time to revoke tokens before is no time → all is revoked',
      [{ ...alice, revokeTokensBefore: '31 January' }, bob],
      { ...both, disabled: new Set(), revoked: new Map([['alice', Number.POSITIVE_INFINITY]]) },
    ],
    [
      'blocks people → that counts, as far as it can be read',
      [
        denied,
        { username: 'bob' },
        { provider: 'corp', email: ' eve@corp.example.com', disabled: 'yes', reason: 'left' },
        { sub: SUB, revokeTokensBefore: 'soon' },
        { provider: 'corp', username: 7, disabled: true },
        { provider: { name: 'corp' }, sub: SUB, disabled: true },
        { provider: 'corp', email: 'ada@corp.example.com', disable: true },
        { username: 'eve', email: 'eve@corp.example.com', provider: 'corp', disabled: true },
      ],
      {
        ...both,
        blocks: [
          { provider: 'corp', email: 'eve@corp.example.com', disabled: true, revokeTokensBefore: 0 },
          { provider: undefined, sub: SUB, disabled: false, revokeTokensBefore: Number.POSITIVE_INFINITY },
          { provider: 'corp', email: 'eve@corp.example.com', disabled: true, revokeTokensBefore: 0 },
          { provider: 'corp', username: 'eve', disabled: true, revokeTokensBefore: 0 },
        ],
      },
    ],
    ['the text is no YAML → nothing counts', '- {username: alice, disabled: true}\n- [', {}],
    ['the file is no list → nothing counts', 'alice: {disabled: true}', {}],
  ])('given an entry that disables a user and %s', (_, source, denials) => {
    const { reserved, ...taken } = denialsIn(source) ?? {};
    expect(taken).toEqual(denials ?? {});
    expect(reserved?.usernames ?? new Set()).toEqual(denials?.named ?? reserved?.usernames ?? new Set());
  });
});

function oddHash(salt: number, digest: number, letter = 'A'): string {
  return `$argon2id$v=19$m=19456,t=2,p=1$${letter.repeat(salt)}$${letter.repeat(digest)}`;
}

function named(username: string) {
  return { ...alice, username };
}

describe('local users', () => {
  it('come in with their password and have a stable subject that is no client id', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [alice, bob] });
    expect(await users.authenticate('alice', 'correct horse')).toEqual({
      subject: 'usr__opn0Ky1LrfMdvbK8-HI2s',
      username: 'alice',
      displayName: 'Alice Ang',
      credential: expect.stringMatching(/^[\w-]{22}$/),
    });
    expect(await users.authenticate('bob', 'battery staple')).toMatchObject({ displayName: 'bob' });
  });

  it.each([
    ['another user’s password', 'alice', 'battery staple'],
    ['an empty password', 'alice', ''],
    ['the password in another case', 'alice', 'Correct horse'],
    ['an unknown name', 'mallory', 'correct horse'],
    ['a name in another case', 'Alice', 'correct horse'],
    ['a name that is a property of objects', '__proto__', 'correct horse'],
  ])('do not come in with %s', async (_what, username, password) => {
    expect(
      await new LocalUsers({ clock: systemClock, users: [alice, bob] }).authenticate(username, password),
    ).toBeUndefined();
  });

  it('accept no password when there are none', async () => {
    expect(
      await new LocalUsers({ clock: systemClock, users: [] }).authenticate('alice', 'correct horse'),
    ).toBeUndefined();
  });

  it('who are disabled neither come in nor stay', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [{ ...alice, disabled: true }, bob] });
    expect(await users.authenticate('alice', 'correct horse')).toBeUndefined();
    expect(users.revokedBefore({ subject: 'usr__opn0Ky1LrfMdvbK8-HI2s' })).toBe(Number.POSITIVE_INFINITY);
  });

  it('have an id in place of the username as their subject, and an id is never another’s username', async () => {
    const subjects = async (...entries: readonly (typeof alice & { id?: string })[]) => {
      const users = new LocalUsers({ clock: systemClock, users: entries });
      return Promise.all(entries.map(async ({ username }) => (await users.lookUp(username))?.subject));
    };
    const [renamed] = await subjects({ ...alice, username: 'alice.smith', id: 'alice' });
    const [withId, other] = await subjects({ ...alice, id: 'alice' }, { ...alice, username: 'bob', id: '7' });
    const [withoutId] = await subjects(alice);
    expect(renamed).toBe(withId);
    expect(new Set([withId, other, withoutId]).size).toBe(3);
    for (const subject of [withId, other]) expect(subject).toMatch(/^usr_[\w-]{22}$/);
  });

  it('are revoked before a time in their entry, and hold nothing while it is ahead', async () => {
    let now = Date.UTC(2026, 0, 1);
    const users = new LocalUsers({ clock: { now: () => now }, users: [{ ...alice, revokeTokensBefore: now + 1000 }] });
    const subject = 'usr__opn0Ky1LrfMdvbK8-HI2s';
    expect(users.revokedBefore({ subject })).toBe(Number.POSITIVE_INFINITY);
    expect(await users.authenticate('alice', 'correct horse')).toBeUndefined();
    now += 1000;
    expect(users.revokedBefore({ subject })).toBe(now);
    expect(await users.authenticate('alice', 'correct horse')).toBeDefined();
  });

  it('are found by subject as the file describes them now, and not found while they may hold nothing', async () => {
    let now = Date.UTC(2026, 0, 1);
    const subject = 'usr__opn0Ky1LrfMdvbK8-HI2s';
    const users = new LocalUsers({ clock: { now: () => now }, users: [alice] });
    const known = { subject, username: 'alice', displayName: 'Alice Ang' };
    expect(await users.find(subject)).toEqual({ ...known, email: undefined, groups: [] });
    const groups = ['staff', 'on-call', 'staff'];
    users.replace([{ ...alice, email: 'alice@example.com', groups }]);
    expect(await users.find(subject)).toEqual({ ...known, email: 'alice@example.com', groups: ['staff', 'on-call'] });
    users.replace([bob]);
    expect(await users.find('usr_CT-JdrScZvoW3W4zUXrxaQ')).toMatchObject({ username: 'bob', displayName: undefined });
    expect(await users.find(subject)).toBeUndefined();
    users.replace([{ ...alice, disabled: true }]);
    expect(await users.find(subject)).toBeUndefined();
    users.replace([{ ...alice, revokeTokensBefore: now + 1000 }]);
    expect(await users.find(subject)).toBeUndefined();
    now += 1000;
    expect(await users.find(subject)).toBeDefined();
  });

  it('are looked up by name in either spelling: the subject, and a credential until they are disabled', async () => {
    const zoe = { username: 'zoë', passwordHash: bobHash };
    const users = new LocalUsers({ clock: systemClock, users: [alice, { ...bob, disabled: true }, zoe] });
    const found = await users.lookUp('alice');
    expect(found).toEqual({ subject: 'usr__opn0Ky1LrfMdvbK8-HI2s', credential: expect.any(String) });
    expect(found?.credential).not.toContain(aliceHash.slice(-10));
    expect(await users.lookUp('bob')).toEqual({ subject: 'usr_CT-JdrScZvoW3W4zUXrxaQ', credential: undefined });
    expect(await users.lookUp('zoe\u0308')).toBeDefined();
    expect(await users.lookUp('mallory')).toBeUndefined();
    users.replace([alice, { ...alice, passwordHash: bobHash, username: 'bob' }]);
    expect(await users.lookUp('alice')).toEqual(found);
    users.replace([{ ...alice, passwordHash: bobHash }]);
    expect((await users.lookUp('alice'))?.credential).not.toBe(found?.credential);
  });

  it('are replaced as a whole', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [alice] });
    expect(users.revokedBefore({ subject: 'usr__opn0Ky1LrfMdvbK8-HI2s' })).toBe(0);
    users.replace([bob]);
    expect(users.revokedBefore({ subject: 'usr__opn0Ky1LrfMdvbK8-HI2s' })).toBe(Number.POSITIVE_INFINITY);
    expect(await users.authenticate('bob', 'battery staple')).toBeDefined();
  });

  it('who are removed while their password is being verified are not signed in', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [alice] });
    const attempt = users.authenticate('alice', 'correct horse');
    users.replace([]);
    expect(await attempt).toBeUndefined();
  });

  it('are verified a few at a time, and a flood beyond the queue is refused unverified', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [alice], hashing: { concurrent: 1, waiting: 2 } });
    const attempts = await Promise.allSettled(
      Array.from({ length: 6 }, () => users.authenticate('alice', 'correct horse')),
    );
    expect(attempts.map((attempt) => attempt.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
    ]);
    const refused = attempts.find((attempt) => attempt.status === 'rejected')?.reason;
    expect(refused).toBeInstanceOf(OAuthError);
    expect(refused).toMatchObject({ code: 'temporarily_unavailable', reason: 'login_busy' });
    expect(await users.authenticate('alice', 'correct horse')).toBeDefined();
  });

  it('whose name is unknown make the line as long as known ones do', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [alice], hashing: { concurrent: 1, waiting: 1 } });
    const attempts = await Promise.allSettled(
      Array.from({ length: 3 }, () => users.authenticate('mallory', 'correct horse')),
    );
    expect(attempts.map((attempt) => attempt.status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  });

  it('whose hash cannot be verified do not come in, nor does any other user', async () => {
    const users = new LocalUsers({ clock: systemClock, users: [{ ...alice, passwordHash: oddHash(13, 25) }] });
    expect(await users.authenticate('alice', 'correct horse')).toBeUndefined();
    expect(await users.authenticate('mallory', 'correct horse')).toBeUndefined();
  });

  it('may type their password in either Unicode spelling', async () => {
    const users = new LocalUsers({
      clock: systemClock,
      users: [{ username: 'zoë', passwordHash: await hashPassword('caf\u00e9') }],
    });
    expect(await users.authenticate('zoe\u0308', 'cafe\u0301')).toBeDefined();
  });
});

describe('a password hash', () => {
  it('is argon2id with 19 MiB, two passes, one lane and a fresh salt', async () => {
    expect(aliceHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await hashPassword('correct horse')).not.toBe(aliceHash);
  });
});
