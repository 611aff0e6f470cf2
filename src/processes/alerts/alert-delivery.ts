// Delivers every alert of the outbox to every sink. The replica that raises an alert writes the audit line and tries
// the webhook at once. A sweep of all shards finds the alerts that are still undelivered, including those of replicas
// that have ended.

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
  /** The pause between two sweeps; a random part of up to half of it is added. */
  readonly sweep: number;
  /**
   * The time after which an audit line is certainly written out. A replica that is killed earlier may lose the line.
   */
  readonly written: number;
  /**
   * The least age of an alert, and the least time since the last reconnection to Redis, for which a sweep delivers the
   * alert: before that it is left to the replica that raised it.
   */
  readonly leftBehind: number;
  /** How long the delivery lease of an alert lasts: longer than a try takes. */
  readonly lease: number;
}

/** With these times a webhook that is unavailable for some hours misses no alert. */
const DELIVERY_PACE: DeliveryPace = {
  sweep: 10_000,
  // The log buffers lines for 200 ms at most.
  written: 500,
  leftBehind: 5000,
  lease: 15_000,
  backOff: 10_000,
  longestBackOff: 3_600_000,
  tries: 15,
};

/** The deliveries that one replica has in progress at once. */
const MOST_AT_ONCE = 16;

/**
 * The alerts of this replica that are retried while Redis is unavailable. More are left to the sweep, which may
 * audit-log them again.
 */
const MOST_REQUEUED = 1000;

/** The delay before each retry of such an alert, in milliseconds. */
const REQUEUE_DELAY = 250;

/** How long an alert waits for a controller to acknowledge it, in milliseconds. */
const LONGEST_WAIT = 7 * 24 * 3_600_000;

export interface AlertDeliveryOptions {
  readonly outbox: Outbox;
  readonly leases: DeliveryLeases;
  /** Undefined when no webhook is configured. */
  readonly webhook: Webhook | undefined;
  /** Calls the listener whenever Redis was reached again. */
  readonly onReconnect: (listener: () => void) => void;
  readonly issuer: string;
  readonly audit: AuditLog;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Receives every alert that is in the outbox; undefined where no controller asks for alerts. */
  readonly reports?: Pick<AlertReports, 'note'> | undefined;
  readonly pace?: DeliveryPace;
}

export class AlertDelivery {
  readonly #options: AlertDeliveryOptions;
  readonly #pace: DeliveryPace;
  readonly #webhook: AlertWebhook | undefined;
  /** By alert id. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** Deliveries that start when the audit line of their alert is certainly written out. */
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

  /** Resolves after the tries in progress; alerts that are not delivered by then stay in the outbox. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopping.resolve();
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#unwritten);
    await Promise.all(this.#underWay.values());
  }

  /** Delivers the undelivered alerts of every shard; an unavailable shard is left to the next sweep. */
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

  /**
   * Whether an alert of this age is left to the replica that raised it. While Redis was unavailable that replica could
   * not record the audit line, so the time since the reconnection counts as well.
   */
  #isFresh(age: number): boolean {
    return Math.min(age, performance.now() - this.#reconnectedAt) < this.#pace.leftBehind;
  }

  /** Acknowledges in place of a controller that has not acknowledged the alert for too long. */
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

  /** Delivers an alert whose line is in the audit stream, as soon as the line is written out. */
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

  /**
   * Delivers an alert that this process raised. With too many deliveries in progress it only records in Redis that the
   * alert is audit-logged, before the sweep of another replica logs the alert again.
   */
  #deliverRaised(alert: Alert): void {
    if (this.#underWay.has(alert.id)) return;
    // With that many in progress, the next sweep of any replica reaches the webhook sooner than this delivery would.
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
    // Only after the line is written out: if this replica ends earlier, another one has to write the line.
    if (!lease.isAuditLogged) await leases.recordAuditLogged(alert.id);
    await this.#webhook.post(alert, lease.tries);
  }

  /**
   * Resolves when the audit lines so far are written out, or on `stop`: an orderly end of the process writes them out.
   */
  async #written(): Promise<void> {
    await Promise.race([sleep(this.#pace.written, undefined, { ref: false }), this.#stopping.promise]);
  }

  /** Logs a failed delivery, unless Redis is unavailable: a later sweep finds such an alert. */
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
