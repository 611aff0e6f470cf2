// Ends what a person holds when the entry in the list of users changes: a new password hash, disabled, absent for an
// hour. The list is compared with the credentials that the store has recorded, at start, at each change and each minute, so
// no restart and no second replica misses a change or repeats one.

import type { UserStore } from '../../oauth/ports/login-stores.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LocalUsers } from './local-users.ts';

/** The intervals of retries and of comparisons of the whole list; milliseconds. */
const RETRY = 5000;
const COMPARISON = 60_000;
/** Users recorded at a time: they must not use up the capacity of the store for all requests. */
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
  /**
   * How long the list of this process may be older than that of another, milliseconds. A recorded credential that
   * this process has never had is taken for newer for so long, and as long as the list of the user cannot be read or has a fault.
   */
  readonly lag: number;
  /** Epoch milliseconds up to which this process has missed no change of the lists. Default: now. */
  readonly followedUntil?: (() => number) | undefined;
  /** Called after a change has ended what the person held. */
  readonly onEnded: (change: UserChange) => void;
  /** Called with the first fault of a comparison; the rest is retried. */
  readonly onFault: (error: unknown) => void;
}

/** Records the list of users in the store until the two agree. */
export class UserChanges {
  readonly #options: UserChangesOptions;
  /** By subject, the credentials that this process has had: a recorded one among them is older than the present one. */
  readonly #former = new Map<string, Set<string>>();
  /** By subject, since when a credential differs from a recorded one that may be newer; epoch milliseconds. */
  readonly #differing = new Map<string, { readonly credential: string; readonly since: number }>();
  #running: Promise<void> | undefined;
  #isPending = false;
  #comparedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UserChangesOptions) {
    this.#options = options;
  }

  /** Compares now, at each change of the users, and from time to time until `stop`. */
  start(): void {
    this.#options.users.onChange(() => void this.run());
    this.#timer = setInterval(() => this.#tick(), RETRY).unref();
    void this.run();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Compares all; a comparison that is under way is awaited, and another follows it. Never throws. */
  async run(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.#running = this.#compare();
    await this.#running;
    this.#running = undefined;
  }

  #tick(): void {
    const isDue = this.#isPending || this.#options.clock.now() - this.#comparedAt >= COMPARISON;
    if (isDue && this.#running === undefined) void this.run();
  }

  async #compare(): Promise<void> {
    const { users, store, clock, onFault } = this.#options;
    this.#comparedAt = clock.now();
    this.#isPending = true;
    try {
      const recorded = await store.list();
      const { credentials } = users;
      const present = [...credentials].flatMap(([subject, credential]) => {
        const { credential: former, isAbsent = false } = recorded.get(subject) ?? {};
        const isRecorded = former === credential && !isAbsent;
        const isDue = this.#isNewer(subject, credential, former) && !isRecorded;
        return isDue ? [() => this.#record(subject, credential, former)] : [];
      });
      const absent = users.isWhole ? [...recorded.keys()].filter((subject) => !credentials.has(subject)) : [];
      await inBatches([...present, ...absent.map((subject) => () => this.#recordAbsence(subject))]);
      this.#isPending = this.#differing.size > 0;
    } catch (error) {
      onFault(error);
    }
  }

  /** Whether the credential of this process is newer than the recorded one, as far as is known. */
  #isNewer(subject: string, credential: string, recorded: string | undefined): boolean {
    const former = this.#former.get(subject) ?? new Set();
    this.#former.set(subject, former.add(credential));
    if (recorded === undefined || former.has(recorded)) {
      this.#differing.delete(subject);
      return true;
    }
    const { clock, lag, users, followedUntil } = this.#options;
    const now = clock.now();
    const known = this.#differing.get(subject);
    const since = known?.credential === credential ? known.since : now;
    this.#differing.set(subject, { credential, since });
    // Of a process that follows no changes the list may be any older.
    return users.isCurrent(subject) && now - (followedUntil?.() ?? now) <= lag && now - since >= lag;
  }

  async #record(subject: string, credential: string, recorded: string | undefined): Promise<void> {
    const outcome = await this.#options.store.record(subject, credential, recorded);
    if (outcome === 'outdated') return;
    this.#differing.delete(subject);
    if (outcome === 'ended') this.#options.onEnded({ subject, reason: 'credential_changed' });
  }

  async #recordAbsence(subject: string): Promise<void> {
    const outcome = await this.#options.store.recordAbsence(subject);
    if (outcome === 'ended') this.#options.onEnded({ subject, reason: 'user_absent' });
  }
}

/** @throws the first error, after all were tried */
async function inBatches(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const results: PromiseSettledResult<void>[] = [];
  for (let from = 0; from < tasks.length; from += BATCH) {
    results.push(...(await Promise.allSettled(tasks.slice(from, from + BATCH).map((task) => task()))));
  }
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
