// Settles what ended sessions owe: revokes the grants that end with a session, and has the client notified that has an
// address for it. The replica that ended the session begins at once; a sweep of all shards finds what is still owed, also by
// replicas that have ended.

import type { Logger } from 'pino';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { describeFault } from '../../oauth/ports/fault.ts';
import type { OwedLogout } from '../../oauth/ports/logout-store.ts';
import type { Clock, Stores } from '../../oauth/ports/ports.ts';
import type { Client } from '../../oauth/registry/client.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import type { LogoutDelivery } from './logout-delivery.ts';
import { NamespaceTurns } from './namespace-turns.ts';

/** The pause between two sweeps, in milliseconds; a random part of up to half of it is added. */
const SWEEP_PAUSE = 10_000;

/** How long a try may take, in milliseconds: longer than a call does. */
const LEASE = 15_000;
/** The pause after the first failed try; it doubles with each. */
const FIRST_PAUSE = 5000;
const LONGEST_PAUSE = 600_000;
/** A client is tried for so long after the end of the session. */
const TRIED_FOR = 3_600_000;

/** The grants of so many are revoked at once; more wait. */
const MOST_AT_ONCE = 16;
/** More than wait are left to the sweep: those of ten sessions with as many logins as are noted. */
const MOST_WAITING = 1000;

export interface SessionLogoutsParts {
  readonly stores: Pick<Stores, 'logouts' | 'grants'>;
  readonly delivery: Pick<LogoutDelivery, 'recipient' | 'deliver' | 'giveUp'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The logouts that this replica settles. */
export class SessionLogouts {
  readonly #stores: SessionLogoutsParts['stores'];
  readonly #delivery: SessionLogoutsParts['delivery'];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #turns = new NamespaceTurns();
  /** The names of notices that run or wait. */
  readonly #notices = new Set<string>();
  /** Until when clients are left alone that could not be notified, by uid. */
  readonly #pauses = new Map<string, number>();
  /** By `sid` and client. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** In the order they came. */
  readonly #waiting: OwedLogout[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor({ stores, delivery, clock, log }: SessionLogoutsParts) {
    this.#stores = stores;
    this.#delivery = delivery;
    this.#clock = clock;
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
    this.#waiting.length = 0;
    await Promise.all(this.#underWay.values());
    await this.#turns.stop();
  }

  /** Begins to settle what a session owes that ended just now. */
  enqueue(owed: readonly OwedLogout[]): void {
    if (this.#isStopped) return;
    this.#waiting.push(...owed.slice(0, MOST_WAITING - this.#waiting.length));
    this.#beginWaiting();
  }

  /** Begins to settle what is owed in every shard, and resolves before clients are notified; an unavailable shard is left to the next sweep. */
  async sweep(): Promise<void> {
    for (const [clientUid, until] of this.#pauses) if (until <= this.#clock.now()) this.#pauses.delete(clientUid);
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

  #beginWaiting(): void {
    while (this.#underWay.size < MOST_AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#begin(next);
    }
  }

  #begin(owed: OwedLogout): void {
    const name = nameOf(owed);
    if (this.#underWay.has(name) || this.#notices.has(name)) return;
    const done = this.#settle(owed)
      .catch((error) => this.#noteFault(error))
      .finally(() => {
        this.#underWay.delete(name);
        this.#beginWaiting();
      });
    this.#underWay.set(name, done);
  }

  /** Grants end first, and wait for no client. */
  async #settle(owed: OwedLogout): Promise<void> {
    const { grants, logouts } = this.#stores;
    await Promise.all(owed.grantIds.map((grantId) => grants.revoke(grantId)));
    const client = this.#delivery.recipient(owed);
    if (client === undefined) await logouts.settle(owed);
    else this.#addNotice(client, owed);
  }

  #addNotice(client: Client, owed: OwedLogout): void {
    if (this.#isStopped || (this.#isPaused(client) && !this.#isOld(owed))) return;
    const name = nameOf(owed);
    const isTaken = this.#turns.add(client.namespace, async () => {
      await this.#notify(owed).catch((error) => this.#noteFault(error));
      this.#notices.delete(name);
    });
    if (isTaken) this.#notices.add(name);
  }

  async #notify(owed: OwedLogout): Promise<void> {
    const { logouts } = this.#stores;
    const client = this.#delivery.recipient(owed);
    // An earlier notice to the client may have failed since.
    const isPaused = client !== undefined && this.#isPaused(client);
    if (isPaused && !this.#isOld(owed)) return;
    const triesBefore = await logouts.take(owed, LEASE);
    if (triesBefore === undefined) return;
    if (isPaused) {
      // What a client without answers is owed does not grow beyond what comes in that time.
      this.#delivery.giveUp(client, owed);
    } else if (client !== undefined && (await this.#delivery.deliver(client, owed)) === 'failed') {
      const pause = Math.min(FIRST_PAUSE * 2 ** triesBefore, LONGEST_PAUSE);
      this.#pauses.set(client.uid, this.#clock.now() + pause);
      if (!this.#isOld(owed, pause)) return await logouts.postpone(owed, pause);
      this.#delivery.giveUp(client, owed);
    }
    await logouts.settle(owed);
  }

  /** Whether it is tried no more, after so many milliseconds. */
  #isOld({ since }: OwedLogout, after = 0): boolean {
    return this.#clock.now() + after >= since + TRIED_FOR;
  }

  #isPaused({ uid }: Client): boolean {
    return (this.#pauses.get(uid) ?? 0) > this.#clock.now();
  }

  #noteFault(error: unknown): void {
    // The store is measured and logged where requests need it.
    if (error instanceof StoreUnavailableError) return;
    this.#log.error({ cause: describeFault(error) }, 'what an ended session owes cannot be settled: it is tried again');
  }
}

function nameOf({ sid, clientUid }: OwedLogout): string {
  return `${sid} ${clientUid}`;
}
