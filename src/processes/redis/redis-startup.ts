// How a process joins the deployment whose state is in its Redis: it reaches the servers, looks whether they are set up for
// it, agrees with the other replicas on the issuer, and begins to watch the shards. Where Redis is away, later.

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

/** How long the first try waits for every primary, in milliseconds. */
const PATIENCE = 2000;
/** The same for each later one, and between two of them. */
const PAUSE = 500;

export interface RedisStartupParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly redis: RedisSettings;
  /** What this process was told, and what is taken where neither it nor Redis was told anything. */
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

  /** What is not as it should be with the servers, as slugs; none before they were reached. */
  get findings(): readonly string[] {
    const found = this.#checks.findings.map(({ reason }) => reason);
    return [...new Set<string>(this.clockSkew === 0 ? found : [...found, 'clock_skew'])];
  }

  /** Milliseconds by which our clock is ahead of that of Redis, behind where negative; 0 where that does no harm. */
  get clockSkew(): number {
    return this.#watch?.clockSkew ?? 0;
  }

  /** Whether the state is known to be that of our issuer, and is watched. */
  get isJoined(): boolean {
    return this.#agreed !== undefined;
  }

  /** Whether a shard may be served: never before it was looked at. */
  admits(shard: string): boolean {
    return this.isJoined && this.#watch?.hasSeen(shard) === true;
  }

  /** How many shards may not be served yet. */
  get closedShards(): number {
    return SHARDS.filter((shard) => !this.admits(shard)).length;
  }

  /**
   * Joins now or, where Redis is away and `onFatal` is given, as soon as it can; what can be reached of a Cluster is enough
   * then, if the issuer is in it.
   * @param onFatal told what no waiting would mend, where that shows only later
   * @returns the issuer of the deployment; the one this process was told, as long as it cannot be asked for
   * @throws StartError with what is wrong and how to mend it
   */
  async begin(onFatal?: (error: StartError) => void): Promise<string> {
    const { connection, issuer, log } = this.#parts;
    try {
      if (onFatal === undefined) await connection.ready(PATIENCE);
      const isWhole = await this.#join(PATIENCE);
      if (onFatal !== undefined && !isWhole) void this.#later(onFatal);
    } catch (error) {
      const fault = this.#startError(error);
      if (onFatal === undefined || !mayPass(error)) throw fault;
      log.warn(`redis: ${fault.message}`);
      void this.#later(onFatal);
    }
    return this.#agreed ?? issuer.explicit ?? issuer.fallback;
  }

  /** Watches no longer, and tries no more. */
  end(): void {
    this.#isEnded = true;
    this.#watch?.stop();
  }

  /** Until every primary was reached. */
  async #later(onFatal: (error: StartError) => void): Promise<void> {
    while (!this.#isEnded) {
      await sleep(PAUSE, undefined, { ref: false });
      try {
        if (!(await this.#join(PAUSE))) continue;
        this.#parts.log.info('redis: reached');
        return;
      } catch (error) {
        const fault = this.#startError(error);
        if (!mayPass(error)) return onFatal(fault);
      }
    }
  }

  /** Does what is left to do and can be done. @returns whether nothing is left, with any primary */
  async #join(patience: number): Promise<boolean> {
    const { connection, keys, issuer, log } = this.#parts;
    await connection.ready(patience).catch(() => {});
    const isWhole = connection.isUp;
    await this.#check();
    if (this.isJoined) return isWhole;
    const agreed = await claimIssuer({ connection, keys }, issuer);
    if (this.#isEnded) return isWhole;
    await this.#watchOver(agreed);
    this.#agreed = agreed;
    if (!isWhole) {
      const away = connection.primaries.flatMap(({ name, isUp }) => (isUp ? [] : name));
      log.warn({ away }, 'redis: these primaries are away; what they have is answered 503 meanwhile');
    }
    return isWhole;
  }

  /** A watch that has seen a part sees to the rest by itself; one that has seen nothing leaves it to that of the next try. */
  async #watchOver(issuer: string): Promise<void> {
    const { connection, keys, clock, log } = this.#parts;
    const watch = new ShardWatch({ connection, keys, issuer, clock, observe: (event) => logEvent(log, event) });
    this.#watch = watch;
    try {
      await watch.start();
    } catch (error) {
      if (!mayPass(error) || !SHARDS.some((shard) => watch.hasSeen(shard))) {
        watch.stop();
        throw error;
      }
    }
  }

  /** Says what is wrong with the servers that were not looked at yet. @throws StartError where it cannot be or, strictly, must not */
  async #check(): Promise<void> {
    const { redis, log } = this.#parts;
    const findings = await this.#checks.look();
    const refused = redis.strict ? findings : findings.filter(({ isFatal }) => isFatal);
    if (refused.length > 0) throw new StartError(refused.map(({ message }) => message).join('; '), 1);
    for (const { reason, message } of findings) log.warn({ reason }, `redis: ${message}`);
  }

  /** What a person is told. @throws what is nobody's fault but ours */
  #startError(error: unknown): StartError {
    const { connection, redis } = this.#parts;
    if (error instanceof StartError) return error;
    if (error instanceof IssuerConflictError) return new StartError(error.message, 2);
    const cause = error instanceof Error ? error.cause : undefined;
    if (mayPass(error) || isReply(cause)) return unusable(redis, connection.primaries, cause);
    throw error;
  }
}

/** Whether waiting can help: a Redis that is away comes back. */
function mayPass(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}

function logEvent(log: Logger, event: ShardEvent): void {
  switch (event.kind) {
    case 'found_empty':
      // Nobody can tell a new Redis from one that was emptied while nobody was there; in all else there is no doubt.
      if (event.isFirstLook) log.info({ shards: event.shards }, 'redis: nothing of this deployment was there yet');
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
