// The duration of requests by route, method and status, the metric that every HTTP server records.

import type { Registry } from 'prom-client';
import { type DurationSeries, Durations } from './durations.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export class RequestDurations {
  readonly #durations: Durations;
  readonly #series = new Map<string, DurationSeries>();

  constructor(registry: Registry) {
    this.#durations = new Durations({
      name: 'grantry_http_request_duration_seconds',
      registry,
      help: 'Time from the end of the headers to the end of the answer.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
  }

  observe(route: string, method: string, status: number, seconds: number): void {
    const label = METHODS.has(method) ? method : 'OTHER';
    const key = `${route} ${label} ${status}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = this.#durations.series({ route, method: label, status: String(status) });
      this.#series.set(key, series);
    }
    series.observe(seconds);
  }
}
