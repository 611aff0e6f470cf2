import { describe, expect, it } from 'vitest';
import { RecentRevocations } from '../../../src/redis/connection/recent-revocations.ts';

const SCRIPT = { name: 'revoke', keys: 1, lua: '' };

function remembering() {
  let now = 0;
  const recentRevocations = new RecentRevocations({ clock: { now: () => now } });
  return {
    recentRevocations,
    recordForReplay: (key: string) => recentRevocations.recordForReplay({ script: SCRIPT, keys: [key], args: [] }),
    pass(milliseconds: number) {
      now += milliseconds;
    },
    take: (which: 'all' | 'pending') => recentRevocations.take(which).flatMap(({ keys }) => keys),
  };
}

describe('remembered revocations', () => {
  it('come oldest first, each once', () => {
    const { recordForReplay, take } = remembering();
    for (const key of ['a', 'b', 'a']) recordForReplay(key);
    expect(take('all')).toEqual(['b', 'a']);
  });

  it('are forgotten after a minute and a half in which all was well', () => {
    const { recentRevocations, recordForReplay, take, pass } = remembering();
    recordForReplay('a');
    pass(30_000);
    recordForReplay('b');
    pass(60_000);
    recentRevocations.forgetOld();
    expect(take('all')).toEqual(['b']);
  });

  it('are kept through an outage, however long', () => {
    const { recordForReplay, take, pass } = remembering();
    recordForReplay('a');
    pass(600_000);
    recordForReplay('b');
    expect(take('all')).toEqual(['a', 'b']);
  });

  it('are due once, and again where they could not be applied', () => {
    const { recentRevocations, recordForReplay, take } = remembering();
    for (const key of ['a', 'b']) recordForReplay(key);
    expect(take('pending')).toEqual(['a', 'b']);
    expect(take('pending')).toEqual([]);
    recentRevocations.requeue({ script: SCRIPT, keys: ['a'], args: [] });
    recordForReplay('c');
    expect(take('pending')).toEqual(['a', 'c']);
    expect(take('all')).toEqual(['a', 'b', 'c']);
    expect(take('pending')).toEqual([]);
  });

  it('are at most 10 000 of a script, the latest', () => {
    const { recordForReplay, take } = remembering();
    for (let i = 0; i < 10_001; i++) recordForReplay(String(i));
    expect(take('all')).toHaveLength(10_000);
    expect(take('all')[0]).toBe('1');
  });

  it('are not displaced by a flood of another script', () => {
    const { recentRevocations, recordForReplay, take } = remembering();
    recordForReplay('a');
    const flood = { name: 'revokeToken', keys: 1, lua: '' };
    for (let i = 0; i < 10_001; i++) recentRevocations.recordForReplay({ script: flood, keys: [String(i)], args: [] });
    expect(take('pending')).toHaveLength(10_001);
    expect(take('all')).toContain('a');
  });
});
