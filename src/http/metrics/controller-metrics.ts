// The metrics of a controller, prefix `grantry_`: reconciles, leadership, watches. Labels come from closed sets; the
// name of an object is never one.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { RequestDurations } from './request-durations.ts';
import { type Followed, registerStaleness, WatchCounters } from './watch-metrics.ts';

export interface ControllerMetricSources {
  readonly isLeading: () => boolean;
  /** Objects that are queued or being reconciled. */
  readonly queued: () => number;
  readonly followed: Followed;
}

export class ControllerMetrics {
  readonly #registry = new Registry();
  readonly #requests = new RequestDurations(this.#registry);
  readonly #reconciled = new Counter({
    name: 'grantry_reconcile_total',
    help: 'Reconciles of an object.',
    registers: [this.#registry],
    labelNames: ['kind', 'result'],
  });
  readonly #durations = new Histogram({
    name: 'grantry_reconcile_duration_seconds',
    help: 'Time of one reconcile of an object.',
    labelNames: ['kind'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [this.#registry],
  });
  readonly watches = new WatchCounters();

  /** @param sources read at each scrape */
  constructor({ isLeading, queued, followed }: ControllerMetricSources) {
    this.watches.registerIn(this.#registry);
    registerStaleness(this.#registry, followed);
    const gauge = (name: string, help: string, read: () => number) => {
      new Gauge({
        name: `grantry_${name}`,
        help,
        registers: [this.#registry],
        collect() {
          this.set(read());
        },
      });
    };
    gauge('lease_held', 'Whether this process leads.', () => Number(isLeading()));
    gauge('work_queue_depth', 'Objects that are queued or being reconciled.', queued);
    collectDefaultMetrics({ register: this.#registry, prefix: 'grantry_' });
  }

  reconciled(kind: string, result: 'done' | 'failed', seconds: number): void {
    this.#reconciled.inc({ kind, result });
    this.#durations.observe({ kind }, seconds);
  }

  requestFinished(route: string, method: string, status: number, seconds: number): void {
    this.#requests.observe(route, method, status, seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything in the text form that Prometheus reads. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
