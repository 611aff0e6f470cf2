// Has the entries of outboxes handled: at once those that this replica knows of, and by a sweep of all shards those that
// are left, also by replicas that have ended. What handles an entry acknowledges it.

import type { Logger } from 'pino';
import { StoreUnavailableError } from '../oauth/ports/error.ts';
import { describeFault } from '../oauth/ports/fault.ts';
import { SHARDS } from '../oauth/values/shard.ts';

/** The pause between two sweeps, in milliseconds. */
const SWEEP_PAUSE = 10_000;

/** So many entries are handled at once; more wait. */
const MOST_AT_ONCE = 16;
/** More than wait are left to the sweep. */
const MOST_WAITING = 1000;

export interface OutboxSweeperParts<Entry> {
  /** What of a shard can be handled now. */
  readonly list: (shard: string) => Promise<readonly Entry[]>;
  /** An entry that is under way is not begun again under the same name. */
  readonly nameOf: (entry: Entry) => string;
  /** What it throws leaves the entry to a later sweep. */
  readonly handle: (entry: Entry) => Promise<void>;
  /** The pause between two sweeps, in milliseconds, 10 s by default; a random part of up to half of it is added. */
  readonly pause?: number | undefined;
  readonly log: Logger;
  /** The log message where the handling fails for another reason than an unavailable store. */
  readonly faultMessage: string;
}

export class OutboxSweeper<Entry> {
  readonly #parts: OutboxSweeperParts<Entry>;
  /** By name. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** In the order they came. */
  readonly #waiting: Entry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(parts: OutboxSweeperParts<Entry>) {
    this.#parts = parts;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Whether the entry of this name is being handled. */
  isUnderWay(name: string): boolean {
    return this.#underWay.has(name);
  }

  /** Sweeps until `stop`. */
  start(): void {
    this.#timer = setTimeout(
      async () => {
        await this.sweep();
        if (!this.#isStopped) this.start();
      },
      (this.#parts.pause ?? SWEEP_PAUSE) * (1 + Math.random() / 2),
    );
  }

  /** Resolves after what is under way; nothing begins any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
    await Promise.all(this.#underWay.values());
  }

  /** Begins to handle entries, or has them wait. */
  enqueue(entries: readonly Entry[]): void {
    if (this.#isStopped) return;
    this.#waiting.push(...entries.slice(0, MOST_WAITING - this.#waiting.length));
    this.#beginWaiting();
  }

  /** Handles the entries of every shard, and resolves after them; a shard that is unavailable is left to the next sweep. */
  async sweep(): Promise<void> {
    for (const shard of SHARDS) {
      if (this.#isStopped) return;
      await this.#sweepShard(shard).catch((error) => this.noteFault(error));
    }
    await Promise.all(this.#underWay.values());
  }

  /** Logs the error, unless the store is unavailable: that is measured and logged where requests need it. */
  noteFault(error: unknown): void {
    if (error instanceof StoreUnavailableError) return;
    const { log, faultMessage } = this.#parts;
    log.error({ cause: describeFault(error) }, faultMessage);
  }

  async #sweepShard(shard: string): Promise<void> {
    for (const entry of await this.#parts.list(shard)) {
      while (this.#underWay.size >= MOST_AT_ONCE) await Promise.race(this.#underWay.values());
      if (this.#isStopped) return;
      this.#begin(entry);
    }
  }

  #beginWaiting(): void {
    while (this.#underWay.size < MOST_AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#begin(next);
    }
  }

  #begin(entry: Entry): void {
    const { nameOf, handle } = this.#parts;
    const name = nameOf(entry);
    if (this.#underWay.has(name)) return;
    const done = handle(entry)
      .catch((error) => this.noteFault(error))
      .finally(() => {
        this.#underWay.delete(name);
        this.#beginWaiting();
      });
    this.#underWay.set(name, done);
  }
}
