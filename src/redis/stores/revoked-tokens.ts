// The store of revoked JWT access tokens in Redis: a mark on each `jti`. The value of a mark is its end; of two marks
// on one `jti` the later end stays.

import type { RevokedTokenStore } from '../../oauth/ports/token-stores.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { unacknowledged } from '../link/redis-errors.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** Seconds a mark outlives its token: a resource server that checks the token may have a slow clock. */
const MARGIN_SECONDS = 60;

const MARK: Script = {
  name: 'revokedTokenMark',
  keys: 1,
  allowsOom: true,
  lua: `${CLOCK}
local ends = math.max(redis.call('GET', KEYS[1]) or 0, ARGV[2] * 1000)
redis.call('SET', KEYS[1], ends, 'PX', lifetime(ends))
`,
};

const HAS: Script = {
  name: 'revokedTokenHas',
  keys: 1,
  lua: `${CLOCK}return now < tonumber(redis.call('GET', KEYS[1]) or 0) and 1 or 0`,
};

/** {@link RevokedTokenStore} in Redis. */
export class RedisRevokedTokens implements RevokedTokenStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** @throws StoreUnavailableError also when too few replicas of Redis acknowledge the write; the caller may retry */
  async mark(jti: string, expiresAtSeconds: number): Promise<void> {
    const ends = expiresAtSeconds + MARGIN_SECONDS;
    const key = this.#keys.revokedToken(jti);
    const mark = { script: MARK, keys: [key], args: [ends] };
    const { acknowledged } = await this.#connection.runDurably(mark);
    this.#connection.recordForReplay(mark);
    if (!acknowledged) throw unacknowledged(MARK);
  }

  async has(jti: string): Promise<boolean> {
    return (await this.#connection.run({ script: HAS, keys: [this.#keys.revokedToken(jti)] })) === 1;
  }
}
