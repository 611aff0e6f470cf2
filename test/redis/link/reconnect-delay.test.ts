// Replicas that lost Redis together come back one by one.

import { describe, expect, it } from 'vitest';
import { reconnectDelay } from '../../../src/redis/link/reconnect-delay.ts';

describe('the wait before a lost connection is tried again', () => {
  const longest = (attempt: number) => reconnectDelay(attempt, () => 1);

  it('is at most 50 ms at first, twice that after each try, and never beyond 400 ms', () => {
    expect([1, 2, 3, 4, 5, 6, 1000].map(longest)).toEqual([50, 100, 200, 400, 400, 400, 400]);
  });

  it('is anything from nothing on: chance decides about all of it', () => {
    for (const share of [0, 0.25, 0.5, 0.75]) expect(reconnectDelay(3, () => share)).toBe(share * longest(3));
  });

  it('differs from replica to replica', () => {
    const waits = Array.from({ length: 100 }, () => reconnectDelay(4));
    expect(new Set(waits).size).toBeGreaterThan(90);
    expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(100);
  });
});
