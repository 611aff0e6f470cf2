// How a process joins the deployment whose state is in its Redis: it reaches the servers, looks whether they are set up for
// it, agrees with the other replicas on the issuer, and begins to watch the shards. Where Redis is away, later.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { StoreUnavailableError } from '../oauth/error.ts';
import type { ManagedConnection } from '../redis/connection.ts';
import { agreeOnIssuer, IssuerConflictError } from '../redis/deployment.ts';
import type { RedisKeys } from '../redis/keys.ts';
import { type ShardEvent, ShardWatch } from '../redis/shard-watch.ts';
import { checkRedis } from '../redis/start-checks.ts';
import type { RedisSettings } from './redis-config.ts';
import { unreachable } from './redis-fault.ts';
import { StartError } from './start-error.ts';

/** How long a try waits for Redis, in milliseconds. */
const PATIENCE = 2000;
/** Between two later tries, in milliseconds. */
const PAUSE = 1000;

export interface JoiningParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly redis: RedisSettings;
  /** What this process was told, and what is taken where neither it nor Redis was told anything. */
  readonly issuer: { readonly explicit: string | undefined; readonly fallback: string };
  readonly log: Logger;
}

export class Joining {
  readonly #parts: JoiningParts;
  #findings: readonly string[] = [];
  #watch: ShardWatch | undefined;
  #isEnded = false;

  constructor(parts: JoiningParts) {
    this.#parts = parts;
  }

  /** What is not as it should be with the servers, as slugs; none before they were reached. */
  get findings(): readonly string[] {
    return this.#findings;
  }

  /**
   * Joins now or, where Redis is away and `onFatal` is given, as soon as it can.
   * @param onFatal told what no waiting would mend, where that shows only later
   * @returns the issuer of the deployment; the one this process was told, as long as Redis is away
   * @throws StartError with what is wrong and how to mend it
   */
  async begin(onFatal?: (error: StartError) => void): Promise<string> {
    const { redis, issuer, log } = this.#parts;
    try {
      return await this.#join();
    } catch (error) {
      const fault = startError(redis, error);
      if (onFatal === undefined || !mayPass(error)) throw fault;
      log.warn(`redis: ${fault.message}`);
      void this.#later(onFatal);
      return issuer.explicit ?? issuer.fallback;
    }
  }

  /** Watches no longer, and tries no more. */
  end(): void {
    this.#isEnded = true;
    this.#watch?.stop();
  }

  async #later(onFatal: (error: StartError) => void): Promise<void> {
    while (!this.#isEnded) {
      await sleep(PAUSE, undefined, { ref: false });
      try {
        await this.#join();
        this.#parts.log.info('redis: reached');
        return;
      } catch (error) {
        const fault = startError(this.#parts.redis, error);
        if (!mayPass(error)) return onFatal(fault);
      }
    }
  }

  async #join(): Promise<string> {
    const { connection, keys, issuer, log } = this.#parts;
    await connection.ready(PATIENCE);
    this.#findings = await this.#checked();
    const agreed = await agreeOnIssuer({ connection, keys }, issuer);
    const observe = (event: ShardEvent) => logEvent(log, event);
    if (!this.#isEnded) await this.#begin(new ShardWatch({ connection, keys, issuer: agreed, observe }));
    return agreed;
  }

  /** A watch whose first look fails is not gone on with: the next try has its own. */
  async #begin(watch: ShardWatch): Promise<void> {
    this.#watch = watch;
    try {
      await watch.start();
    } catch (error) {
      watch.stop();
      throw error;
    }
  }

  /** Says what is wrong with the servers. @returns the reasons. @throws StartError where it cannot be or, strictly, must not */
  async #checked(): Promise<readonly string[]> {
    const { connection, redis, log } = this.#parts;
    const findings = await checkRedis(connection, redis);
    const refused = redis.strict ? findings : findings.filter(({ isFatal }) => isFatal);
    if (refused.length > 0) throw new StartError(refused.map(({ message }) => message).join('; '), 1);
    for (const { reason, message } of findings) log.warn({ reason }, `redis: ${message}`);
    return [...new Set(findings.map(({ reason }) => reason))];
  }
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
