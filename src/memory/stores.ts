// Assembles all stores of one process, over maps. Their content is lost when the process ends; `redis/` is for more
// than one replica.

import type { Clock, Stores } from '../oauth/ports/ports.ts';
import type { StoredAccessToken } from '../oauth/ports/token-stores.ts';
import { MemoryAccessTokens } from './access-tokens.ts';
import { MemoryConsents } from './consents.ts';
import { ExpiringMap } from './expiring-map.ts';
import type { GrantRecord } from './grant-record.ts';
import { MemoryGrants } from './grants.ts';
import { GrantsOfPerson } from './grants-of-person.ts';
import { MemoryInteractions } from './interactions.ts';
import { MemoryLogins } from './logins.ts';
import { MemoryPersons } from './persons.ts';
import { MemoryRateLimits } from './rate-limits.ts';
import { MemoryReplays } from './replays.ts';
import { MemoryRevokedTokens } from './revoked-tokens.ts';
import { MemorySessions, type SessionRecord } from './sessions.ts';
import { MemoryUsers } from './users.ts';
import { MemoryUses } from './uses.ts';
import { MemoryWatermarks } from './watermarks.ts';

/**
 * The most entries of each store. A full store throws StoreUnavailableError, except for rate limits and uses, which drop
 * the oldest entry.
 */
type MemoryLimits = Readonly<Record<keyof Stores, number>>;

const DEFAULT_LIMITS: MemoryLimits = {
  grants: 200_000,
  accessTokens: 200_000,
  revokedTokens: 200_000,
  watermarks: 200_000,
  users: 100_000,
  persons: 100_000,
  sessions: 100_000,
  logouts: 200_000,
  interactions: 100_000,
  consents: 100_000,
  uses: 200_000,
  replays: 500_000,
  rateLimits: 200_000,
};

/** An empty replay store, for marks that one replica keeps in its memory. */
export function memoryReplays(clock: Clock, capacity = DEFAULT_LIMITS.replays): MemoryReplays {
  return new MemoryReplays({ clock, used: new ExpiringMap({ clock, capacity, name: 'replays' }) });
}

/** Empty stores. @param limits replaces single defaults. */
export function memoryStores({ clock, limits }: { clock: Clock; limits?: Partial<MemoryLimits> }): Stores {
  const capacities = { ...DEFAULT_LIMITS, ...limits };
  function map<Value>(name: keyof Stores, whenFull: 'refuse' | 'forget-oldest' = 'refuse'): ExpiringMap<Value> {
    return new ExpiringMap<Value>({ clock, capacity: capacities[name], name, whenFull });
  }
  const accessTokens = map<StoredAccessToken>('accessTokens');
  const records = map<GrantRecord>('grants');
  const watermarks = new MemoryWatermarks({ clock, times: map('watermarks') });
  const sessions = map<SessionRecord>('sessions');
  const logins = new MemoryLogins({ clock, recorded: map('logouts'), pending: map('logouts') });
  const consents = new MemoryConsents({ clock, consents: map('consents') });
  const uses = new MemoryUses({ clock, uses: map('uses', 'forget-oldest') });
  const users = new MemoryUsers({ clock, users: map('users'), sessions, logins, consents, uses, watermarks });
  return {
    grants: new MemoryGrants({
      clock,
      records,
      accessTokens,
      watermarks,
      sessions,
      logins,
      ofPerson: new GrantsOfPerson({ index: map('grants'), records }),
      uses,
    }),
    accessTokens: new MemoryAccessTokens({ tokens: accessTokens }),
    revokedTokens: new MemoryRevokedTokens({ marks: map('revokedTokens') }),
    watermarks,
    users,
    persons: new MemoryPersons({ clock, persons: map('persons') }),
    sessions: new MemorySessions({ clock, sessions, logins, users, watermarks }),
    logouts: logins,
    interactions: new MemoryInteractions({ clock, bySession: map('interactions') }),
    consents,
    uses,
    replays: memoryReplays(clock, capacities.replays),
    rateLimits: new MemoryRateLimits({ clock, windows: map('rateLimits', 'forget-oldest') }),
  };
}
