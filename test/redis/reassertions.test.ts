import { describe, expect, it } from 'vitest';
import { Reassertions } from '../../src/redis/reassertions.ts';

const SCRIPT = { name: 'revoke', keys: 1, lua: '' };

function remembering() {
  let now = 0;
  const reassertions = new Reassertions({ clock: { now: () => now } });
  return {
    reassertions,
    remember: (key: string) => reassertions.remember({ script: SCRIPT, keys: [key], args: [] }),
    pass(milliseconds: number) {
      now += milliseconds;
    },
    keys: () => reassertions.all().flatMap(({ keys }) => keys),
  };
}

describe('remembered revocations', () => {
  it('come oldest first, each once', () => {
    const { remember, keys } = remembering();
    for (const key of ['a', 'b', 'a']) remember(key);
    expect(keys()).toEqual(['b', 'a']);
  });

  it('are forgotten after a minute and a half in which all was well', () => {
    const { reassertions, remember, keys, pass } = remembering();
    remember('a');
    pass(30_000);
    remember('b');
    pass(60_000);
    reassertions.forgetOld();
    expect(keys()).toEqual(['b']);
  });

  it('are kept through an outage, however long', () => {
    const { remember, keys, pass } = remembering();
    remember('a');
    pass(600_000);
    remember('b');
    expect(keys()).toEqual(['a', 'b']);
  });

  it('are at most 10 000, the latest', () => {
    const { remember, keys } = remembering();
    for (let i = 0; i < 10_001; i++) remember(String(i));
    expect(keys()).toHaveLength(10_000);
    expect(keys()[0]).toBe('1');
  });
});
