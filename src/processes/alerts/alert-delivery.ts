// Brings every alert of the outbox to every sink. The replica that raised one has written its audit line and tries the
// webhook at once; a sweep of all shards finds what was left behind, by this replica or by one that is gone.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { describeFault } from '../../oauth/ports/fault.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import type { DeliveryLeases } from '../../redis/grants/delivery-leases.ts';
import type { Outbox } from '../../redis/grants/outbox.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { AuditLog } from '../log/audit-log.ts';
import type { AlertReports } from './alert-reports.ts';
import { AlertWebhook, type RetryPace } from './alert-webhook.ts';

/** In milliseconds. */
export interface DeliveryPace extends RetryPace {
  /** Between two sweeps, up to half of it more. */
  readonly sweep: number;
  /** From an audit line until it is written out for sure: a replica that is killed before has told nobody. */
  readonly written: number;
  /** How old an alert is, and how long Redis is back, before a sweep takes it: whoever raised it comes first. */
  readonly leftBehind: number;
  /** How long a replica has an alert for itself. Longer than a try takes. */
  readonly lease: number;
}

/** A webhook that is away for some hours loses nothing. */
const DELIVERY_PACE: DeliveryPace = {
  sweep: 10_000,
  // The log gathers lines for 200 ms.
  written: 500,
  leftBehind: 5000,
  lease: 15_000,
  backOff: 10_000,
  longestBackOff: 3_600_000,
  tries: 15,
};

/** Tries under way at once in one replica. */
const MOST_AT_ONCE = 16;

/** Alerts of this replica that wait for Redis to come back. More are left to the sweep, which may tell them again. */
const MOST_WAITING = 1000;

/** How often those try, in milliseconds. */
const WAITING_PAUSE = 250;

/** How long a controller may be away, in milliseconds. */
const LONGEST_WAIT = 7 * 24 * 3_600_000;

export interface AlertDeliveryOptions {
  readonly outbox: Outbox;
  readonly turns: DeliveryLeases;
  /** Undefined: audit stream and metrics are the only sinks. */
  readonly webhook: Webhook | undefined;
  /** Calls the listener whenever Redis was reached again. */
  readonly onReconnect: (listener: () => void) => void;
  readonly issuer: string;
  readonly audit: AuditLog;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Told every alert that is in the outbox, where a controller asks for them. */
  readonly reports?: Pick<AlertReports, 'note'> | undefined;
  readonly pace?: DeliveryPace;
}

export class AlertDelivery {
  readonly #options: AlertDeliveryOptions;
  readonly #pace: DeliveryPace;
  readonly #webhook: AlertWebhook | undefined;
  /** By alert id. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** Alerts whose line may not be written out yet. */
  readonly #unwritten = new Set<Promise<void>>();
  readonly #waiting = new Map<string, Alert>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #reconnectedAt = Number.NEGATIVE_INFINITY;
  readonly #stopping = Promise.withResolvers<void>();
  #isStopped = false;

  constructor(options: AlertDeliveryOptions) {
    this.#options = options;
    this.#pace = options.pace ?? DELIVERY_PACE;
    const { webhook } = options;
    this.#webhook = webhook && new AlertWebhook({ ...options, webhook, pace: this.#pace });
  }

  /** Delivers what is raised here, and sweeps, until `stop`. */
  start(): void {
    this.#options.audit.onAlert((alert) => this.#raised(alert));
    this.#options.onReconnect(() => {
      this.#reconnectedAt = performance.now();
    });
    this.#sweepLater();
  }

  /** Ends after the tries under way; what they did not deliver stays in the outbox. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopping.resolve();
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#unwritten);
    await Promise.all(this.#underWay.values());
  }

  /** Takes what was left behind in every shard; one that cannot be asked now is left to the next sweep. */
  async sweep(): Promise<void> {
    for (const shard of SHARDS) {
      if (this.#isStopped) return;
      await this.#sweepShard(shard).catch((error) => this.#noteFault(error));
    }
  }

  async #sweepShard(shard: string): Promise<void> {
    const { entries, unreadable } = await this.#options.outbox.list(shard);
    for (const id of unreadable) await this.#discard(shard, id);
    for (const { alert, age } of entries) {
      if (this.#isStopped) return;
      this.#options.reports?.note(alert);
      if (age > LONGEST_WAIT && this.#options.reports !== undefined) await this.#giveUp(alert);
      if (this.#isFresh(age)) continue;
      while (this.#underWay.size >= MOST_AT_ONCE) await Promise.race(this.#underWay.values());
      if (this.#isStopped) return;
      if (this.#underWay.has(alert.id)) continue;
      this.#begin(alert, () => this.#deliver(alert, false));
    }
  }

  /** Whoever raised an alert comes first, and while Redis was away could not say that it is told. */
  #isFresh(age: number): boolean {
    return Math.min(age, performance.now() - this.#reconnectedAt) < this.#pace.leftBehind;
  }

  /** The controller has been away for longer than anybody looks at an alert. */
  async #giveUp(alert: Alert): Promise<void> {
    const { turns, log } = this.#options;
    log.error({ alert: alert.id, type: alert.type }, 'alert: no controller has taken it, given up');
    await turns.settle(alert.id, 'controller');
  }

  /** Nobody could ever deliver it. */
  async #discard(shard: string, id: string): Promise<void> {
    if (!(await this.#options.outbox.discard(shard, id))) return;
    this.#options.metrics.alertDeliveries.inc({ outcome: 'dead_letter' });
    this.#options.log.error({ shard, alert: id, fault: 'unreadable' }, 'alert: cannot be read, given up');
  }

  #sweepLater(): void {
    const pause = this.#pace.sweep * (1 + Math.random() / 2);
    this.#after(pause, async () => {
      await this.sweep().catch((error) => this.#noteFault(error));
      if (!this.#isStopped) this.#sweepLater();
    });
  }

  /** Its line is in the audit stream, and will be written out. */
  #raised(alert: Alert): void {
    if (this.#isStopped || this.#underWay.has(alert.id)) return;
    this.#options.reports?.note(alert);
    const bring = this.#written().then(() => {
      this.#unwritten.delete(bring);
      this.#options.outbox.rememberTold(alert);
      this.#bring(alert);
    });
    this.#unwritten.add(bring);
  }

  /** Redis has to hear that an alert is told before the sweep of another replica tells it again. */
  #bring(alert: Alert): void {
    if (this.#underWay.has(alert.id)) return;
    // With so many under way, whoever sweeps next has time for its webhook before this replica does.
    const hasTime = this.#underWay.size < MOST_AT_ONCE;
    this.#begin(alert, async () => {
      try {
        await (hasTime ? this.#deliver(alert, true) : this.#options.turns.tell(alert.id));
      } catch (error) {
        this.#noteFault(error);
        this.#wait(alert);
      }
    });
  }

  #wait(alert: Alert): void {
    if (this.#waiting.size >= MOST_WAITING) return;
    this.#waiting.set(alert.id, alert);
    this.#after(WAITING_PAUSE, async () => {
      if (this.#waiting.delete(alert.id)) this.#raised(alert);
    });
  }

  #begin(alert: Alert, work: () => Promise<void>): void {
    const done = work()
      .catch((error) => this.#noteFault(error))
      .finally(() => this.#underWay.delete(alert.id));
    this.#underWay.set(alert.id, done);
  }

  async #deliver(alert: Alert, isTold: boolean): Promise<void> {
    const { outbox, turns, audit } = this.#options;
    const turn = await turns.take(alert.id, { lease: this.#pace.lease, isTold });
    if (turn === undefined) return;
    if (!turn.isTold) {
      audit.record(eventOf(alert));
      await this.#written();
      outbox.rememberTold(alert);
    }
    if (this.#webhook === undefined) return await turns.settle(alert.id, 'delivery');
    // Only now: of a replica that ended before its line was written nobody has heard.
    if (!turn.isTold) await turns.tell(alert.id);
    await this.#webhook.post(alert, turn.tries);
  }

  /** Until the lines so far are written out; an orderly end does that itself. */
  async #written(): Promise<void> {
    await Promise.race([sleep(this.#pace.written, undefined, { ref: false }), this.#stopping.promise]);
  }

  /** What Redis did not take or tell now, a sweep will find. */
  #noteFault(error: unknown): void {
    if (error instanceof StoreUnavailableError) return;
    this.#options.log.error({ cause: describeFault(error) }, 'alert delivery failed');
  }

  #after(pause: number, work: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void work();
    }, pause);
    this.#timers.add(timer);
  }
}

function eventOf(alert: Alert) {
  const { type, clientId, subject, grantId, address } = alert;
  return { type, clientId, subject, grantId, address, alert } as const;
}
