// Handles the pending logouts of ended sessions: revokes the grants that end with a session, and has the client notified
// that has an address for it. The replica that ended the session begins at once; a sweep of all shards finds the rest, also of
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

/** The pending logouts that this replica handles. */
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
      handle: (logout) => this.#handle(logout),
      log,
      faultMessage: 'the pending logouts of an ended session cannot be handled: they are retried',
    });
  }

  /** Sweeps until `stop`. */
  start(): void {
    this.#sweeper.start();
  }

  /** Resolves after what is in progress; other logouts stay pending. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    await this.#slots.stop();
  }

  /** Begins with the logouts of a session that ended just now. */
  enqueue(ended: readonly PendingLogout[]): void {
    this.#sweeper.enqueue(ended);
  }

  /** Begins with the pending logouts of every shard, and resolves before clients are notified. */
  async sweep(): Promise<void> {
    await this.#sweeper.sweep();
  }

  /** Grants end first, and wait for no client. */
  async #handle(logout: PendingLogout): Promise<void> {
    if (this.#notices.has(nameOf(logout))) return;
    const { grants, logouts } = this.#stores;
    await Promise.all(logout.grantIds.map((grantId) => grants.revoke(grantId)));
    const client = this.#delivery.recipient(logout);
    if (client === undefined) await logouts.acknowledge(logout);
    else this.#addNotice(client, logout);
  }

  #addNotice(client: Client, logout: PendingLogout): void {
    if (this.#sweeper.isStopped || (this.#isPaused(client) && !this.#isOld(logout))) return;
    const name = nameOf(logout);
    const isTaken = this.#slots.add(client.namespace, async () => {
      await this.#notify(logout).catch((error) => this.#sweeper.noteFault(error));
      this.#notices.delete(name);
    });
    if (isTaken) this.#notices.add(name);
  }

  async #notify(logout: PendingLogout): Promise<void> {
    const { logouts } = this.#stores;
    const client = this.#delivery.recipient(logout);
    // An earlier notice to the client may have failed since.
    const isPaused = client !== undefined && this.#isPaused(client);
    if (isPaused && !this.#isOld(logout)) return;
    const triesBefore = await logouts.take(logout, LEASE);
    if (triesBefore === undefined) return;
    if (isPaused) {
      // The pending logouts of a client without answers do not grow beyond what comes in that time.
      this.#delivery.giveUp(client, logout);
    } else if (client !== undefined && (await this.#delivery.deliver(client, logout)) === 'failed') {
      const pause = exponentialBackoff(PAUSES, triesBefore);
      this.#pause(client, pause);
      if (!this.#isOld(logout, pause)) return await logouts.postpone(logout, pause);
      this.#delivery.giveUp(client, logout);
    }
    await logouts.acknowledge(logout);
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
