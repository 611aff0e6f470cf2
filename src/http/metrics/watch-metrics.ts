// The metrics of a process that watches a cluster: its watches, the staleness of its registry, and its signing key. A
// process that watches none reports no values.

import { Counter, Gauge, type Registry } from 'prom-client';

/** The state of a process that watches a cluster. Times are epoch milliseconds. */
export interface Followed {
  now(): number;
  /** The latest time up to which no change was missed. */
  lastProgress(): number;
  /** The key that signs; undefined while there is none. */
  signingKey(): { readonly activatedAt: number | undefined; readonly nextRotation: number | undefined } | undefined;
}

/** The counters of watches. A process constructs them before the watches, and exposes them with its other metrics. */
export class WatchCounters {
  readonly #events = counter('events', 'Frames of watches.', ['resource', 'type']);
  readonly #restarts = counter('restarts', 'Watches that were restarted.', ['resource', 'reason']);
  readonly #handlerErrors = counter(
    'handler_errors',
    'Changes that a handler failed to process. They are delivered again.',
    ['resource'],
  );

  watchEvent(resource: string, type: string): void {
    this.#events.inc({ resource, type });
  }

  watchRestarted(resource: string, reason: string): void {
    this.#restarts.inc({ resource, reason });
  }

  changeRefused(resource: string): void {
    this.#handlerErrors.inc({ resource });
  }

  registerIn(register: Registry): void {
    for (const each of [this.#events, this.#restarts, this.#handlerErrors]) register.registerMetric(each);
  }
}

function counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
  return new Counter({ name: `grantry_watch_${name}_total`, help, labelNames, registers: [] });
}

/** The gauges of a watched cluster. @param followed read at each scrape; undefined where the process watches no cluster */
export function registerStaleness(register: Registry, followed: Followed | undefined): void {
  const registers = [register];
  const gauge = (name: string, help: string, read: (followed: Followed) => number | undefined) => {
    new Gauge({
      name: `grantry_${name}`,
      help,
      registers,
      // Without labels a gauge that was never set would report 0.
      labelNames: [],
      collect() {
        const value = followed && read(followed);
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  };
  gauge('registry_last_progress_seconds', 'When it was last certain that nothing was missed, since the epoch.', (it) =>
    seconds(it.lastProgress()),
  );
  gauge('registry_staleness_seconds', 'Time since it was last certain that nothing was missed.', (it) =>
    seconds(it.now() - it.lastProgress()),
  );
  gauge('signing_key_age_seconds', 'Time since the key that signs was activated.', (it) => {
    const activatedAt = it.signingKey()?.activatedAt;
    return activatedAt === undefined ? undefined : seconds(it.now() - activatedAt);
  });
  gauge('signing_key_next_rotation_seconds', 'Time until the next key signs; negative when it is overdue.', (it) => {
    const next = it.signingKey()?.nextRotation;
    return next === undefined ? undefined : seconds(next - it.now());
  });
}

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}
