// Delivers every alert of the outbox to every sink. The replica that raised an alert has written its audit line and
// tries the webhook at once; a sweep of all shards finds the alerts left behind, also by replicas that ended.

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
  /** From an audit line until it is certainly written out: a replica that is killed before has not reported the alert. */
  readonly written: number;
  /** The age of an alert, and the time since Redis is back, before a sweep takes it: its own replica comes first. */
  readonly leftBehind: number;
  /** How long the delivery lease of an alert lasts. Longer than a try takes. */
  readonly lease: number;
}

/** A webhook that is away for some hours loses no alert. */
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

/** Alerts of this replica that wait for Redis to come back. More are left to the sweep, which may audit-log them again. */
const MOST_REQUEUED = 1000;

/** The pause before each retry of those, in milliseconds. */
const REQUEUE_DELAY = 250;

/** How long a controller may be away, in milliseconds. */
const LONGEST_WAIT = 7 * 24 * 3_600_000;

export interface AlertDeliveryOptions {
  readonly outbox: Outbox;
  readonly leases: DeliveryLeases;
  /** Undefined: audit stream and metrics are the only sinks. */
  readonly webhook: Webhook | undefined;
  /** Calls the listener whenever Redis was reached again. */
  readonly onReconnect: (listener: () => void) => void;
  readonly issuer: string;
  readonly audit: AuditLog;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Receives every alert that is in the outbox, where a controller asks for them. */
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
  readonly #requeued = new Map<string, Alert>();
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

  /** Delivers the alerts that this process raises, and sweeps, until `stop`. */
  start(): void {
    this.#options.audit.onAlert((alert) => this.#enqueue(alert));
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

  /** Delivers what was left behind in every shard; an unavailable shard is left to the next sweep. */
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

  /** The replica that raised an alert comes first, and could not record its audit line while Redis was away. */
  #isFresh(age: number): boolean {
    return Math.min(age, performance.now() - this.#reconnectedAt) < this.#pace.leftBehind;
  }

  /** Acknowledges in place of a controller that has been away for too long. */
  async #giveUp(alert: Alert): Promise<void> {
    const { leases, log } = this.#options;
    log.error({ alert: alert.id, type: alert.type }, 'alert: no controller has taken it, given up');
    await leases.acknowledge(alert.id, 'controller');
  }

  /** Removes an entry that no replica can deliver. */
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

  /** Delivers an alert whose line is in the audit stream, once the line is written out. */
  #enqueue(alert: Alert): void {
    if (this.#isStopped || this.#underWay.has(alert.id)) return;
    this.#options.reports?.note(alert);
    const delivery = this.#written().then(() => {
      this.#unwritten.delete(delivery);
      this.#options.outbox.recordAuditLoggedForReplay(alert);
      this.#deliverRaised(alert);
    });
    this.#unwritten.add(delivery);
  }

  /** Records in Redis that the alert is audit-logged, before the sweep of another replica logs it again. */
  #deliverRaised(alert: Alert): void {
    if (this.#underWay.has(alert.id)) return;
    // With so many under way, the next sweep of any replica has time for the webhook before this one does.
    const hasTime = this.#underWay.size < MOST_AT_ONCE;
    this.#begin(alert, async () => {
      try {
        await (hasTime ? this.#deliver(alert, true) : this.#options.leases.recordAuditLogged(alert.id));
      } catch (error) {
        this.#noteFault(error);
        this.#requeue(alert);
      }
    });
  }

  #requeue(alert: Alert): void {
    if (this.#requeued.size >= MOST_REQUEUED) return;
    this.#requeued.set(alert.id, alert);
    this.#after(REQUEUE_DELAY, async () => {
      if (this.#requeued.delete(alert.id)) this.#enqueue(alert);
    });
  }

  #begin(alert: Alert, work: () => Promise<void>): void {
    const done = work()
      .catch((error) => this.#noteFault(error))
      .finally(() => this.#underWay.delete(alert.id));
    this.#underWay.set(alert.id, done);
  }

  async #deliver(alert: Alert, isAuditLogged: boolean): Promise<void> {
    const { outbox, leases, audit } = this.#options;
    const lease = await leases.take(alert.id, { lease: this.#pace.lease, isAuditLogged });
    if (lease === undefined) return;
    if (!lease.isAuditLogged) {
      audit.record(eventOf(alert));
      await this.#written();
      outbox.recordAuditLoggedForReplay(alert);
    }
    if (this.#webhook === undefined) return await leases.acknowledge(alert.id, 'delivery');
    // Only now: a replica that ended before its line was written out has not reported the alert.
    if (!lease.isAuditLogged) await leases.recordAuditLogged(alert.id);
    await this.#webhook.post(alert, lease.tries);
  }

  /** Resolves when the lines so far are written out; an orderly end writes them itself. */
  async #written(): Promise<void> {
    await Promise.race([sleep(this.#pace.written, undefined, { ref: false }), this.#stopping.promise]);
  }

  /** What failed because Redis is away is found by a later sweep. */
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
