// The state in Redis of a process that serves tokens: the connection with its credentials, the agreed issuer, the watch
// over the shards, and the stores. `memory/` takes its place where no Redis is configured.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { ReadinessCheck } from '../../http/admin/admin.ts';
import type { StoreProbe } from '../../http/metrics/metrics.ts';
import type { Stores } from '../../oauth/ports/ports.ts';
import { connectRedis, type ManagedConnection } from '../../redis/connection/connection.ts';
import { GuardedConnection } from '../../redis/connection/guarded-connection.ts';
import { RedisKeys } from '../../redis/connection/keys.ts';
import type { RedisTarget } from '../../redis/link/redis-url.ts';
import { redisStores } from '../../redis/stores.ts';
import type { RedisCredentials } from '../../redis/topology/connection-maker.ts';
import type { RedisSettings } from '../config/redis-config.ts';
import { StartError } from '../config/start-error.ts';
import { systemClock } from '../lifecycle/machine.ts';
import { describeAwayPart, describeSkew, describeTarget } from './redis-fault.ts';
import { RedisStartup } from './redis-startup.ts';

export interface RedisStateOptions {
  readonly redis: RedisSettings;
  /** The issuer by GRANTRY_ISSUER or its flag, and the one that is used where neither is set and Redis holds none. */
  readonly issuer: { readonly explicit: string | undefined; readonly fallback: string };
  readonly log: Logger;
  /**
   * Set where the process serves although Redis is unavailable at the start: joining is retried for as long as it takes, and
   * this is called with a fault that no retry would mend. The issuer must be an explicit one.
   */
  readonly onFatal?: (error: StartError) => void;
}

/** State in a Redis. */
export interface RedisState {
  readonly stores: Stores;
  /** The issuer of all replicas on this Redis. */
  readonly issuer: string;
  /** Refuses requests in a shard that was not checked yet. */
  readonly connection: GuardedConnection;
  readonly keys: RedisKeys;
  readonly probe: StoreProbe;
  /** An unavailable Redis makes no replica unready: all of them share it, and much is served without it. */
  readonly readiness: ReadinessCheck;
  /** The address of Redis, for messages. */
  readonly place: string;
  close(): Promise<void>;
}

/** Connects, agrees on the issuer, and checks every shard. @throws StartError with the fault and its remedy */
export async function openRedisState({ redis, issuer, log, onFatal }: RedisStateOptions): Promise<RedisState> {
  const connection = connectRedis({
    target: redis.target,
    credentials: credentialsOf(redis),
    acknowledgement: redis.acknowledgement,
  });
  const keys = new RedisKeys(redis.prefix);
  const startup = new RedisStartup({ connection, keys, redis, issuer, clock: systemClock, log });
  const guarded = new GuardedConnection({ connection, keys, isOpen: (shard) => startup.admits(shard) });
  const stores = redisStores({ connection: guarded, keys });
  async function close(): Promise<void> {
    startup.end();
    await connection.close();
  }
  const agreed = await startup.begin(onFatal).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    stores,
    connection: guarded,
    keys,
    close,
    issuer: agreed,
    place: describeTarget(redis.target),
    probe: {
      get isUp() {
        return connection.isUp;
      },
      warnings: () => startup.findings,
    },
    readiness: {
      name: 'redis',
      fault: () => readinessFault(connection, startup, redis.target),
      required: false,
    },
  };
}

/** The fault of Redis and its effect; undefined while there is none. */
function readinessFault(connection: ManagedConnection, startup: RedisStartup, target: RedisTarget): string | undefined {
  const place = describeTarget(target);
  const awayPart = describeAwayPart(connection.primaries);
  const cost = (what: string) => `what ${what} is answered 503, all else is served`;
  if (awayPart !== undefined) {
    return `away in part: ${awayPart} does not answer; ${cost(startup.isJoined ? 'lies there' : 'needs state')}`;
  }
  if (!connection.isUp) return `away: ${place} does not answer; ${cost('needs state')}`;
  if (!startup.isJoined) return `not joined: whose state ${place} holds is not known yet; ${cost('needs state')}`;
  const unchecked = startup.uncheckedShards;
  if (unchecked > 0) return `joined in part: ${unchecked} shards were not checked yet; ${cost('lies there')}`;
  return startup.clockSkew === 0 ? undefined : describeSkew(startup.clockSkew);
}

/** Reads the files. @throws StartError; where a later call than the first does, the connection keeps its credentials */
function credentialsOf(redis: RedisSettings): () => RedisCredentials {
  const read = (name: string, file: string | undefined) => {
    if (file === undefined) return undefined;
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new StartError(`${name}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`, 2);
    }
  };
  const readUsername = () => {
    const name = 'GRANTRY_REDIS_USERNAME_FILE';
    const username = read(name, redis.usernameFile)?.trimEnd();
    // The empty name would be the default user’s: the password would be sent alone.
    if (username === '') throw new StartError(`${name}: ${redis.usernameFile} is empty: put the user there`, 2);
    return username ?? redis.username;
  };
  return () => ({
    username: readUsername(),
    password: read('GRANTRY_REDIS_PASSWORD_FILE', redis.passwordFile)?.trimEnd(),
    sentinelPassword: read('GRANTRY_REDIS_SENTINEL_PASSWORD_FILE', redis.sentinelPasswordFile)?.trimEnd(),
    ca: read('GRANTRY_REDIS_CA_FILE', redis.caFile),
    certificate: read('GRANTRY_REDIS_CERTIFICATE_FILE', redis.certificateFile),
    key: read('GRANTRY_REDIS_KEY_FILE', redis.keyFile),
  });
}
