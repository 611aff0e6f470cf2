// The rate limit store in Redis: a hash per counter with `n` the hits and `e` the end of the window, which begins with
// its first hit.

import type { RateLimitStore } from '../../oauth/ports/ports.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

const WINDOW = `${CLOCK}
local hits, ends = unpack(redis.call('HMGET', KEYS[1], 'n', 'e'))
local running = hits and now < tonumber(ends)
`;

/** ARGV offset, limit, milliseconds of the window. */
const HIT: Script = {
  name: 'rateLimitHit',
  keys: 1,
  lua: `${WINDOW}
hits = running and hits + 1 or 1
ends = running and ends or now + ARGV[3]
redis.call('HSET', KEYS[1], 'n', hits, 'e', ends)
expire(KEYS[1], ends)
return hits > tonumber(ARGV[2]) and math.ceil((ends - now) / 1000) or 0
`,
};

const REFUND: Script = {
  name: 'rateLimitRefund',
  keys: 1,
  lua: `${WINDOW}
if not running then return end
if tonumber(hits) > 1 then redis.call('HSET', KEYS[1], 'n', hits - 1) else redis.call('DEL', KEYS[1]) end
`,
};

/** {@link RateLimitStore} in Redis. */
export class RedisRateLimits implements RateLimitStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async hit(key: string, limit: number, windowMilliseconds: number): Promise<number> {
    const args = [limit, windowMilliseconds];
    return (await this.#connection.run({ script: HIT, keys: [this.#keys.rateLimit(key)], args })) as number;
  }

  async refund(key: string): Promise<void> {
    await this.#connection.run({ script: REFUND, keys: [this.#keys.rateLimit(key)] });
  }
}
