// The contracts of ReplayStore and RateLimitStore: what has been seen, and how often.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Runs the contract of replay marks on one implementation. */
export function replayStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a replay mark`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const claim = (value: string, purpose = 'assertion', lifetime = MINUTE) =>
      world.stores.replays.claim(purpose, value, world.now() + lifetime);

    it('is fresh once', async () => {
      expect(await claim('one')).toBe('fresh');
      expect(await claim('one')).toBe('seen');
      expect(await claim('one')).toBe('seen');
    });

    it('is one per value and per purpose', async () => {
      expect(await claim('one')).toBe('fresh');
      expect(await claim('One')).toBe('fresh');
      expect(await claim('one', 'proof')).toBe('fresh');
      expect(await claim('')).toBe('fresh');
      expect(await claim('b:c', 'a')).toBe('fresh');
      expect(await claim('c', 'a:b')).toBe('fresh');
    });

    it('is fresh once in 400 parallel claims', async () => {
      const answers = await Promise.all(Array.from({ length: 400 }, () => claim('one')));
      expect(answers.filter((answer) => answer === 'fresh')).toHaveLength(1);
    });

    it('holds until its end and is free from then on', async () => {
      await claim('one');
      world.advance(MINUTE - world.tick);
      expect(await claim('one')).toBe('seen');
      world.advance(world.tick);
      expect(await claim('one')).toBe('fresh');
    });

    it('is not flushed out by a flood of others', async () => {
      await claim('victim');
      for (let from = 0; from < 20_000; from += 200) {
        const wave = Array.from({ length: 200 }, (_, index) => `flood ${from + index}`);
        await Promise.all(wave.map((value) => claim(value, 'assertion', SECOND)));
      }
      expect(await claim('victim')).toBe('seen');
    });
  });
}

/** Runs the contract of rate-limit counters on one implementation. */
export function rateLimitStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a rate limit`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const hit = (key = 'login alice 192.0.2.1', limit = 3) => world.stores.rateLimits.hit(key, limit, MINUTE);

    async function hits(times: number): Promise<number[]> {
      const waits: number[] = [];
      for (let time = 0; time < times; time++) waits.push(await hit());
      return waits;
    }

    it('lets as many through as it says and then answers the whole seconds to wait', async () => {
      const waits = await hits(4);
      expect(waits.slice(0, 3)).toEqual([0, 0, 0]);
      expect(waits[3]).toBeGreaterThan(0);
      expect(waits[3]).toBeLessThanOrEqual(60);
    });

    it('answers the rest of the window, rounded up, never 0', async () => {
      await hits(3);
      world.advance(30 * SECOND + 1);
      const wait = await hit();
      expect(wait).toBeGreaterThanOrEqual(29);
      expect(wait).toBeLessThanOrEqual(30);
      world.advance(29 * SECOND + 999 - world.tick);
      expect(await hit()).toBe(1);
    });

    it('keeps its window while it is hit: refused attempts do not push the end away', async () => {
      await hits(3);
      for (let second = 0; second < 5; second++) {
        world.advance(10 * SECOND);
        expect(await hit()).toBeGreaterThan(0);
      }
      world.advance(10 * SECOND);
      expect(await hit()).toBe(0);
    });

    it('begins a new window with the first hit after it', async () => {
      await hits(5);
      world.advance(MINUTE);
      expect((await hits(4)).map((wait) => wait > 0)).toEqual([false, false, false, true]);
    });

    it('counts each key by itself', async () => {
      await hits(4);
      expect(await hit('login bob 192.0.2.1')).toBe(0);
      expect(await hit('login alice 192.0.2.2')).toBe(0);
    });

    it('takes a good attempt back', async () => {
      await hits(3);
      await world.stores.rateLimits.refund('login alice 192.0.2.1');
      expect((await hits(2)).map((wait) => wait > 0)).toEqual([false, true]);
    });

    it('never goes below zero', async () => {
      await world.stores.rateLimits.refund('login alice 192.0.2.1');
      await hits(1);
      for (let time = 0; time < 5; time++) await world.stores.rateLimits.refund('login alice 192.0.2.1');
      expect((await hits(4)).map((wait) => wait > 0)).toEqual([false, false, false, true]);
    });

    it('refunds nothing in the next window', async () => {
      await hits(3);
      world.advance(MINUTE);
      await world.stores.rateLimits.refund('login alice 192.0.2.1');
      expect((await hits(4)).map((wait) => wait > 0)).toEqual([false, false, false, true]);
    });

    it('counts 100 parallel hits one by one', async () => {
      const waits = await Promise.all(Array.from({ length: 100 }, () => hit('parallel', 40)));
      expect(waits.filter((wait) => wait === 0)).toHaveLength(40);
    });
  });
}
