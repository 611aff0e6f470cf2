// The reads of a key set that several calls share; everything else of it is tried by its users (test/outbound/, test/resource-server/).

import { expect, it } from 'vitest';
import { KeyCache } from '../../../src/oauth/values/key-cache.ts';
import { TestClock } from '../../grantry.ts';

it('given a new key and several calls at once that look for it → one read, and all of them have it', async () => {
  let [published, reads] = [['old'], 0];
  const clock = new TestClock();
  const cache = new KeyCache({
    clock,
    read: async () => {
      reads += 1;
      return { keys: published.map((kid) => ({ kid })), freshFor: 300_000 };
    },
    unavailable: () => new Error('unavailable'),
  });
  await cache.find('old');
  clock.advance(60_000);
  published = ['old', 'new'];
  const found = await Promise.all(Array.from({ length: 20 }, () => cache.find('new')));
  expect(new Set(found.map(({ keys }) => keys.map(({ kid }) => kid).join()))).toEqual(new Set(['old,new']));
  expect(reads).toBe(2);
});
