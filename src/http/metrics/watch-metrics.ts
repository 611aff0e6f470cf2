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

/** The counters of watches. */
export interface WatchCounters {
  watchEvent(resource: string, type: string): void;
  watchRestarted(resource: string, reason: string): void;
  changeRefused(resource: string): void;
}

/** @param followed read at each scrape; undefined where the process watches no cluster */
export function watchMetrics(register: Registry, followed: Followed | undefined): WatchCounters {
  const registers = [register];
  const events = new Counter({
    name: 'grantry_watch_events_total',
    help: 'Frames of watches.',
    labelNames: ['resource', 'type'],
    registers,
  });
  const restarts = new Counter({
    name: 'grantry_watch_restarts_total',
    help: 'Watches that were restarted.',
    labelNames: ['resource', 'reason'],
    registers,
  });
  const refused = new Counter({
    name: 'grantry_watch_handler_errors_total',
    help: 'Changes that a handler failed to process. They are delivered again.',
    labelNames: ['resource'],
    registers,
  });
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
  return {
    watchEvent: (resource, type) => events.inc({ resource, type }),
    watchRestarted: (resource, reason) => restarts.inc({ resource, reason }),
    changeRefused: (resource) => refused.inc({ resource }),
  };
}

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}
