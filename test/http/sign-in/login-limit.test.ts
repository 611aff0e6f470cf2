// How many guesses at a password are verified, by name and by network (docs/scope.md: 6819-1, C8, I5). The limits over HTTP
// are in `login.test.ts`, those of known browsers in `known-browsers.test.ts`.

import { describe, expect, it } from 'vitest';
import { type LoginAttempt, LoginLimit } from '../../../src/http/sign-in/login-limit.ts';
import { RecentGuesses } from '../../../src/http/sign-in/recent-guesses.ts';
import { memoryStores } from '../../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { RateLimitStore } from '../../../src/oauth/ports/ports.ts';
import { TestClock } from '../../grantry.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const HOME = '203.0.113.9';
const ELSEWHERE = '198.51.100.7';

function aLimit(store?: (real: RateLimitStore) => RateLimitStore) {
  const clock = new TestClock();
  const { rateLimits } = memoryStores({ clock });
  /** Keys that were ever counted in the store. */
  const counted = new Set<string>();
  const watched: RateLimitStore = {
    hit(key, limit, window) {
      counted.add(key);
      return rateLimits.hit(key, limit, window);
    },
    refund: (key) => rateLimits.refund(key),
  };
  const options = { issuer: 'https://id.example', pepper: new Uint8Array(32), clock };
  const limit = new LoginLimit({ ...options, store: store?.(watched) ?? watched });
  const attempt = (address: string, changes: Partial<LoginAttempt> = {}) => ({
    username: 'alice',
    address,
    knownBrowser: undefined,
    ...changes,
  });
  return {
    clock,
    counted,
    limit,
    attempt,
    guess: (address: string, changes?: Partial<LoginAttempt>) => limit.begin(attempt(address, changes)),
  };
}

/** An IPv6 /48 of its own for each number. */
const network = (number: number) => `2001:db8:${number.toString(16)}::1`;

describe('guesses at one name', () => {
  it('from one network, in each minute of two hours → five in any minute and twenty in any hour are verified', async () => {
    const { clock, guess } = aLimit();
    const verified: number[] = [];
    for (let minute = 0; minute < 120; minute += 1) {
      for (let count = 0; count < 7; count += 1) if ((await guess(HOME)) === 0) verified.push(clock.now());
      clock.advance(MINUTE);
    }
    expect(verified).toHaveLength(40);
    for (const time of verified) {
      expect(verified.filter((other) => other >= time && other < time + MINUTE).length).toBeLessThanOrEqual(5);
      expect(verified.filter((other) => other >= time && other < time + HOUR).length).toBeLessThanOrEqual(20);
    }
  });

  it('from all /64 of one /56, or of one /48 → four and sixteen times as many in a minute, and 80 in an hour', async () => {
    for (const [most, address] of [
      [20, (number: number) => `2001:db8:1:${(number % 256).toString(16)}::1`],
      [80, (number: number) => `2001:db8:2:${number.toString(16)}::1`],
    ] as const) {
      const { clock, guess } = aLimit();
      const verifiedInMinute = async () => {
        let verified = 0;
        for (let number = 0; number < 300; number += 1) if ((await guess(address(number * 61))) === 0) verified += 1;
        return verified;
      };
      const perMinute: number[] = [];
      for (let minute = 0; minute < 10; minute += 1) {
        perMinute.push(await verifiedInMinute());
        clock.advance(MINUTE);
      }
      expect(Math.max(...perMinute)).toBe(most);
      expect(perMinute.reduce((sum, verified) => sum + verified)).toBe(80);
      expect(await guess(ELSEWHERE)).toBe(0);
    }
  });

  it('from one network at any pace → a new browser at another network signs in', async () => {
    const { clock, guess, limit, attempt } = aLimit();
    for (let minute = 0; minute < 180; minute += 1) {
      await Promise.all(Array.from({ length: 50 }, () => guess(HOME)));
      expect(await guess(ELSEWHERE)).toBe(0);
      await limit.refund(attempt(ELSEWHERE));
      clock.advance(MINUTE);
    }
  });

  it('from 1 000 networks → a hundred are verified in the hour, and the others make no counter in the store', async () => {
    const { clock, counted, guess } = aLimit();
    const waits = [];
    for (let number = 0; number < 1000; number += 1) waits.push(await guess(network(number)));
    expect(waits).toEqual([...Array(100).fill(0), ...Array(900).fill(3600)]);
    // One of the name, and three networks each, with and without it.
    expect(counted.size).toBe(601);
    expect(await guess(network(1), { username: 'bob' })).toBe(0);
    clock.advance(HOUR);
    expect(await guess(ELSEWHERE)).toBe(0);
  });

  it('that were refused at their network → count neither for the name nor for the hour', async () => {
    const { clock, guess } = aLimit();
    for (let count = 0; count < 200; count += 1) await guess(HOME);
    for (let number = 0; number < 95; number += 1) expect(await guess(network(number))).toBe(0);
    expect(await guess(ELSEWHERE)).toBe(3600);
    clock.advance(HOUR);
    for (let count = 0; count < 5; count += 1) expect(await guess(HOME)).toBe(0);
  });

  it('that were right, or were not verified → are counted nowhere', async () => {
    const { guess, limit, attempt } = aLimit();
    for (let count = 0; count < 120; count += 1) {
      expect(await guess(HOME)).toBe(0);
      await limit.refund(attempt(HOME));
    }
    expect(await guess(HOME)).toBe(0);
  });

  it('while the store is unavailable → do not use up the hour', async () => {
    let isAway = true;
    const { guess } = aLimit((real) => ({
      ...real,
      hit: (...call) => (isAway ? Promise.reject(new StoreUnavailableError('rateLimits.hit')) : real.hit(...call)),
    }));
    for (let count = 0; count < 25; count += 1) await expect(guess(HOME)).rejects.toThrow(StoreUnavailableError);
    isAway = false;
    expect(await guess(HOME)).toBe(0);
  });

  it('in two Unicode spellings → one count', async () => {
    const { guess } = aLimit();
    for (let count = 0; count < 5; count += 1) await guess(HOME, { username: count % 2 ? 'zo\u00eb' : 'zoe\u0308' });
    expect(await guess(HOME, { username: 'zo\u00eb' })).toBe(60);
  });
});

describe('guesses at invented names', () => {
  it('2 000 of them from as many networks → of 65 536 numbers, all counters that last an hour', async () => {
    const lasting = new Set<string>();
    const { guess } = aLimit((real) => ({
      ...real,
      hit(...[key, , window]) {
        if (window > MINUTE) lasting.add(key);
        return Promise.resolve(0);
      },
    }));
    for (let number = 0; number < 2000; number += 1) await guess(network(number), { username: `n${number}` });
    const numbers = [...lasting].map((key) => Number(/^login name (\d+)$/.exec(key)?.[1]));
    expect(numbers.every((number) => number >= 0 && number < 65_536)).toBe(true);
    // Spread over all of them: some 30 of 2 000 share a number.
    expect(numbers.length).toBeGreaterThan(1900);
    expect(Math.max(...numbers)).toBeGreaterThan(60_000);
  });

  it('by another pepper → other counters', async () => {
    const keys = [0, 1].map(async (fill) => {
      const found: string[] = [];
      const store: RateLimitStore = { hit: async (key) => found.push(key) * 0, refund: async () => {} };
      const options = { issuer: 'https://id.example', clock: new TestClock(), store };
      const limit = new LoginLimit({ ...options, pepper: new Uint8Array(32).fill(fill) });
      await limit.begin({ username: 'alice', address: HOME, knownBrowser: undefined });
      return found[0];
    });
    const [one, other] = await Promise.all(keys);
    expect(one).toMatch(/^login name \d+$/);
    expect(one).not.toBe(other);
  });
});

describe('a known browser', () => {
  it('whatever was guessed at its name and its network → verified; five of its own guesses in a minute → a wait', async () => {
    const { clock, guess } = aLimit();
    for (let number = 0; number < 100; number += 1) await guess(network(number));
    for (let count = 0; count < 31; count += 1) await guess(HOME, { username: `n${count}` });
    expect(await guess(HOME)).toBe(3600);
    const known = { knownBrowser: { id: 'one', subject: 'usr_alice' } };
    const waits = [];
    for (let count = 0; count < 6; count += 1) waits.push(await guess(HOME, known));
    expect(waits).toEqual([0, 0, 0, 0, 0, 60]);
    expect(await guess(HOME, { knownBrowser: { id: 'two', subject: 'usr_alice' } })).toBe(0);
    for (let minute = 1; minute < 60; minute += 1) {
      clock.advance(MINUTE);
      if ((await guess(HOME, known)) === 0) waits.push(0);
    }
    expect(waits.filter((wait) => wait === 0)).toHaveLength(20);
  });
});

describe('the known browsers of one person', () => {
  it('however many they are → thirty guesses in a minute together; another person has its own', async () => {
    const { guess } = aLimit();
    const at = (id: string, subject: string) => guess(HOME, { knownBrowser: { id, subject } });
    const waits = [];
    for (let browser = 0; browser < 40; browser += 1) waits.push(await at(`browser-${browser}`, 'usr_alice'));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(30);
    expect(await at('another', 'usr_bob')).toBe(0);
  });
});

const at = (now: number) => ({ limit: 1, now });

describe('the guesses of the last hour', () => {
  it('of keys whose hour is over → go with the next count, however long the keys were', () => {
    const guesses = new RecentGuesses({ windowMilliseconds: HOUR, most: 1000 });
    for (let key = 0; key < 500; key += 1) guesses.count(`${key}`.padEnd(60_000, '一'), at(1));
    expect(guesses.size).toBe(500);
    guesses.count('later', at(HOUR + 2));
    expect(guesses.size).toBe(1);
  });

  it('of more keys than fit → the least recently counted is evicted', () => {
    const guesses = new RecentGuesses({ windowMilliseconds: HOUR, most: 2 });
    expect([guesses.count('a', at(1)), guesses.count('b', at(2)), guesses.count('c', at(3))]).toEqual([0, 0, 0]);
    expect([guesses.count('b', at(4)), guesses.count('c', at(4))]).toEqual([3600, 3600]);
    expect(guesses.count('a', at(4))).toBe(0);
  });

  it('of a key that was refunded → leave no trace', () => {
    const guesses = new RecentGuesses({ windowMilliseconds: HOUR, most: 1 });
    guesses.count('a', at(1));
    guesses.count('b', at(1));
    guesses.refund('b');
    guesses.refund('b');
    expect(guesses.count('b', at(2))).toBe(0);
  });
});
