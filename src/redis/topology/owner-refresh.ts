// Schedules the refresh of the owners of the keys: the slot map of a Cluster, or the primary that the Sentinels name.
// Replicas of grantry lose a server at the same moment, and must not query the remaining servers in step: until the
// owners are known again, the delay is random, as for lost connections.

import { reconnectDelay } from '../link/reconnect-delay.ts';

/** The interval while all is well, give or take half of it; milliseconds. */
const REFRESH_INTERVAL = 2000;

/** The interval of the local health check, which sends nothing; milliseconds. */
const HEALTH_CHECK_INTERVAL = 200;

export interface OwnerRefreshParts {
  /** Queries the servers. Never throws. */
  readonly ask: () => Promise<void>;
  /** Whether all known servers are up, where that is known without a query. */
  readonly isHealthy?: () => boolean;
  /** The least time between two queries, in milliseconds; 0 unless given. */
  readonly least?: number;
}

export class OwnerRefresh {
  readonly #ask: () => Promise<void>;
  readonly #isHealthy: () => boolean;
  readonly #least: number;
  readonly #healthCheck: NodeJS.Timeout | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #next: NodeJS.Timeout | undefined;
  /** Whether the next query is the regular one. */
  #isIdle = false;
  #isSuspectedStale = false;
  /** Queries since the last regular one. */
  #tries = 0;
  #isStopped = false;

  /** Starts the first query. */
  constructor({ ask, isHealthy, least = 0 }: OwnerRefreshParts) {
    this.#ask = ask;
    this.#isHealthy = isHealthy ?? (() => true);
    this.#least = least;
    if (isHealthy !== undefined) {
      this.#healthCheck = setInterval(() => {
        if (!isHealthy()) this.suspectStale();
      }, HEALTH_CHECK_INTERVAL);
    }
    this.#run();
  }

  /** The owners may be stale: queries soon, or soon again where a query is under way. */
  suspectStale(): void {
    this.#isSuspectedStale = true;
    if (this.#isIdle) this.#runSoon();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#healthCheck);
    clearTimeout(this.#next);
  }

  async #run(): Promise<void> {
    this.#isSuspectedStale = false;
    this.#askedAt = performance.now();
    await this.#ask();
    if (this.#isSuspectedStale || !this.#isHealthy()) this.#runSoon();
    else this.#runLater();
  }

  #runSoon(): void {
    this.#isIdle = false;
    this.#tries += 1;
    this.#schedule(Math.max(reconnectDelay(this.#tries), this.#askedAt + this.#least - performance.now()));
  }

  #runLater(): void {
    this.#isIdle = true;
    this.#schedule(REFRESH_INTERVAL * (0.5 + Math.random()), () => {
      this.#isIdle = false;
      this.#tries = 0;
    });
  }

  #schedule(delay: number, first = () => {}): void {
    clearTimeout(this.#next);
    if (this.#isStopped) return;
    this.#next = setTimeout(() => {
      first();
      this.#run();
    }, delay);
  }
}
