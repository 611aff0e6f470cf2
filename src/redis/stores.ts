// All stores over one Redis, shared by every replica of a deployment. `memory/` has the same for one process.

import type { Stores } from '../oauth/ports.ts';
import { RedisAccessTokens } from './access-tokens.ts';
import { RedisConsents } from './consents.ts';
import { RedisGrants } from './grants.ts';
import { RedisInteractions } from './interactions.ts';
import { RedisRateLimits } from './rate-limits.ts';
import { RedisReplays } from './replays.ts';
import { RedisRevokedTokens } from './revoked-tokens.ts';
import { RedisSessions } from './sessions.ts';
import type { StoreParts } from './store-parts.ts';
import { RedisWatermarks } from './watermarks.ts';

/** The stores of the deployment whose keys these are. */
export function redisStores(redis: StoreParts): Stores {
  const watermarks = new RedisWatermarks(redis);
  return {
    grants: new RedisGrants({ ...redis, watermarks }),
    accessTokens: new RedisAccessTokens(redis),
    revokedTokens: new RedisRevokedTokens(redis),
    watermarks,
    sessions: new RedisSessions(redis),
    interactions: new RedisInteractions(redis),
    consents: new RedisConsents(redis),
    replays: new RedisReplays(redis),
    rateLimits: new RedisRateLimits(redis),
  };
}
