// The clock and the random source of the machine.

import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../../oauth/ports/ports.ts';

export const systemClock: Clock = { now: () => Date.now() };

// A call for randomness costs as much as parsing a whole request, so one call fills a pool for many. Each byte is used
// once and erased from the pool.
const POOL_BYTES = 8192;
let pool = Buffer.alloc(0);
let used = 0;

export const systemRandom: Random = {
  bytes(count) {
    if (count > POOL_BYTES) return randomBytes(count);
    if (used + count > pool.length) {
      pool = randomBytes(POOL_BYTES);
      used = 0;
    }
    const taken = Buffer.from(pool.subarray(used, used + count));
    pool.fill(0, used, used + count);
    used += count;
    return taken;
  },
};
