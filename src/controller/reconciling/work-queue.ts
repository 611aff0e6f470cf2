// The work queue of a reconciler: a key is queued at most once, never reconciled twice at the same time, and requeued
// with exponential backoff when its reconcile fails. The order among many keys is that of fair-queue.ts, and one namespace
// may have a limited part of the workers.

import type { Logger } from 'pino';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import { FairQueue, namespaceOf } from './fair-queue.ts';
import { isConflict } from './stale-read.ts';

const FIRST_RETRY_MILLISECONDS = 5;
/** A conflict is no failure: the key is requeued when the watch may have delivered the other write. */
const FIRST_RETRY_AFTER_CONFLICT_MILLISECONDS = 50;
const LONGEST_RETRY_MILLISECONDS = 5 * 60_000;
/** Timers cannot wait longer than 24.8 days. An earlier reconcile does no harm. */
const LONGEST_WAIT_MILLISECONDS = 24 * 60 * 60_000;
const WORKERS = 4;

/** `grantry_reconcile_total` and `…_duration_seconds`. */
export interface ReconcileMetrics {
  reconciled(kind: string, result: 'done' | 'failed', seconds: number): void;
}

export interface WorkQueueOptions {
  /** The kind of object that the keys name, for log and metrics. */
  readonly kind: string;
  /**
   * Reconciles the object of a key with its present desired state.
   * @returns milliseconds until the key is requeued without a change; undefined: never
   */
  readonly reconcile: (key: string) => Promise<number | undefined>;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
  /** How many keys are reconciled concurrently; default 4. */
  readonly workers?: number;
  /** How many of them may reconcile keys of one namespace; default: all. */
  readonly workersPerNamespace?: number;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #queued = new FairQueue();
  readonly #active = new Map<string, Promise<void>>();
  /** How many keys of a namespace are being reconciled. */
  readonly #activeByNamespace = new Map<string, number>();
  readonly #delayed = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>();
  readonly #failures = new Map<string, number>();
  #running = false;
  #pumping = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** How many keys are queued or being reconciled; delayed keys do not count. */
  get size(): number {
    return this.#queued.size + this.#active.size;
  }

  /** Queues the key; one that is being reconciled is reconciled once more afterwards. */
  add(key: string): void {
    this.#queued.add(key);
    this.#pumpSoon();
  }

  /** Queues the key after so many milliseconds, or earlier if it is already scheduled so. */
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

  /** Processes queued keys until `stop`. */
  start(): void {
    this.#running = true;
    this.#pumpSoon();
  }

  /** Drops queued and delayed keys. Fulfilled when no reconcile is running any more. */
  async stop(): Promise<void> {
    this.#running = false;
    for (const { timer } of this.#delayed.values()) clearTimeout(timer);
    this.#delayed.clear();
    this.#queued.clear();
    this.#failures.clear();
    await Promise.all(this.#active.values());
  }

  /** Deferred: a key that is added repeatedly is reconciled once, and a reconcile may add its own key. */
  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    this.#pumping = false;
    if (!this.#running) return;
    const { workers = WORKERS, workersPerNamespace = workers } = this.#options;
    while (this.#active.size < workers) {
      const key = this.#queued.take(
        (namespace) => (this.#activeByNamespace.get(namespace) ?? 0) < workersPerNamespace,
        (candidate) => !this.#active.has(candidate),
      );
      if (key === undefined) return;
      this.#count(key, 1);
      // Starts after the key is in the map: the reconcile may add its own key.
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
    this.#count(key, -1);
    this.#pumpSoon();
  }

  #count(key: string, change: 1 | -1): void {
    const namespace = namespaceOf(key);
    const active = (this.#activeByNamespace.get(namespace) ?? 0) + change;
    if (active === 0) this.#activeByNamespace.delete(namespace);
    else this.#activeByNamespace.set(namespace, active);
  }

  #retryAfter(key: string, first: number): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return exponentialBackoff({ first, longest: LONGEST_RETRY_MILLISECONDS }, failures);
  }
}
