// State in Redis as a process has it: the connection with its credentials, whose state it is, the watch over its shards,
// and the stores. Used by whatever serves tokens; `memory/` takes its place where no Redis is configured.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ReadinessCheck } from '../http/admin.ts';
import type { StoreProbe } from '../http/metrics.ts';
import { StoreUnavailableError } from '../oauth/error.ts';
import type { Stores } from '../oauth/ports.ts';
import type { RedisCredentials } from '../redis/clients.ts';
import { connectRedis, type ManagedConnection } from '../redis/connection.ts';
import { agreeOnIssuer, IssuerConflictError } from '../redis/deployment.ts';
import { RedisKeys } from '../redis/keys.ts';
import { type ShardEvent, ShardWatch } from '../redis/shard-watch.ts';
import { checkRedis } from '../redis/start-checks.ts';
import { redisStores } from '../redis/stores.ts';
import type { RedisSettings } from './redis-config.ts';
import { describeTarget, unreachable } from './redis-fault.ts';
import { StartError } from './start-error.ts';

/** How long a start waits for Redis, in milliseconds. */
const PATIENCE = 2000;
/** Between two tries of a server that serves meanwhile, in milliseconds. */
const PAUSE = 1000;

export interface RedisStateOptions {
  readonly redis: RedisSettings;
  /** What GRANTRY_ISSUER or its flag says, and what is taken where neither they nor Redis say anything. */
  readonly issuer: { readonly explicit: string | undefined; readonly fallback: string };
  readonly log: Logger;
  /**
   * Set where others must be served although Redis is away at the start: it is tried again for as long as it takes, and this
   * is told what no waiting would mend. The issuer must be an explicit one.
   */
  readonly onFatal?: (error: StartError) => void;
}

/** State in a Redis. */
export interface RedisState {
  readonly stores: Stores;
  /** The one that all replicas on this Redis have. */
  readonly issuer: string;
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly probe: StoreProbe;
  /** Away, it makes no replica unready: all of them share it, and much is served without it. */
  readonly readiness: ReadinessCheck;
  /** Where it is, for people. */
  readonly place: string;
  close(): Promise<void>;
}

/** Connects, agrees on the issuer, and looks at every shard. @throws StartError with what is wrong and how to mend it */
export async function openRedisState({ redis, issuer, log, onFatal }: RedisStateOptions): Promise<RedisState> {
  const connection = connectRedis({
    target: redis.target,
    credentials: credentialsOf(redis),
    acknowledgement: redis.acknowledgement,
  });
  const keys = new RedisKeys(redis.prefix);
  const stores = redisStores({ connection, keys });
  let findings: readonly string[] = [];
  let watch: ShardWatch | undefined;
  let isClosed = false;
  async function join(): Promise<string> {
    await connection.ready(PATIENCE);
    findings = await checked(connection, redis, log);
    const agreed = await agreeOnIssuer({ connection, keys }, issuer);
    const observe = (event: ShardEvent) => logEvent(log, event);
    watch = new ShardWatch({ connection, keys, watermarks: stores.watermarks, issuer: agreed, observe });
    if (!isClosed) await watch.start();
    return agreed;
  }
  async function close(): Promise<void> {
    isClosed = true;
    watch?.stop();
    await connection.close();
  }
  async function joinLater(fatal: (error: StartError) => void): Promise<void> {
    while (!isClosed) {
      await sleep(PAUSE, undefined, { ref: false });
      try {
        await join();
        log.info('redis: reached');
        return;
      } catch (error) {
        watch?.stop();
        const fault = startError(redis, error);
        if (!mayPass(error)) return fatal(fault);
      }
    }
  }
  async function firstJoin(): Promise<string> {
    try {
      return await join();
    } catch (error) {
      const fault = startError(redis, error);
      if (onFatal === undefined || !mayPass(error)) {
        await close();
        throw fault;
      }
      log.warn(`redis: ${fault.message}`);
      watch?.stop();
      void joinLater(onFatal);
      return issuer.explicit ?? issuer.fallback;
    }
  }
  return {
    ...{ stores, connection, keys, close },
    issuer: await firstJoin(),
    place: describeTarget(redis.target),
    probe: {
      get isUp() {
        return connection.isUp;
      },
      warnings: () => findings,
    },
    readiness: {
      name: 'redis',
      fault: () => (connection.isUp ? undefined : 'away: what needs state is answered 503, all else is served'),
      required: false,
    },
  };
}

/** Whether waiting can help: a Redis that is away comes back. */
function mayPass(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}

/** What a person is told. @throws what is nobody's fault but ours */
function startError(redis: RedisSettings, error: unknown): StartError {
  if (error instanceof StartError) return error;
  if (error instanceof IssuerConflictError) return new StartError(error.message, 2);
  if (error instanceof StoreUnavailableError) return unreachable(redis, error.cause);
  throw error;
}

/** Says what is wrong with the servers. @returns the reasons. @throws StartError where it cannot be or, strictly, must not */
async function checked(connection: ManagedConnection, redis: RedisSettings, log: Logger): Promise<readonly string[]> {
  const findings = await checkRedis(connection, redis);
  const refused = redis.strict ? findings : findings.filter(({ isFatal }) => isFatal);
  if (refused.length > 0) throw new StartError(refused.map(({ message }) => message).join('; '), 1);
  for (const { reason, message } of findings) log.warn({ reason }, `redis: ${message}`);
  return [...new Set(findings.map(({ reason }) => reason))];
}

/** Reads the files. @throws StartError, at the first call: the connection keeps what it had when a later one fails */
function credentialsOf(redis: RedisSettings): () => RedisCredentials {
  const read = (name: string, file: string | undefined) => {
    if (file === undefined) return undefined;
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new StartError(`${name}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`, 2);
    }
  };
  return () => ({
    username: redis.username,
    password: read('GRANTRY_REDIS_PASSWORD_FILE', redis.passwordFile)?.trimEnd(),
    sentinelPassword: read('GRANTRY_REDIS_SENTINEL_PASSWORD_FILE', redis.sentinelPasswordFile)?.trimEnd(),
    ca: read('GRANTRY_REDIS_CA_FILE', redis.caFile),
    certificate: read('GRANTRY_REDIS_CERTIFICATE_FILE', redis.certificateFile),
    key: read('GRANTRY_REDIS_KEY_FILE', redis.keyFile),
  });
}

function logEvent(log: Logger, event: ShardEvent): void {
  switch (event.kind) {
    case 'found_empty':
      // Nobody can tell a new Redis from an emptied one at the first look; later there is no doubt.
      if (event.isFirstLook) log.info({ shards: event.shards }, 'redis: nothing of this deployment was there yet');
      else log.error({ shards: event.shards }, 'redis: state was lost; everything issued before is void');
      return;
    case 'reasserted':
      log.warn({ writes: event.writes }, 'redis: reconnected; the last revocations were applied again');
      return;
    case 'issuer_conflict':
      log.error({ stored: event.error.stored, configured: event.error.configured }, 'redis: holds another deployment');
  }
}
