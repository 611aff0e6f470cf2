// How replicas agree on their lists of users: lists that lag behind, replicas that start with an old list or
// end midway, and a store of which a part is unavailable.

import { beforeEach, describe, expect, it } from 'vitest';
import { type LocalUser, LocalUsers, type UsersReading } from '../../../src/login/local/local-users.ts';
import { type UserChange, UserChanges, type UserChangesOptions } from '../../../src/login/local/user-changes.ts';
import { memoryStores } from '../../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { USER_ABSENCE, type UserStore } from '../../../src/oauth/ports/login-stores.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { sampleSession, signedIn } from '../../contracts/sample-grants.ts';

const MINUTE = 60_000;
const LAG = 2 * MINUTE;
const OLD = { username: 'ada', passwordHash: 'old' };
const NEW = { username: 'ada', passwordHash: 'new' };

let now: number;
let stores: Stores;
let ended: UserChange[];
let faults: unknown[];
const clock = { now: () => now };

beforeEach(() => {
  now = Date.UTC(2026, 0);
  stores = memoryStores({ clock });
  ended = [];
  faults = [];
});

/** A replica with this list of users; `read` is a change of the list. */
function replica(
  list: readonly LocalUser[],
  store: UserStore = stores.users,
  { lag = LAG, followedUntil }: Partial<Pick<UserChangesOptions, 'lag' | 'followedUntil'>> = {},
) {
  const users = new LocalUsers({ clock, users: list });
  const changes = new UserChanges({
    users,
    store,
    clock,
    lag,
    followedUntil,
    onEnded: (change) => ended.push(change),
    onFault: (error) => faults.push(error),
  });
  return {
    compare: () => changes.run(),
    read(next: readonly LocalUser[], reading?: UsersReading) {
      users.replace(next, reading);
      return changes.run();
    },
    /** Whether a right password begins a session here. */
    async lets(username: string) {
      const named = await users.lookUp(username);
      const { subject = '', credential } = named ?? {};
      return (await stores.sessions.create(sampleSession({ subject }), credential)) !== 'outdated';
    },
  };
}

const subjectOf = async (user: LocalUser) =>
  (await new LocalUsers({ clock, users: [user] }).lookUp(user.username))?.subject ?? '';

describe('a new password', () => {
  it('ends everything once, though another replica reads the list a minute later', async () => {
    const [fast, slow] = [replica([OLD]), replica([OLD])];
    await fast.compare();
    await slow.compare();
    await fast.read([NEW]);
    expect(ended).toHaveLength(1);
    expect([await fast.lets('ada'), await slow.lets('ada')]).toEqual([true, false]);
    now += MINUTE;
    await slow.compare();
    await slow.read([NEW]);
    expect([await fast.lets('ada'), await slow.lets('ada')]).toEqual([true, true]);
    expect(ended).toHaveLength(1);
  });

  it('stays recorded beside a replica that starts with the old list', async () => {
    const fast = replica([OLD]);
    await fast.compare();
    await fast.read([NEW]);
    const stale = replica([OLD]);
    await stale.compare();
    now += LAG - 1;
    await stale.compare();
    expect([await fast.lets('ada'), await stale.lets('ada')]).toEqual([true, false]);
    await stale.read([NEW]);
    expect(await stale.lets('ada')).toBe(true);
    expect(ended).toHaveLength(1);
  });

  it('that a replica has missed, as its list has a fault since → ends everything once', async () => {
    const [reading, missing] = [replica([OLD]), replica([OLD])];
    const subject = await subjectOf(OLD);
    await reading.compare();
    await missing.compare();
    await reading.read([NEW]);
    for (let minutes = 0; minutes < 10; minutes++) {
      now += MINUTE;
      await missing.read([OLD], { outdated: new Set([subject]) });
      await reading.read([NEW], { outdated: new Set([subject]) });
    }
    expect([ended.length, await reading.lets('ada'), await missing.lets('ada')]).toEqual([1, true, false]);
    await missing.read([NEW]);
    expect([ended.length, await missing.lets('ada')]).toEqual([1, true]);
  });

  it('that a replica has missed, as it follows no changes since → ends everything once', async () => {
    const start = now;
    const [reading, missing] = [replica([OLD]), replica([OLD], stores.users, { followedUntil: () => start })];
    for (const each of [reading, missing]) await each.compare();
    await reading.read([NEW]);
    for (let minutes = 0; minutes < 10; minutes++) {
      now += MINUTE;
      await missing.compare();
      await reading.compare();
      expect([await missing.lets('ada'), await reading.lets('ada')]).toEqual([false, true]);
    }
    expect(ended).toHaveLength(1);
  });

  it('beside a fault in the list of another person → counts two minutes after the start', async () => {
    await replica([OLD]).compare();
    const started = replica([]);
    await started.read([NEW], { outdated: new Set([await subjectOf({ username: 'grace', passwordHash: 'hers' })]) });
    now += LAG;
    await started.compare();
    expect([await started.lets('ada'), ended.length]).toEqual([true, 1]);
  });

  it('of a process that is alone, whose list is never behind → counts at once', async () => {
    await replica([OLD]).compare();
    const alone = replica([NEW], stores.users, { lag: 0 });
    await alone.compare();
    expect([await alone.lets('ada'), ended.length]).toEqual([true, 1]);
  });

  it('that no running replica has read counts two minutes after the start', async () => {
    await replica([OLD]).compare();
    const started = replica([NEW]);
    await started.compare();
    expect([await started.lets('ada'), ended.length]).toEqual([false, 0]);
    now += LAG;
    await started.compare();
    expect([await started.lets('ada'), ended.length]).toEqual([true, 1]);
  });

  it('is recorded again where the store has gone back to the old one', async () => {
    const running = replica([OLD]);
    await running.compare();
    await running.read([NEW]);
    const [[subject, { credential }] = ['', { credential: '' }]] = [...(await stores.users.list())];
    const former = [...new LocalUsers({ clock, users: [OLD] }).credentials.values()][0] ?? '';
    await stores.users.record(subject, former, credential);
    expect(await running.lets('ada')).toBe(false);
    await running.compare();
    expect(await running.lets('ada')).toBe(true);
  });
});

describe('a person', () => {
  it('that one replica lacks and another lists keeps everything for as long as that lasts', async () => {
    const [listing, lacking] = [replica([OLD]), replica([])];
    await listing.compare();
    const session = await signedIn(stores.sessions, { subject: await subjectOf(OLD) });
    for (let minutes = 0; minutes < 180; minutes++) {
      now += MINUTE;
      await lacking.compare();
      await listing.compare();
      await stores.sessions.use(session.sessionId);
    }
    expect(ended).toEqual([]);
    expect(await stores.sessions.use(session.sessionId)).toBeDefined();
  });

  it('who has left is ended an hour later, also where the store has lost since when', async () => {
    const running = replica([OLD]);
    await running.compare();
    await running.read([]);
    now += USER_ABSENCE / 2;
    await stores.users.record(
      await subjectOf(OLD),
      (await stores.users.list()).get(await subjectOf(OLD))?.credential ?? '',
    );
    await running.compare();
    now += USER_ABSENCE;
    await running.compare();
    expect(ended).toEqual([{ subject: await subjectOf(OLD), reason: 'user_absent' }]);
  });

  it('is not known to have left while a list cannot be read: nothing ends, until it can', async () => {
    const running = replica([OLD]);
    await running.compare();
    await running.read([], { isWhole: false });
    now += 2 * USER_ABSENCE;
    await running.compare();
    now += 2 * USER_ABSENCE;
    await running.compare();
    expect(ended).toEqual([]);
    await running.read([]);
    now += USER_ABSENCE;
    await running.compare();
    expect(ended).toEqual([{ subject: await subjectOf(OLD), reason: 'user_absent' }]);
  });

  it('in an unavailable part of the store holds up no other: all that can be recorded is', async () => {
    const list = Array.from({ length: 200 }, (_, number) => ({ username: `user-${number}`, passwordHash: 'old' }));
    const unavailable = new Set(await Promise.all(list.slice(0, 100).map(subjectOf)));
    const partly: UserStore = {
      list: () => stores.users.list(),
      recordAbsence: (subject) => stores.users.recordAbsence(subject),
      record: async (subject, ...more) => {
        if (unavailable.has(subject)) throw new StoreUnavailableError('users.settle');
        return stores.users.record(subject, ...more);
      },
    };
    const running = replica(list, partly);
    await running.compare();
    expect((await stores.users.list()).size).toBe(100);
    expect(faults).toHaveLength(1);
    unavailable.clear();
    await running.compare();
    expect((await stores.users.list()).size).toBe(200);
    expect(faults).toHaveLength(1);
  });
});
