// Ends what a person holds when the entry in the list of users changes: a new password hash, disabled, absent for an
// hour. The list is compared with the credentials that the store has noted, at start and at each change, so no restart
// and no second replica misses a change or repeats one.

import { USER_ABSENCE, type UserStore } from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { LocalUsers } from './local-users.ts';

/** How often what is left to do is tried, and whether a user is absent for long enough is read; milliseconds. */
const RETRY = 5000;
const ABSENCE_POLL = 60_000;
/** Users settled at a time: they must not use up the capacity of the store for all requests. */
const BATCH = 50;

/** What a person lost, and why. */
export interface UserChange {
  readonly subject: string;
  readonly reason: 'credential_changed' | 'user_absent';
}

export interface UserChangesOptions {
  readonly users: LocalUsers;
  readonly store: UserStore;
  readonly clock: Clock;
  /** Called after a change has ended what the person held. */
  readonly onEnded: (change: UserChange) => void;
  /** Called when a run stops at a fault, with the first one; the rest is tried again. */
  readonly onFault: (error: unknown) => void;
}

/** Settles the list of users with the store until the two agree. */
export class UserChanges {
  readonly #options: UserChangesOptions;
  /** By subject, what this process has settled; undefined until the noted users are known. */
  #settled: Map<string, string> | undefined;
  /** Absent users by the time of the next attempt to end them, epoch milliseconds. */
  readonly #absent = new Map<string, number>();
  #running: Promise<void> | undefined;
  #isPending = true;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UserChangesOptions) {
    this.#options = options;
  }

  /** Compares now, at each change of the users, and until `stop` where something is left to do. */
  start(): void {
    this.#options.users.onChange(() => {
      this.#isPending = true;
      void this.run();
    });
    this.#timer = setInterval(() => void this.run(), RETRY).unref();
    void this.run();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Does all that is due; a run that is under way is awaited, and another follows it. Never throws. */
  async run(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.#running = this.#settle().catch(this.#options.onFault);
    await this.#running.finally(() => {
      this.#running = undefined;
    });
  }

  async #settle(): Promise<void> {
    if (this.#isPending) {
      this.#isPending = false;
      try {
        await this.#compare();
      } catch (error) {
        this.#isPending = true;
        throw error;
      }
    }
    await this.#endAbsent();
  }

  async #compare(): Promise<void> {
    const { users, store } = this.#options;
    const { credentials } = users;
    this.#settled ??= await this.#noted();
    const settled = this.#settled;
    const changed = [...credentials].filter(([subject, credential]) => settled.get(subject) !== credential);
    await inBatches(changed, async ([subject, credential]) => {
      const outcome = await store.settle(subject, credential);
      settled.set(subject, credential);
      this.#absent.delete(subject);
      if (outcome === 'ended') this.#options.onEnded({ subject, reason: 'credential_changed' });
    });
    const gone = [...settled.keys()].filter((subject) => !credentials.has(subject));
    await inBatches(gone, async (subject) => {
      await store.markAbsent(subject);
      settled.delete(subject);
      this.#absent.set(subject, 0);
    });
  }

  /** The noted users as settled ones; a user noted as absent is still to be settled. */
  async #noted(): Promise<Map<string, string>> {
    const { users, store } = this.#options;
    const noted = await store.list();
    const { credentials } = users;
    return new Map(
      [...noted].map(([subject, { credential, isAbsent }]) => [
        subject,
        isAbsent && credentials.has(subject) ? '' : credential,
      ]),
    );
  }

  async #endAbsent(): Promise<void> {
    const { store, clock, onEnded } = this.#options;
    const now = clock.now();
    const due = [...this.#absent].filter(([, time]) => time <= now);
    await inBatches(due, async ([subject]) => {
      const outcome = await store.endAbsent(subject);
      if (outcome === 'ended') onEnded({ subject, reason: 'user_absent' });
      if (outcome === 'absent') this.#absent.set(subject, now + Math.min(ABSENCE_POLL, USER_ABSENCE));
      else this.#absent.delete(subject);
    });
  }
}

/** @throws the first error, after the items of its batch were tried */
async function inBatches<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += BATCH) {
    const results = await Promise.allSettled(items.slice(from, from + BATCH).map(work));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
