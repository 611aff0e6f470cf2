// How often one person gets a code or a refresh at one client (docs/scope.md: 6819-1).

import { expect, it } from 'vitest';
import { PersonRate } from '../../../src/oauth/limits/person-rate.ts';

function aRate() {
  const time = { now: 1_700_000_000_000 };
  return { time, rate: new PersonRate({ clock: { now: () => time.now } }) };
}

it('one person at one client → 50 at once, then 5 a second', () => {
  const { time, rate } = aRate();
  const waits = Array.from({ length: 52 }, () => rate.take('shop', 'usr_alice'));
  expect(waits).toEqual([...Array.from({ length: 50 }, () => 0), 1, 1]);
  expect(rate.take('other', 'usr_alice')).toBe(0);
  time.now += 1000;
  expect(Array.from({ length: 6 }, () => rate.take('shop', 'usr_alice'))).toEqual([0, 0, 0, 0, 0, 1]);
  time.now += 3_600_000;
  expect(Array.from({ length: 51 }, () => rate.take('shop', 'usr_alice')).filter((wait) => wait > 0)).toEqual([1]);
});

it('500 people of one client at once → none meets the limit', () => {
  const { rate } = aRate();
  const people = Array.from({ length: 500 }, (_, number) => `usr_${number}`);
  const waits = Array.from({ length: 50 }, () => people.map((person) => rate.take('shop', person))).flat();
  expect(waits).toEqual(waits.map(() => 0));
});
