// Keys waiting to be looked at: each at most once, never two looks at one key at a time, and what failed comes again. Whose
// turn it is among many, fair-queue.ts knows.

import type { Logger } from 'pino';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import { FairQueue } from './fair-queue.ts';
import { StaleReadError } from './stale-read.ts';

const FIRST_RETRY_MILLISECONDS = 5;
/** What somebody else changes at the same time is no fault: it is looked at again when the watch may have told of it. */
const FIRST_RETRY_AFTER_CONFLICT_MILLISECONDS = 50;
const LONGEST_RETRY_MILLISECONDS = 5 * 60_000;
/** Timers cannot wait longer than 24.8 days. An earlier look does no harm. */
const LONGEST_WAIT_MILLISECONDS = 24 * 60 * 60_000;
const WORKERS = 4;

/** `grantry_reconcile_total` and `…_duration_seconds`. */
export interface ReconcileMetrics {
  reconciled(kind: string, result: 'done' | 'failed', seconds: number): void;
}

export interface WorkQueueOptions {
  /** What the keys are keys of, for log and metrics. */
  readonly kind: string;
  /**
   * Brings the world in line with what is known of the key now.
   * @returns milliseconds until it is looked at again even if nothing happens
   */
  readonly reconcile: (key: string) => Promise<number | undefined>;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
  /** How many keys are looked at at once; default 4. */
  readonly workers?: number;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #queued = new FairQueue();
  readonly #active = new Map<string, Promise<void>>();
  readonly #delayed = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>();
  readonly #failures = new Map<string, number>();
  #running = false;
  #pumping = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** How many keys wait or are looked at now; not those whose time has not come. */
  get size(): number {
    return this.#queued.size + this.#active.size;
  }

  /** Has the key looked at as soon as possible; once more if it is being looked at. */
  add(key: string): void {
    this.#queued.add(key);
    this.#pumpSoon();
  }

  /** Has the key looked at in so many milliseconds, or earlier if that was asked for already. */
  addAfter(key: string, milliseconds: number): void {
    const wait = Math.min(Math.max(0, milliseconds), LONGEST_WAIT_MILLISECONDS);
    const at = performance.now() + wait;
    const scheduled = this.#delayed.get(key);
    if (scheduled !== undefined && scheduled.at <= at) return;
    clearTimeout(scheduled?.timer);
    const timer = setTimeout(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, wait);
    this.#delayed.set(key, { at, timer });
  }

  /** Begins with what waits, and goes on until `stop`. */
  start(): void {
    this.#running = true;
    this.#pumpSoon();
  }

  /** Forgets what waits. Fulfilled when nothing is being looked at any more. */
  async stop(): Promise<void> {
    this.#running = false;
    for (const { timer } of this.#delayed.values()) clearTimeout(timer);
    this.#delayed.clear();
    this.#queued.clear();
    this.#failures.clear();
    await Promise.all(this.#active.values());
  }

  /** Not at once: what is added together is one look, and a look may add its own key. */
  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    this.#pumping = false;
    if (!this.#running) return;
    while (this.#active.size < (this.#options.workers ?? WORKERS)) {
      const key = this.#queued.take((candidate) => !this.#active.has(candidate));
      if (key === undefined) return;
      // Not before it stands in the list: the look may add its own key.
      this.#active.set(
        key,
        Promise.resolve().then(() => this.#process(key)),
      );
    }
  }

  async #process(key: string): Promise<void> {
    const { kind, reconcile, log, metrics } = this.#options;
    const begun = performance.now();
    const seconds = () => (performance.now() - begun) / 1000;
    try {
      const requeueAfter = await reconcile(key);
      metrics.reconciled(kind, 'done', seconds());
      this.#failures.delete(key);
      if (requeueAfter !== undefined && this.#running) this.addAfter(key, requeueAfter);
    } catch (error) {
      const isExpected = isConflict(error);
      metrics.reconciled(kind, isExpected ? 'done' : 'failed', seconds());
      if (!isExpected) {
        const fault = error instanceof KubernetesError ? { fault: error.message } : { err: error };
        log.error({ kind, key, ...fault }, `${kind} ${key} could not be reconciled`);
      }
      const first = isExpected ? FIRST_RETRY_AFTER_CONFLICT_MILLISECONDS : FIRST_RETRY_MILLISECONDS;
      if (this.#running) this.addAfter(key, this.#retryAfter(key, first));
    }
    this.#active.delete(key);
    this.#pumpSoon();
  }

  #retryAfter(key: string, first: number): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return exponentialBackoff({ first, longest: LONGEST_RETRY_MILLISECONDS }, failures);
  }
}

/** `AlreadyExists` is one too. */
function isConflict(error: unknown): boolean {
  if (error instanceof StaleReadError) return true;
  return error instanceof KubernetesError && (error.status === 409 || error.reason === 'Conflict');
}
