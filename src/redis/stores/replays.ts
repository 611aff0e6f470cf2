// The replay store in Redis: marks on values that may be used once. Redis must not evict keys (`noeviction`): a flood
// of values fills the memory and is refused with an error, and does not displace a mark.

import type { ReplayStore } from '../../oauth/ports/ports.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** ARGV offset, end of the mark. */
const CLAIM: Script = {
  name: 'replayClaim',
  keys: 1,
  lua: `${CLOCK}
if now < tonumber(redis.call('GET', KEYS[1]) or 0) then return 'seen' end
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

  async claim(purpose: string, value: string, expiresAt: number): Promise<'fresh' | 'seen'> {
    const answer = await this.#connection.run({
      script: CLAIM,
      keys: [this.#keys.replay(purpose, value)],
      args: [expiresAt],
    });
    return answer as 'fresh' | 'seen';
  }
}
