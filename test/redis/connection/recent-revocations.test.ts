import { describe, expect, it } from 'vitest';
import { RecentRevocations } from '../../../src/redis/connection/recent-revocations.ts';

const SCRIPT = { name: 'revoke', keys: 1, lua: '' };

function remembering() {
  let now = 0;
  const reassertions = new RecentRevocations({ clock: { now: () => now } });
  return {
    reassertions,
    remember: (key: string) => reassertions.remember({ script: SCRIPT, keys: [key], args: [] }),
    pass(milliseconds: number) {
      now += milliseconds;
    },
    take: (which: 'all' | 'due') => reassertions.take(which).flatMap(({ keys }) => keys),
  };
}

describe('remembered revocations', () => {
  it('come oldest first, each once', () => {
    const { remember, take } = remembering();
    for (const key of ['a', 'b', 'a']) remember(key);
    expect(take('all')).toEqual(['b', 'a']);
  });

  it('are forgotten after a minute and a half in which all was well', () => {
    const { reassertions, remember, take, pass } = remembering();
    remember('a');
    pass(30_000);
    remember('b');
    pass(60_000);
    reassertions.forgetOld();
    expect(take('all')).toEqual(['b']);
  });

  it('are kept through an outage, however long', () => {
    const { remember, take, pass } = remembering();
    remember('a');
    pass(600_000);
    remember('b');
    expect(take('all')).toEqual(['a', 'b']);
  });

  it('are due once, and again where they could not be applied', () => {
    const { reassertions, remember, take } = remembering();
    for (const key of ['a', 'b']) remember(key);
    expect(take('due')).toEqual(['a', 'b']);
    expect(take('due')).toEqual([]);
    reassertions.failed({ script: SCRIPT, keys: ['a'], args: [] });
    remember('c');
    expect(take('due')).toEqual(['a', 'c']);
    expect(take('all')).toEqual(['a', 'b', 'c']);
    expect(take('due')).toEqual([]);
  });

  it('are at most 10 000 of a script, the latest', () => {
    const { remember, take } = remembering();
    for (let i = 0; i < 10_001; i++) remember(String(i));
    expect(take('all')).toHaveLength(10_000);
    expect(take('all')[0]).toBe('1');
  });

  it('are not displaced by a flood of another script', () => {
    const { reassertions, remember, take } = remembering();
    remember('a');
    const flood = { name: 'revokeToken', keys: 1, lua: '' };
    for (let i = 0; i < 10_001; i++) reassertions.remember({ script: flood, keys: [String(i)], args: [] });
    expect(take('due')).toHaveLength(10_001);
    expect(take('all')).toContain('a');
  });
});
