// The metrics of a process that follows a cluster: its watches, how old what it knows is, and its signing key. Without
// values where nothing is followed.

import { Counter, Gauge, type Registry } from 'prom-client';

/** What a process follows, as metrics see it. Times are epoch milliseconds. */
export interface Followed {
  now(): number;
  /** Up to when nothing was missed. */
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

/** @param followed read at each scrape; undefined: nothing is */
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
    help: 'Watches that began anew.',
    labelNames: ['resource', 'reason'],
    registers,
  });
  const refused = new Counter({
    name: 'grantry_watch_handler_errors_total',
    help: 'Changes that could not be handed on. They are told again.',
    labelNames: ['resource'],
    registers,
  });
  const gauge = (name: string, help: string, read: (followed: Followed) => number | undefined) => {
    new Gauge({
      name: `grantry_${name}`,
      help,
      registers,
      // Without a label a gauge that was never set is 0, which would be a claim.
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
