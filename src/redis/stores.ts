// Assembles all stores over one Redis, which every replica of a deployment shares. `memory/` holds the same stores for
// one process.

import type { Stores } from '../oauth/ports/ports.ts';
import type { StoreParts } from './connection/store-parts.ts';
import { RedisGrants } from './grants/grants.ts';
import { RedisAccessTokens } from './stores/access-tokens.ts';
import { RedisConsents } from './stores/consents.ts';
import { RedisInteractions } from './stores/interactions.ts';
import { redisLogouts } from './stores/logouts.ts';
import { RedisPersons } from './stores/persons.ts';
import { RedisRateLimits } from './stores/rate-limits.ts';
import { RedisReplays } from './stores/replays.ts';
import { RedisRevokedTokens } from './stores/revoked-tokens.ts';
import { RedisSessions } from './stores/sessions.ts';
import { RedisUsers } from './stores/users.ts';
import { RedisUses } from './stores/uses.ts';
import { RedisWatermarks } from './stores/watermarks.ts';

/** The stores of the deployment with these keys. */
export function redisStores(redis: StoreParts): Stores {
  const watermarks = new RedisWatermarks(redis);
  return {
    grants: new RedisGrants({ ...redis, watermarks }),
    accessTokens: new RedisAccessTokens(redis),
    revokedTokens: new RedisRevokedTokens(redis),
    watermarks,
    users: new RedisUsers(redis),
    persons: new RedisPersons(redis),
    sessions: new RedisSessions(redis),
    logouts: redisLogouts(redis),
    interactions: new RedisInteractions(redis),
    consents: new RedisConsents(redis),
    uses: new RedisUses(redis),
    replays: new RedisReplays(redis),
    rateLimits: new RedisRateLimits(redis),
  };
}
