// Joins a process to the deployment whose state is in its Redis: reaches the servers, checks their configuration,
// agrees with the other replicas on the issuer, and starts the watch over the shards. While Redis is unavailable, it retries.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import type { ManagedConnection } from '../../redis/connection/connection.ts';
import type { RedisKeys } from '../../redis/connection/keys.ts';
import { claimIssuer, IssuerConflictError } from '../../redis/data-loss/issuer-claim.ts';
import type { ShardEvent } from '../../redis/data-loss/shard-repair.ts';
import { ShardWatch } from '../../redis/data-loss/shard-watch.ts';
import { StartChecks } from '../../redis/data-loss/start-checks.ts';
import { isReply } from '../../redis/link/redis-errors.ts';
import type { RedisSettings } from '../config/redis-config.ts';
import { StartError } from '../config/start-error.ts';
import { describeSkew, unusable } from './redis-fault.ts';

/** How long the first attempt waits for every primary, in milliseconds. */
const FIRST_TIMEOUT = 2000;
/** The same for each later attempt, and the pause before it. */
const RETRY_INTERVAL = 500;

export interface RedisStartupParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly redis: RedisSettings;
  /** The configured issuer, and the one that is used where none is configured and Redis holds none. */
  readonly issuer: { readonly explicit: string | undefined; readonly fallback: string };
  /** By which tokens and sign-ins are dated. */
  readonly clock: Clock;
  readonly log: Logger;
}

export class RedisStartup {
  readonly #parts: RedisStartupParts;
  readonly #checks: StartChecks;
  #agreed: string | undefined;
  #watch: ShardWatch | undefined;
  #isEnded = false;

  constructor(parts: RedisStartupParts) {
    this.#parts = parts;
    this.#checks = new StartChecks(parts.connection, parts.redis);
  }

  /** The faults of the servers, as slugs; none before they were reached. */
  get findings(): readonly string[] {
    const found = this.#checks.findings.map(({ reason }) => reason);
    return [...new Set<string>(this.clockSkew === 0 ? found : [...found, 'clock_skew'])];
  }

  /** Milliseconds by which the local clock is ahead of that of Redis, behind where negative; 0 where that does no harm. */
  get clockSkew(): number {
    return this.#watch?.clockSkew ?? 0;
  }

  /** Whether the state is known to be that of this issuer, and is watched. */
  get isJoined(): boolean {
    return this.#agreed !== undefined;
  }

  /** Whether a shard may be served: never before the watch has checked it. */
  admits(shard: string): boolean {
    return this.isJoined && this.#watch?.hasChecked(shard) === true;
  }

  /** How many shards may not be served yet. */
  get uncheckedShards(): number {
    return SHARDS.filter((shard) => !this.admits(shard)).length;
  }

  /**
   * Joins now or, where Redis is unavailable and `onFatal` is given, as soon as it can; the primaries of a Cluster that can be
   * reached are enough then, if they hold the issuer.
   * @param onFatal called with a fault that no retry would mend, where it shows only later
   * @returns the issuer of the deployment; the configured one while Redis cannot be asked for it
   * @throws StartError with the fault and its remedy
   */
  async begin(onFatal?: (error: StartError) => void): Promise<string> {
    const { connection, issuer, log } = this.#parts;
    try {
      if (onFatal === undefined) await connection.ready(FIRST_TIMEOUT);
      const isWhole = await this.#join(FIRST_TIMEOUT);
      if (onFatal !== undefined && !isWhole) void this.#retry(onFatal);
    } catch (error) {
      const fault = this.#startError(error);
      if (onFatal === undefined || !isTransient(error)) throw fault;
      log.warn(`redis: ${fault.message}`);
      void this.#retry(onFatal);
    }
    return this.#agreed ?? issuer.explicit ?? issuer.fallback;
  }

  /** Stops the watch and the retries. */
  end(): void {
    this.#isEnded = true;
    this.#watch?.stop();
  }

  /** Retries until every primary was reached. */
  async #retry(onFatal: (error: StartError) => void): Promise<void> {
    while (!this.#isEnded) {
      await sleep(RETRY_INTERVAL, undefined, { ref: false });
      try {
        if (!(await this.#join(RETRY_INTERVAL))) continue;
        this.#parts.log.info('redis: reached');
        return;
      } catch (error) {
        const fault = this.#startError(error);
        if (!isTransient(error)) return onFatal(fault);
      }
    }
  }

  /** Takes the remaining steps that are possible now. @returns whether every primary was reached */
  async #join(timeout: number): Promise<boolean> {
    const { connection, keys, issuer, log } = this.#parts;
    await connection.ready(timeout).catch(() => {});
    const isWhole = connection.isUp;
    await this.#check();
    if (this.isJoined) return isWhole;
    const agreed = await claimIssuer({ connection, keys }, issuer);
    if (this.#isEnded) return isWhole;
    await this.#startWatch(agreed);
    this.#agreed = agreed;
    if (!isWhole) {
      const unavailable = connection.primaries.flatMap(({ name, isUp }) => (isUp ? [] : name));
      log.warn(
        { away: unavailable },
        'redis: these primaries are unavailable; what they have is answered 503 meanwhile',
      );
    }
    return isWhole;
  }

  /** A watch that has checked some shards checks the rest by itself; one that has checked none ends with this attempt. */
  async #startWatch(issuer: string): Promise<void> {
    const { connection, keys, clock, log } = this.#parts;
    const watch = new ShardWatch({ connection, keys, issuer, clock, observe: (event) => logEvent(log, event) });
    this.#watch = watch;
    try {
      await watch.start();
    } catch (error) {
      if (!isTransient(error) || !SHARDS.some((shard) => watch.hasChecked(shard))) {
        watch.stop();
        throw error;
      }
    }
  }

  /** Logs the findings about servers not checked before. @throws StartError for a fatal one or, where strict, for any */
  async #check(): Promise<void> {
    const { redis, log } = this.#parts;
    const findings = await this.#checks.check();
    const refused = redis.strict ? findings : findings.filter(({ isFatal }) => isFatal);
    if (refused.length > 0) throw new StartError(refused.map(({ message }) => message).join('; '), 1);
    for (const { reason, message } of findings) log.warn({ reason }, `redis: ${message}`);
  }

  /** The error with its message for a person. @throws any error that is a fault of grantry itself */
  #startError(error: unknown): StartError {
    const { connection, redis } = this.#parts;
    if (error instanceof StartError) return error;
    if (error instanceof IssuerConflictError) return new StartError(error.message, 2);
    const cause = error instanceof Error ? error.cause : undefined;
    if (isTransient(error) || isReply(cause)) return unusable(redis, connection.primaries, cause);
    throw error;
  }
}

/** Whether a retry can help: an unavailable Redis recovers. */
function isTransient(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}

function logEvent(log: Logger, event: ShardEvent): void {
  switch (event.kind) {
    case 'found_empty':
      // At a first check a new Redis cannot be distinguished from an emptied one; otherwise it is certainly a loss.
      if (event.isFirstCheck) log.info({ shards: event.shards }, 'redis: nothing of this deployment was there yet');
      else log.error({ shards: event.shards }, 'redis: state was lost; everything issued before is void');
      return;
    case 'reasserted':
      log.warn({ writes: event.writes }, 'redis: reconnected; the last revocations were applied again');
      return;
    case 'issuer_conflict':
      log.error({ stored: event.error.stored, configured: event.error.configured }, 'redis: holds another deployment');
      return;
    case 'clock_skew':
      if (event.milliseconds === 0) log.info('redis: its clock and that of this process agree again');
      else log.warn({ milliseconds: event.milliseconds }, `redis: ${describeSkew(event.milliseconds)}`);
  }
}
