import { beforeEach, describe, expect, it } from 'vitest';
import { ServerClock } from '../../../src/redis/link/server-clock.ts';

describe("a server's clock", () => {
  let now: number;
  /** Server time less ours. */
  let ahead: number;
  /** How long a question is under way, there and back. */
  let there: number;
  let back: number;
  let asked: number;
  let clock: ServerClock;
  beforeEach(() => {
    [now, ahead, there, back, asked] = [1_000_000, 500_000, 2, 2, 0];
    clock = new ServerClock({
      clock: { now: () => now },
      async ask() {
        asked += 1;
        now += there;
        const time = now + ahead;
        now += back;
        return time;
      },
    });
  });

  /** Moves time on and asks, waiting for the answer. */
  async function askedAfter(milliseconds: number): Promise<void> {
    now += milliseconds;
    clock.refresh();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** How much less than the server shows is said of the next second. */
  async function error(): Promise<number> {
    return now + 1000 + ahead - (await clock.at(now + 1000));
  }

  it('is asked once, however many want to know, and what is said is not too late', async () => {
    const moments = await Promise.all([1, 2, 3].map((more) => clock.at(1_000_000 + more)));
    expect(asked).toBe(1);
    for (const moment of moments) expect(moment).toBeLessThanOrEqual(1_000_003 + ahead);
    expect(await error()).toBeGreaterThanOrEqual(0);
    expect(await error()).toBeLessThan(there + back + 2);
  });

  it('is known at once from then on, and asked again beside that', async () => {
    await clock.at(now);
    expect(clock.at(now)).toBeTypeOf('number');
    await askedAfter(500);
    expect(asked).toBe(1);
    await askedAfter(600);
    expect(asked).toBe(2);
  });

  it('is asked before use where its last answer is old', async () => {
    await clock.at(now);
    now += 60_000;
    ahead += 55;
    expect(clock.at(now)).toBeInstanceOf(Promise);
    expect(await error()).toBeLessThan(10);
  });

  it('is known as well as ever after an answer that was long under way', async () => {
    await clock.at(now);
    [there, back] = [300, 300];
    await askedAfter(1100);
    expect(await error()).toBeGreaterThanOrEqual(0);
    expect(await error()).toBeLessThan(10);
  });

  it.each([-3_600_000, -50, 50, 3_600_000])('is followed where it was set (by %i ms)', async (step) => {
    await clock.at(now);
    ahead += step;
    await askedAfter(1100);
    expect(await error()).toBeGreaterThanOrEqual(0);
    expect(await error()).toBeLessThan(10);
  });

  it('is followed where it goes a little slower than ours', async () => {
    await clock.at(now);
    for (let seconds = 0; seconds < 300; seconds++) {
      ahead -= 0.5;
      await askedAfter(1000);
      expect(await error()).toBeGreaterThanOrEqual(-1);
    }
  });

  it('is unknown again once it was forgotten', async () => {
    await clock.at(now);
    clock.forget();
    expect(clock.at(now)).toBeInstanceOf(Promise);
  });
});
