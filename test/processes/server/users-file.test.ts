// The users file of a replica over time: what counts of each state of it, and what the admin port says about it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { hashPassword, LocalUsers, subjectOf } from '../../../src/login/local/local-users.ts';
import { UserLists } from '../../../src/login/local/user-lists.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { UsersFile } from '../../../src/processes/server/users-file.ts';
import { until } from '../../until.ts';

const PASSWORD = 'correct horse';
const passwordHash = await hashPassword(PASSWORD);
const [ada, grace] = [
  { username: 'ada', passwordHash },
  { username: 'grace', passwordHash },
];

/** A polled file; `write` returns when its text was read. */
async function polledFile(content: unknown) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const folder = mkdtempSync(join(tmpdir(), 'grantry-users-'));
  const path = join(folder, 'users.yaml');
  const store = (next: unknown) => writeFileSync(path, typeof next === 'string' ? next : JSON.stringify(next));
  const lines: string[] = [];
  store(content);
  const lists = new UserLists({ users: new LocalUsers({ users: [], clock: systemClock }) });
  const file = await UsersFile.open({
    file: path,
    lists,
    log: pino({ base: null }, { write: (line) => lines.push(line) }),
  });
  file.start();
  onTestFinished(() => {
    file.stop();
    rmSync(folder, { recursive: true });
    vi.useRealTimers();
  });
  const poll = () => void vi.advanceTimersByTime(2000);
  const mayEnter = async () => {
    const names: string[] = [];
    for (const name of ['ada', 'grace', 'alan']) if (await lists.users.authenticate(name, PASSWORD)) names.push(name);
    return names;
  };
  return {
    file,
    lines,
    isCurrent: (username: string) => lists.users.isCurrent(subjectOf({ username })),
    poll,
    mayEnter,
    remove: () => rmSync(path),
    write: async (next: unknown) => {
      const before = lines.length;
      store(next);
      poll();
      await until('the file was read', () => lines.length > before);
    },
  };
}

describe('a users file that changes', () => {
  it('to one with a fault → disabled and removed users are out, no other changes, until the next sound file', async () => {
    const { file, write, mayEnter } = await polledFile([ada, grace]);
    expect([file.fault, await mayEnter()]).toEqual([undefined, ['ada', 'grace']]);
    const typo = { username: 'alan', password: 'x' };
    await write([{ ...ada, disabled: true }, grace, typo]);
    expect(file.fault).toMatch(/users\[2\]\.passwordHash/);
    expect(await mayEnter()).toEqual(['grace']);
    await write([ada, typo]);
    expect([file.fault === undefined, await mayEnter()]).toEqual([false, []]);
    await write([ada, grace, { ...ada, username: 'alan' }]);
    expect([file.fault, await mayEnter()]).toEqual([undefined, ['ada', 'grace', 'alan']]);
  });

  it('to no YAML, or with a username that cannot be read → no user counts as removed', async () => {
    const { file, write, mayEnter } = await polledFile([ada, grace]);
    for (const text of ['- {username: ada, disabled: true}\n- [', [{ user: 'ada' }], 'ada: {}']) {
      await write(text);
      expect([file.fault === undefined, await mayEnter()]).toEqual([false, ['ada', 'grace']]);
    }
  });

  it('to one that cannot be read, and back → a fault while it lasts, logged once', async () => {
    const { file, lines, poll, remove, write, mayEnter, isCurrent } = await polledFile([ada]);
    expect(isCurrent('ada')).toBe(true);
    remove();
    poll();
    await until('it is missed', () => file.fault !== undefined);
    poll();
    expect([file.fault, lines.length]).toEqual([expect.stringMatching(/ENOENT/), 1]);
    expect([await mayEnter(), isCurrent('ada')]).toEqual([['ada'], false]);
    await write([ada]);
    expect([file.fault, lines.length, isCurrent('ada')]).toEqual([undefined, 2, true]);
  });
});
