// Connections lent to one request at a time, for WAIT: it counts only what its own connection wrote, and blocks it.

import type { Redis } from 'ioredis';
import type { Clock } from '../../oauth/ports/ports.ts';
import { UnansweredError, within } from './redis-errors.ts';

/** The most connections beside the shared one, and so the most leases at a time. */
const SIZE = 8;

/** The most requests that may wait for a lease. */
const MOST_WAITING = 200;

/** When the caller gives up, and how long its work takes; milliseconds. */
export interface LeaseLimits {
  readonly deadline: number;
  readonly needed: number;
}

export class LeasedConnections {
  readonly #connect: () => Redis;
  readonly #clock: Clock;
  readonly #idle: Redis[] = [];
  /** Those being made included. */
  readonly #lent = new Set<Redis>();
  readonly #waiting = new Set<() => void>();
  #leases = 0;

  /** @param connect makes a connection that is not yet connected and does not come back by itself; may throw */
  constructor({ connect, clock }: { connect: () => Redis; clock: Clock }) {
    this.#connect = connect;
    this.#clock = clock;
  }

  /**
   * Lends a connection for one use; one that its use failed on is never lent again.
   * @param limits.deadline of the clock, in milliseconds
   * @param limits.needed what the work may take once it has a connection: it is not begun with less
   * @throws UnansweredError, or what the work throws
   */
  async use<Value>({ deadline, needed }: LeaseLimits, work: (redis: Redis) => Promise<Value>): Promise<Value> {
    await this.#lease(deadline - needed);
    try {
      const redis = await this.#connection(deadline);
      // Waiting for a turn, or connecting, may have taken the time that the work needs.
      if (this.#clock.now() > deadline - needed) {
        this.#takeBack(redis);
        throw new UnansweredError('too_many_in_flight');
      }
      return await this.#work(redis, deadline, work);
    } finally {
      this.#passOn();
    }
  }

  /** Closes every connection; uses in progress fail. */
  clear(): void {
    for (const redis of [...this.#idle.splice(0), ...this.#lent]) redis.disconnect();
    this.#lent.clear();
  }

  async #lease(deadline: number): Promise<void> {
    if (this.#leases < SIZE) {
      this.#leases += 1;
      return;
    }
    if (this.#waiting.size >= MOST_WAITING) throw new UnansweredError('too_many_in_flight');
    let granted = () => {};
    const turn = new Promise<void>((resolve) => {
      granted = resolve;
    });
    this.#waiting.add(granted);
    try {
      await within(deadline - this.#clock.now(), turn);
    } catch {
      throw new UnansweredError('too_many_in_flight');
    } finally {
      this.#waiting.delete(granted);
    }
  }

  /** Hands the lease to whoever waits longest. */
  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#leases -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  async #work<Value>(redis: Redis, deadline: number, work: (redis: Redis) => Promise<Value>): Promise<Value> {
    try {
      const value = await within(deadline - this.#clock.now(), work(redis));
      this.#takeBack(redis);
      return value;
    } catch (error) {
      this.#drop(redis);
      throw error;
    }
  }

  async #connection(deadline: number): Promise<Redis> {
    for (let redis = this.#idle.pop(); redis !== undefined; redis = this.#idle.pop()) {
      this.#lent.add(redis);
      if (redis.status === 'ready') return redis;
      this.#drop(redis);
    }
    const redis = this.#connect();
    this.#lent.add(redis);
    redis.on('error', () => {});
    try {
      await within(deadline - this.#clock.now(), redis.connect());
      return redis;
    } catch (error) {
      this.#drop(redis);
      throw error instanceof UnansweredError ? error : new UnansweredError('disconnected', error);
    }
  }

  /** For the next use, unless it was closed meanwhile. */
  #takeBack(redis: Redis): void {
    if (this.#lent.delete(redis)) this.#idle.push(redis);
  }

  #drop(redis: Redis): void {
    this.#lent.delete(redis);
    redis.disconnect();
  }
}
