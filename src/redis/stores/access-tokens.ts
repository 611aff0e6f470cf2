// The store of opaque access tokens in Redis, one JSON string each. `grant-scripts.ts` writes those of a grant, in the
// script that redeems or rotates.

import type { AccessTokenStore, StoredAccessToken } from '../../oauth/ports/token-stores.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { unacknowledged } from '../link/redis-errors.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

const WRITE: Script = {
  name: 'accessTokenWrite',
  keys: 1,
  lua: `${CLOCK}redis.call('SET', KEYS[1], ARGV[2], 'PX', lifetime(ARGV[3] * 1000))`,
};

const READ: Script = {
  name: 'accessTokenRead',
  keys: 1,
  lua: `${CLOCK}
local token = redis.call('GET', KEYS[1])
return token and token ~= '' and now < cjson.decode(token).expiresAtSeconds * 1000 and token
`,
};

/** Replies 1 for a token that lives or was revoked. */
const IS_KNOWN: Script = { name: 'accessTokenIsKnown', keys: 1, lua: `return redis.call('EXISTS', KEYS[1])` };

/**
 * Leaves an empty value until the token would have expired: a revocation that was not acknowledged is asked for again,
 * and has to write again, because WAIT covers only the writes of its own connection.
 */
const REVOKE: Script = {
  name: 'accessTokenRevoke',
  keys: 1,
  allowsOom: true,
  lua: `redis.call('SET', KEYS[1], '', 'XX', 'KEEPTTL')`,
};

/** Recorded for replay under a name of its own: revocations of made-up tokens must not displace those of real ones. */
const REVOKE_UNKNOWN: Script = { ...REVOKE, name: 'accessTokenRevokeUnknown' };

/** {@link AccessTokenStore} in Redis. */
export class RedisAccessTokens implements AccessTokenStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async write(token: StoredAccessToken): Promise<void> {
    const key = this.#keys.accessToken(token.tokenId);
    await this.#connection.run({ script: WRITE, keys: [key], args: [JSON.stringify(token), token.expiresAtSeconds] });
  }

  async read(tokenId: string): Promise<StoredAccessToken | undefined> {
    const json = (await this.#connection.run({ script: READ, keys: [this.#keys.accessToken(tokenId)] })) as
      | string
      | null;
    if (json === null) return undefined;
    const token = JSON.parse(json) as StoredAccessToken;
    // JSON leaves out what is undefined.
    return { ...token, grantId: token.grantId, authTime: token.authTime };
  }

  /** @throws StoreUnavailableError also when too few replicas of Redis acknowledge the write; the caller may retry */
  async revoke(tokenId: string): Promise<void> {
    const revoke = { script: REVOKE, keys: [this.#keys.accessToken(tokenId)] };
    // A durable write leases a connection. Any caller can name a public client and make up tokens: those take none.
    if ((await this.#connection.run({ ...revoke, script: IS_KNOWN })) === 0) {
      // This server may have lost it, and another one may have it after a fail-over.
      this.#connection.recordForReplay({ ...revoke, script: REVOKE_UNKNOWN });
      return;
    }
    const { acknowledged } = await this.#connection.runDurably(revoke);
    this.#connection.recordForReplay(revoke);
    if (!acknowledged) throw unacknowledged(REVOKE);
  }
}
