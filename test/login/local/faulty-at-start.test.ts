// A server that starts while an older list has a fault: of the names in it no younger list may have a person, or the fault
// gives where it may only withdraw access.

import { describe, expect, it } from 'vitest';
import { LocalUsers, UsersFileError } from '../../../src/login/local/local-users.ts';
import { UserChanges } from '../../../src/login/local/user-changes.ts';
import { UserLists } from '../../../src/login/local/user-lists.ts';
import { parseUsers } from '../../../src/login/local/users-yaml.ts';
import { memoryStores } from '../../../src/memory/stores.ts';

const hash = (letter: string) => `$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$${letter.repeat(42)}A`;
const FAULT = '- {username: bob, passwordHash: none}\n';
const OLDER = `- {username: ada, passwordHash: "${hash('A')}"}\n`;
const YOUNGER = `- {username: ada, groups: [admins], passwordHash: "${hash('B')}"}\n`;

function read(text: string) {
  try {
    return parseUsers(text);
  } catch (error) {
    if (error instanceof UsersFileError) return error;
    throw error;
  }
}

let now = Date.UTC(2026, 0);
const clock = { now: () => now };

/** The lists of a server that reads these texts, the older list first. @param before what the older list was, where the server knew it */
function serverOf(older: string, younger: string, before?: string): UserLists {
  const lists = new UserLists({ users: new LocalUsers({ users: [], clock }) });
  if (before !== undefined) lists.put('old', { createdAt: 1, name: 'old' }, read(before));
  lists.put('old', { createdAt: 1, name: 'old' }, read(older));
  lists.put('young', { createdAt: 2, name: 'young' }, read(younger));
  lists.merge();
  return lists;
}

describe('an older list with a fault, at a server that starts', () => {
  it.each([
    ['the same username', OLDER, YOUNGER],
    ['a user that the older list disables', `- {username: ada, disabled: true, passwordHash: "${hash('A')}"}\n`, OLDER],
    [
      'the same id',
      `- {username: ada, id: "1", passwordHash: "${hash('A')}"}\n`,
      `- {username: eve, id: "1", passwordHash: "${hash('B')}"}\n`,
    ],
  ])('→ a younger list does not count for %s, as at a server that knew the older one', (_what, older, younger) => {
    const leftOut = (before?: string) => serverOf(older + FAULT, younger, before).leftOut.get('young')?.reason;
    expect(leftOut(older)).toBe('named_before');
    expect(leftOut()).toBe('named_before');
  });

  it('→ nothing ends of a person that a replica with the former list still has', async () => {
    const store = memoryStores({ clock }).users;
    const ended: string[] = [];
    const replicas = [OLDER, undefined].map((before) => {
      const { users } = serverOf(OLDER + FAULT, YOUNGER, before);
      const onFault = (error: unknown) => expect(error).toBeUndefined();
      return new UserChanges({
        users,
        store,
        clock,
        lag: 120_000,
        onFault,
        onEnded: ({ reason }) => ended.push(reason),
      });
    });
    for (let minute = 0; minute < 30; minute += 1) {
      for (const replica of replicas) await replica.run();
      now += 60_000;
    }
    expect(ended).toEqual([]);
  });
});
