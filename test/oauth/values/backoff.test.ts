import { describe, expect, it } from 'vitest';
import { Backoff, exponentialBackoff } from '../../../src/oauth/values/backoff.ts';

const RANGE = { first: 500, longest: 30_000 };

/** Answers with the same share of its range each time. @param share from 0 up to 1 */
function random(share: number) {
  return { bytes: (count: number) => Buffer.alloc(count, Math.floor(share * 256)) };
}

describe('the exponential backoff', () => {
  it('doubles with each further failure and stays at the longest wait', () => {
    const failures = [0, 1, 2, 5, 6, 1023, 5000];
    expect(failures.map((count) => exponentialBackoff(RANGE, count))).toEqual([
      500, 1000, 2000, 16_000, 30_000, 30_000, 30_000,
    ]);
  });

  it('has full jitter: any wait from 0 to the ceiling, which a success resets', () => {
    const half = new Backoff({ ...RANGE, random: random(0.5) });
    const waits = Array.from({ length: 3 }, () => Math.round(half.next()));
    half.reset();
    expect([...waits, Math.round(half.next())]).toEqual([251, 502, 1004, 251]);
    expect(new Backoff({ ...RANGE, random: random(0) }).next()).toBe(0);
  });
});
