// Settles what ended sessions owe: revokes the grants that end with a session. The replica that ended it does so at once; a
// sweep of all shards finds what is still owed, also by replicas that have ended.

import type { Logger } from 'pino';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { describeFault } from '../../oauth/ports/fault.ts';
import type { OwedLogout } from '../../oauth/ports/logout-store.ts';
import type { Stores } from '../../oauth/ports/ports.ts';
import { SHARDS } from '../../oauth/values/shard.ts';

/** The pause between two sweeps, in milliseconds; a random part of up to half of it is added. */
const SWEEP_PAUSE = 10_000;

/** So many are settled at once; more are left to the sweep. */
const MOST_AT_ONCE = 16;

export interface SessionLogoutsParts {
  readonly stores: Pick<Stores, 'logouts' | 'grants'>;
  readonly log: Logger;
}

/** The logouts that this replica settles. */
export class SessionLogouts {
  readonly #stores: SessionLogoutsParts['stores'];
  readonly #log: Logger;
  /** By `sid` and client. */
  readonly #underWay = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor({ stores, log }: SessionLogoutsParts) {
    this.#stores = stores;
    this.#log = log;
  }

  /** Sweeps until `stop`. */
  start(): void {
    this.#sweepLater();
  }

  /** Resolves after what is in progress; what is still owed stays so. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await Promise.all(this.#underWay.values());
  }

  /** Begins to settle what a session owes that ended just now. */
  enqueue(owed: readonly OwedLogout[]): void {
    for (const each of owed) if (!this.#isStopped && this.#underWay.size < MOST_AT_ONCE) this.#begin(each);
  }

  /** Settles what is owed in every shard; an unavailable one is left to the next sweep. */
  async sweep(): Promise<void> {
    for (const shard of SHARDS) {
      if (this.#isStopped) return;
      await this.#sweepShard(shard).catch((error) => this.#noteFault(error));
    }
    await Promise.all(this.#underWay.values());
  }

  async #sweepShard(shard: string): Promise<void> {
    for (const owed of await this.#stores.logouts.list(shard)) {
      while (this.#underWay.size >= MOST_AT_ONCE) await Promise.race(this.#underWay.values());
      if (this.#isStopped) return;
      this.#begin(owed);
    }
  }

  #sweepLater(): void {
    this.#timer = setTimeout(
      async () => {
        await this.sweep();
        if (!this.#isStopped) this.#sweepLater();
      },
      SWEEP_PAUSE * (1 + Math.random() / 2),
    );
  }

  #begin(owed: OwedLogout): void {
    const name = `${owed.sid} ${owed.clientUid}`;
    if (this.#underWay.has(name)) return;
    const done = this.#settle(owed)
      .catch((error) => this.#noteFault(error))
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, done);
  }

  async #settle(owed: OwedLogout): Promise<void> {
    const { grants, logouts } = this.#stores;
    await Promise.all(owed.grantIds.map((grantId) => grants.revoke(grantId)));
    await logouts.settle(owed);
  }

  #noteFault(error: unknown): void {
    // The store is measured and logged where requests need it.
    if (error instanceof StoreUnavailableError) return;
    this.#log.error({ cause: describeFault(error) }, 'what an ended session owes cannot be settled: it is tried again');
  }
}
