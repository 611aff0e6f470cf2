// The replay store in Redis: marks on values that may be used once. Redis must not evict keys (`noeviction`): a flood
// of values fills the memory and is refused with an error, and does not displace a mark.

import type { ReplayStore } from '../../oauth/ports/ports.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/**
 * KEYS mark, marker of its shard, the shard's copy of the global watermark; ARGV offset, end of the mark, when the value
 * was issued or an empty string. The shard watch finds an emptied shard within a second; this script finds it at once.
 */
const CLAIM: Script = {
  name: 'replayClaim',
  keys: 3,
  lua: `${CLOCK}
if now < tonumber(redis.call('GET', KEYS[1]) or 0) then return 'seen' end
if ARGV[3] ~= '' then
  if redis.call('EXISTS', KEYS[2]) == 0 then return 'lost' end
  if tonumber(ARGV[3]) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return 'lost' end
end
if now < tonumber(ARGV[2]) then redis.call('SET', KEYS[1], ARGV[2], 'PX', lifetime(ARGV[2])) end
return 'fresh'
`,
};

/** {@link ReplayStore} in Redis. */
export class RedisReplays implements ReplayStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async claim(
    purpose: string,
    value: string,
    expiresAt: number,
    issuedAt?: number,
  ): Promise<'fresh' | 'seen' | 'lost'> {
    const mark = this.#keys.replay(purpose, value);
    const shard = this.#keys.shardOfKey(mark);
    const answer = await this.#connection.run({
      script: CLAIM,
      keys: [mark, this.#keys.marker(shard), this.#keys.globalWatermark(shard)],
      args: [expiresAt, issuedAt ?? ''],
    });
    return answer as 'fresh' | 'seen' | 'lost';
  }
}
