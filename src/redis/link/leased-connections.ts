// Connections leased to one request at a time, for WAIT: it counts only what its own connection wrote, and blocks it.

import type { Redis } from 'ioredis';
import type { Clock } from '../../oauth/ports/ports.ts';
import { UnansweredError, within } from './redis-errors.ts';

/** The most connections beside the shared one, and so the most leases at a time. */
const SIZE = 8;

/** The most requests that may wait for a lease. */
const MOST_WAITING = 200;

/** The caller's deadline, and how long its work takes; milliseconds. */
export interface LeaseLimits {
  readonly deadline: number;
  readonly needed: number;
}

export class LeasedConnections {
  readonly #connect: () => Redis;
  readonly #clock: Clock;
  readonly #idle: Redis[] = [];
  /** Includes those that are connecting. */
  readonly #inUse = new Set<Redis>();
  readonly #waiting = new Set<() => void>();
  #leases = 0;

  /** @param connect makes a connection that is not yet connected and does not reconnect by itself; may throw */
  constructor({ connect, clock }: { connect: () => Redis; clock: Clock }) {
    this.#connect = connect;
    this.#clock = clock;
  }

  /**
   * Leases a connection for one use; a connection whose use failed is closed.
   * @param limits.deadline of the clock, in milliseconds
   * @param limits.needed what the work may take once it has a connection: it is not begun with less
   * @throws UnansweredError, or what the work throws
   */
  async use<Value>({ deadline, needed }: LeaseLimits, work: (redis: Redis) => Promise<Value>): Promise<Value> {
    await this.#lease(deadline - needed);
    try {
      const redis = await this.#connection(deadline);
      // Waiting for a lease, or connecting, may have taken the time that the work needs.
      if (this.#clock.now() > deadline - needed) {
        this.#release(redis);
        throw new UnansweredError('too_many_in_flight');
      }
      return await this.#work(redis, deadline, work);
    } finally {
      this.#endLease();
    }
  }

  /** Closes every connection; uses in progress fail. */
  clear(): void {
    for (const redis of [...this.#idle.splice(0), ...this.#inUse]) redis.disconnect();
    this.#inUse.clear();
  }

  async #lease(deadline: number): Promise<void> {
    if (this.#leases < SIZE) {
      this.#leases += 1;
      return;
    }
    if (this.#waiting.size >= MOST_WAITING) throw new UnansweredError('too_many_in_flight');
    let granted = () => {};
    const lease = new Promise<void>((resolve) => {
      granted = resolve;
    });
    this.#waiting.add(granted);
    try {
      await within(deadline - this.#clock.now(), lease);
    } catch {
      throw new UnansweredError('too_many_in_flight');
    } finally {
      this.#waiting.delete(granted);
    }
  }

  /** Hands the lease to the request that has waited longest. */
  #endLease(): void {
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
      this.#release(redis);
      return value;
    } catch (error) {
      this.#drop(redis);
      throw error;
    }
  }

  async #connection(deadline: number): Promise<Redis> {
    for (let redis = this.#idle.pop(); redis !== undefined; redis = this.#idle.pop()) {
      this.#inUse.add(redis);
      if (redis.status === 'ready') return redis;
      this.#drop(redis);
    }
    const redis = this.#connect();
    this.#inUse.add(redis);
    redis.on('error', () => {});
    try {
      await within(deadline - this.#clock.now(), redis.connect());
      return redis;
    } catch (error) {
      this.#drop(redis);
      throw error instanceof UnansweredError ? error : new UnansweredError('disconnected', error);
    }
  }

  /** Keeps a connection for the next use, unless it was closed meanwhile. */
  #release(redis: Redis): void {
    if (this.#inUse.delete(redis)) this.#idle.push(redis);
  }

  #drop(redis: Redis): void {
    this.#inUse.delete(redis);
    redis.disconnect();
  }
}
