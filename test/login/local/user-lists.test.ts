// Lists of users over time, merged: which of two counts, and what counts of one with a fault.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Block } from '../../../src/login/blocks.ts';
import { type Denials, type LocalUser, LocalUsers, UsersFileError } from '../../../src/login/local/local-users.ts';
import type { UserEntry } from '../../../src/login/local/user-entry.ts';
import { merged, UserLists } from '../../../src/login/local/user-lists.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';

const OUT = Number.POSITIVE_INFINITY;
const user = (username: string, more: Partial<LocalUser> = {}): LocalUser => {
  return { username, passwordHash: 'unused', ...more };
};
const faulty = (denials: Denials = {}) => new UsersFileError('users[0]: is no entry', { denials });
const rank = (createdAt: number, name = 'people') => ({ createdAt, name });
const eveOfCorp = { subject: 'usr_eve', username: 'eve', email: undefined, provider: { name: 'corp' } };
const blockOfEve: Block = { provider: 'corp', username: 'Eve', disabled: true };

let lists: UserLists;
beforeEach(() => {
  lists = new UserLists({ users: new LocalUsers({ users: [], clock: systemClock }) });
});

function serve(key: string, reading: readonly UserEntry[] | UsersFileError, at = rank(1)) {
  lists.put(key, at, reading);
  lists.merge();
}

/** By name, the time before which the users of now are revoked. */
async function served(...usernames: readonly string[]) {
  const times: Record<string, number> = {};
  for (const username of usernames) {
    const { subject = '' } = (await lists.users.lookUp(username)) ?? {};
    if (subject !== '') times[username] = lists.users.revokedBefore({ subject });
  }
  return times;
}

describe('of two lists with one username', () => {
  const mailOf = async () => {
    const { subject = '' } = (await lists.users.lookUp('ada')) ?? {};
    return (await lists.users.find(subject))?.email;
  };

  it.each([
    ['the older one counts', rank(1, 'z'), rank(2, 'a')],
    ['of two of one age the one whose name comes first counts', rank(1, 'a'), rank(1, 'b')],
    ['the file counts before every Secret', rank(Number.NEGATIVE_INFINITY, 'z'), rank(0, 'a')],
  ])('%s, whichever was read first', async (_case, first, second) => {
    for (const order of [
      ['first', 'second'],
      ['second', 'first'],
    ] as const) {
      lists = new UserLists({ users: new LocalUsers({ users: [], clock: systemClock }) });
      for (const key of order) {
        serve(key, [user('bob', { username: key }), user('ada', { email: key })], key === 'first' ? first : second);
      }
      expect(await mailOf()).toBe('first');
      expect(lists.leftOut).toEqual(new Map([['second', { index: 1, reason: 'named_before' }]]));
      lists.delete('first');
      lists.merge();
      expect([await mailOf(), lists.leftOut.size]).toEqual(['second', 0]);
    }
  });

  it('of two with one id the first counts; an id and an equal username are two people', async () => {
    serve('first', [user('ada', { id: '7' })]);
    serve('second', [user('grace', { id: '7' }), user('7')], rank(2));
    expect(await served('ada', 'grace', '7')).toEqual({ ada: 0, '7': 0 });
    expect(lists.leftOut).toEqual(new Map([['second', { index: 0, reason: 'named_before' }]]));
  });

  it('and the same entry → it counts once, and nothing is reported', async () => {
    serve('file', [user('ada', { email: 'a' }), user('grace')]);
    serve('mounted', [user('grace'), user('ada', { email: 'a' })], rank(2));
    expect([await served('ada', 'grace'), lists.leftOut.size]).toEqual([{ ada: 0, grace: 0 }, 0]);
  });

  it('no username and no id is served twice, and no user is lost', () => {
    const names = fc.constantFrom('a', 'b', 'c', 'd');
    const entry = fc.record({ username: names, id: fc.option(names, { nil: undefined }) });
    fc.assert(
      fc.property(fc.array(fc.array(entry)), (given) => {
        const { users } = merged(
          given.map((list) => ({ entries: list.map(({ username, id }) => user(username, { id })) })),
        );
        const taken = { usernames: new Set<string>(), ids: new Set<string>() };
        const expected = given.flat().filter(({ username, id }) => {
          const isTaken = taken.usernames.has(username) || (id !== undefined && taken.ids.has(id));
          if (!isTaken) taken.usernames.add(username);
          if (!isTaken && id !== undefined) taken.ids.add(id);
          return !isTaken;
        });
        expect(users.map(({ username, id }) => ({ username, id }))).toEqual(expected);
      }),
    );
  });

  it('more than ten thousand in all → the first ones count, and every block', () => {
    const many = Array.from({ length: 6000 }, (_, index) => index);
    const { users, leftOut, blocks } = merged([
      { entries: many.map((index) => user(`a${index}`)) },
      { entries: [...many.map((index) => user(`b${index}`)), blockOfEve] },
    ]);
    expect([users.length, users.at(-1)?.username, blocks]).toEqual([10_000, 'b3999', [blockOfEve]]);
    expect(leftOut).toEqual([undefined, { index: 4000, reason: 'too_many' }]);
  });
});

describe('a list with a fault', () => {
  it('only withdraws access, and no other list changes', async () => {
    serve('people', [user('ada'), user('grace'), user('alan'), blockOfEve]);
    serve('others', [user('barbara')], rank(2));
    const named = new Set(['ada', 'grace', 'new']);
    const revoked = new Map([['grace', 5]]);
    serve('people', faulty({ named, disabled: new Set(['ada', 'barbara']), revoked }));
    const restricted = { ada: OUT, grace: 5, barbara: 0 };
    expect(await served('ada', 'grace', 'alan', 'barbara', 'new')).toEqual(restricted);
    expect(lists.blocks.strictest(eveOfCorp)).toBe(OUT);
    serve('people', faulty());
    expect(await served('ada', 'grace', 'alan', 'barbara')).toEqual(restricted);
    serve('people', [user('ada')]);
    expect(await served('ada', 'grace', 'barbara')).toEqual({ ada: 0, barbara: 0 });
    expect(lists.blocks.strictest(eveOfCorp)).toBe(0);
  });

  it('that was never read without → gives no user, blocks what it can, and no user is known to be gone', async () => {
    serve('people', faulty({ named: new Set(['ada']), blocks: [blockOfEve, { ...blockOfEve, username: 'mallory' }] }));
    expect([await served('ada'), lists.users.isWhole]).toEqual([{}, false]);
    expect(lists.blocks.strictest(eveOfCorp)).toBe(OUT);
    serve('people', [user('ada')]);
    const { users } = lists;
    const ada = (await users.lookUp('ada'))?.subject ?? '';
    expect([await served('ada'), users.isWhole, users.isCurrent(ada)]).toEqual([{ ada: 0 }, true, true]);
    serve('people', faulty());
    expect([users.isWhole, users.isCurrent(ada)]).toEqual([true, false]);
    serve('others', [user('grace')], rank(2));
    const grace = (await users.lookUp('grace'))?.subject ?? '';
    expect([users.isWhole, users.isCurrent(ada), users.isCurrent(grace)]).toEqual([true, false, true]);
    serve('others', faulty(), rank(2));
    lists.delete('others');
    lists.merge();
    expect(lists.users.isWhole).toBe(true);
  });

  it('does not grow by the blocks of each of its texts', () => {
    let replaced: readonly Block[] = [];
    const { blocks } = lists;
    blocks.replace = (next) => {
      replaced = next;
    };
    for (let turn = 0; turn < 3; turn += 1) serve('people', faulty({ blocks: [{ ...blockOfEve }] }));
    expect(replaced).toHaveLength(1);
  });
});

describe('a block of a local user', () => {
  const times = () => served('ada', 'grace', 'alan');
  beforeEach(() => serve('people', [user('ada'), user('grace', { email: 'Grace@example.com' }), user('alan')]));

  it.each<[string, Block, Record<string, number>]>([
    ['by name', { provider: 'local', username: 'ADA', disabled: true }, { ada: OUT, grace: 0, alan: 0 }],
    ['by address', { provider: 'local', email: 'grace@EXAMPLE.com', disabled: true }, { ada: 0, grace: OUT, alan: 0 }],
    ['by time', { provider: 'local', username: 'alan', revokeTokensBefore: 5 }, { ada: 0, grace: 0, alan: 5 }],
    [
      'of a provider of that name',
      { provider: 'corp', username: 'ada', disabled: true },
      { ada: 0, grace: 0, alan: 0 },
    ],
  ])('%s, in another list', async (_case, block, expected) => {
    serve('block', [block], rank(9));
    expect(await times()).toEqual(expected);
    lists.delete('block');
    lists.merge();
    expect(await times()).toEqual({ ada: 0, grace: 0, alan: 0 });
  });

  it('by sub → as one that its own entry disables: what the user holds ends for good', async () => {
    const { subject: sub = '' } = (await lists.users.lookUp('ada')) ?? {};
    const before = lists.users.credentials.get(sub);
    serve('block', [{ sub, disabled: true }], rank(9));
    expect(lists.users.credentials.get(sub)).toBe(`disabled.${before}`);
  });
});
