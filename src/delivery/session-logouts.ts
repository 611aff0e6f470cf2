// Settles what ended sessions owe: revokes the grants that end with a session, and has the client notified that has an
// address for it. The replica that ended the session begins at once; a sweep of all shards finds what is still owed, also by
// replicas that have ended.

import type { Logger } from 'pino';
import type { PendingLogout } from '../oauth/ports/logout-store.ts';
import type { Clock, Stores } from '../oauth/ports/ports.ts';
import type { Client } from '../oauth/registry/client.ts';
import { exponentialBackoff } from '../oauth/values/backoff.ts';
import type { LogoutDelivery } from './logout-delivery.ts';
import { NamespaceSlots } from './namespace-slots.ts';
import { OutboxSweeper } from './outbox-sweeper.ts';

/** How long a try may take, in milliseconds: longer than a call does. */
const LEASE = 15_000;
/** The pauses after failed tries. */
const PAUSES = { first: 5000, longest: 600_000 };
/** A client is tried for so long after the end of the session. */
const TRIED_FOR = 3_600_000;

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
  readonly #sweeper: OutboxSweeper<PendingLogout>;
  readonly #slots = new NamespaceSlots();
  /** The names of notices that run or wait. */
  readonly #notices = new Set<string>();
  /** Until when clients are left alone that could not be notified, by uid. */
  readonly #pauses = new Map<string, number>();

  constructor({ stores, delivery, clock, log }: SessionLogoutsParts) {
    this.#stores = stores;
    this.#delivery = delivery;
    this.#clock = clock;
    this.#sweeper = new OutboxSweeper({
      list: (shard) => stores.logouts.list(shard),
      nameOf,
      handle: (owed) => this.#settle(owed),
      log,
      faultMessage: 'what an ended session owes cannot be settled: it is tried again',
    });
  }

  /** Sweeps until `stop`. */
  start(): void {
    this.#sweeper.start();
  }

  /** Resolves after what is in progress; what is still owed stays so. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    await this.#slots.stop();
  }

  /** Begins to settle what a session owes that ended just now. */
  enqueue(owed: readonly PendingLogout[]): void {
    this.#sweeper.enqueue(owed);
  }

  /** Begins to settle what is owed in every shard, and resolves before clients are notified. */
  async sweep(): Promise<void> {
    await this.#sweeper.sweep();
  }

  /** Grants end first, and wait for no client. */
  async #settle(owed: PendingLogout): Promise<void> {
    if (this.#notices.has(nameOf(owed))) return;
    const { grants, logouts } = this.#stores;
    await Promise.all(owed.grantIds.map((grantId) => grants.revoke(grantId)));
    const client = this.#delivery.recipient(owed);
    if (client === undefined) await logouts.acknowledge(owed);
    else this.#addNotice(client, owed);
  }

  #addNotice(client: Client, owed: PendingLogout): void {
    if (this.#sweeper.isStopped || (this.#isPaused(client) && !this.#isOld(owed))) return;
    const name = nameOf(owed);
    const isTaken = this.#slots.add(client.namespace, async () => {
      await this.#notify(owed).catch((error) => this.#sweeper.noteFault(error));
      this.#notices.delete(name);
    });
    if (isTaken) this.#notices.add(name);
  }

  async #notify(owed: PendingLogout): Promise<void> {
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
      const pause = exponentialBackoff(PAUSES, triesBefore);
      this.#pause(client, pause);
      if (!this.#isOld(owed, pause)) return await logouts.postpone(owed, pause);
      this.#delivery.giveUp(client, owed);
    }
    await logouts.acknowledge(owed);
  }

  /** Whether it is tried no more, after so many milliseconds. */
  #isOld({ since }: PendingLogout, after = 0): boolean {
    return this.#clock.now() + after >= since + TRIED_FOR;
  }

  #pause({ uid }: Client, pause: number): void {
    const now = this.#clock.now();
    for (const [each, until] of this.#pauses) if (until <= now) this.#pauses.delete(each);
    this.#pauses.set(uid, now + pause);
  }

  #isPaused({ uid }: Client): boolean {
    return (this.#pauses.get(uid) ?? 0) > this.#clock.now();
  }
}

function nameOf({ sid, clientUid }: PendingLogout): string {
  return `${sid} ${clientUid}`;
}
