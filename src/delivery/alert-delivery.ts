// Writes the audit line of every alert and posts it to the webhook. The replica that raises an alert writes the line, and
// then hands the alert to the outbox of the webhook. A sweep of all shards finds the alerts that are still in an outbox,
// including those of replicas that have ended.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Metrics } from '../http/metrics/metrics.ts';
import type { Alert, Audit } from '../oauth/ports/audit.ts';
import { type AlertOutbox, placeOfAlert, type QueuedAlert } from '../redis/grants/alert-outbox.ts';
import type { Webhook } from '../webhook/webhook.ts';
import { AlertWebhook, type RetryPace } from './alert-webhook.ts';
import { OutboxSweeper } from './outbox-sweeper.ts';

/** In milliseconds. */
export interface DeliveryPace extends RetryPace {
  /** See {@link OutboxSweeper}. */
  readonly sweep?: number;
  /**
   * The time after which an audit line is certainly written out. A replica that is killed earlier may lose the line.
   */
  readonly written: number;
  /**
   * The least age of an alert, and the least time since the last reconnection to Redis, for which a sweep writes the
   * audit line: before that it is left to the replica that raised the alert.
   */
  readonly leftBehind: number;
}

const DELIVERY_PACE: DeliveryPace = {
  // The log buffers lines for 200 ms at most.
  written: 500,
  leftBehind: 5000,
  lease: 15_000,
  first: 10_000,
  longest: 3_600_000,
  // A webhook that is unavailable for a night misses no alert.
  triedFor: 24 * 3_600_000,
};

/** How long an alert waits for a webhook that is not configured, in milliseconds. */
const LONGEST_WAIT = 7 * 24 * 3_600_000;

/** The audit log, which announces an alert once its line is written. */
export interface AlertLog extends Audit {
  onAlert(listener: (alert: Alert) => void): void;
  nameOf(subject: string | undefined): string | undefined;
}

export interface AlertDeliveryOptions {
  readonly outbox: AlertOutbox;
  /** Undefined when no webhook is configured. */
  readonly webhook: Webhook | undefined;
  /** Calls the listener whenever Redis was reached again. */
  readonly onReconnect: (listener: () => void) => void;
  readonly issuer: string;
  readonly audit: AlertLog;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Receives the alerts that a replica of an earlier version left for its controller. */
  readonly alerted?: ((alert: Alert) => void) | undefined;
  readonly pace?: DeliveryPace;
}

/** Where an alert waits: for its audit line, for the webhook, and in an earlier version for the controller. */
type Stage = 'raised' | 'webhook' | 'controller';

export class AlertDelivery {
  readonly #options: AlertDeliveryOptions;
  readonly #pace: DeliveryPace;
  /** One for each outbox: a slow webhook delays no audit line. */
  readonly #sweepers: Readonly<Record<Stage, OutboxSweeper<QueuedAlert>>>;
  /** Alerts that move on when their audit line is certainly written out. */
  readonly #unwritten = new Set<Promise<void>>();
  #reconnectedAt = Number.NEGATIVE_INFINITY;
  readonly #stopping = Promise.withResolvers<void>();

  constructor(options: AlertDeliveryOptions) {
    this.#options = options;
    const { webhook, alerted, outbox, pace = DELIVERY_PACE } = options;
    this.#pace = pace;
    const posts = webhook && new AlertWebhook({ ...options, webhook, pace, outbox: outbox.webhook });
    this.#sweepers = {
      raised: this.#sweeper('raised', (queued, alert) => this.#logAndForward(queued, alert)),
      webhook: this.#sweeper('webhook', (queued, alert) => posts?.deliver(queued, alert) ?? this.#giveUpOld(queued)),
      controller: this.#sweeper('controller', async (queued, alert) => {
        if (await outbox.controller.acknowledge(queued)) alerted?.(alert);
      }),
    };
  }

  /** Delivers the alerts that this process raises, and sweeps, until `stop`. */
  start(): void {
    this.#options.audit.onAlert((alert) => this.#forwardWritten(alert));
    this.#options.onReconnect(() => {
      this.#reconnectedAt = performance.now();
    });
    for (const sweeper of Object.values(this.#sweepers)) sweeper.start();
  }

  /** Resolves after the tries in progress; alerts that are not delivered by then stay in their outboxes. */
  async stop(): Promise<void> {
    const stopped = Object.values(this.#sweepers).map((sweeper) => sweeper.stop());
    this.#stopping.resolve();
    await Promise.all([...stopped, ...this.#unwritten]);
  }

  /** Delivers the undelivered alerts of every shard; an unavailable shard is left to the next sweep. */
  async sweep(): Promise<void> {
    // The webhook first: what moves on is tried at once, and by this sweep not again.
    await Promise.all([this.#sweepers.webhook.sweep(), this.#sweepers.controller.sweep()]);
    await this.#sweepers.raised.sweep();
  }

  #sweeper(stage: Stage, handle: (queued: QueuedAlert, alert: Alert) => Promise<void>) {
    const { outbox, log } = this.#options;
    return new OutboxSweeper<QueuedAlert>({
      list: (shard) => outbox[stage].list(shard),
      nameOf: ({ name }) => name,
      handle: (queued) => (queued.alert === undefined ? this.#discard(stage, queued) : handle(queued, queued.alert)),
      pause: this.#pace.sweep,
      log,
      faultMessage: 'alert delivery failed',
    });
  }

  /** Only after the line is written out: if this replica ends earlier, another one has to write the line. */
  async #logAndForward(queued: QueuedAlert, alert: Alert): Promise<void> {
    const { outbox, audit } = this.#options;
    if (this.#isFresh(queued.age)) return;
    if ((await outbox.raised.take(queued, this.#pace.lease)) === undefined) return;
    audit.record(eventOf(alert));
    await this.#written();
    await this.#forward(alert, queued.age);
  }

  /**
   * Whether an alert of this age is left to the replica that raised it. While Redis was unavailable that replica could
   * not record the audit line, so the time since the reconnection applies as well.
   */
  #isFresh(age: number): boolean {
    return Math.min(age, performance.now() - this.#reconnectedAt) < this.#pace.leftBehind;
  }

  /** Removes an entry that no webhook has taken for too long. */
  async #giveUpOld(queued: QueuedAlert): Promise<void> {
    const { outbox, log } = this.#options;
    if (queued.age <= LONGEST_WAIT || !(await outbox.webhook.acknowledge(queued))) return;
    log.error({ alert: queued.name, sink: 'webhook' }, 'alert: its sink has not taken it, given up');
  }

  /** Removes an entry that no replica can deliver. */
  async #discard(stage: Stage, queued: QueuedAlert): Promise<void> {
    const { outbox, metrics, log } = this.#options;
    const { shard, name } = queued;
    if (!(await outbox[stage].acknowledge(queued))) return;
    metrics.alertDeliveries.inc({ outcome: 'dead_letter' });
    log.error({ shard, alert: name, fault: 'unreadable' }, 'alert: cannot be read, given up');
  }

  /**
   * Hands on an alert whose line is in the audit stream, as soon as the line is written out. While Redis is unavailable the
   * replay does it.
   */
  #forwardWritten(alert: Alert): void {
    const { raised } = this.#sweepers;
    if (raised.isStopped || raised.isUnderWay(alert.id)) return;
    const forwarded = this.#written()
      .then(() => this.#forward(alert, 0))
      .catch((error) => raised.noteFault(error))
      .finally(() => this.#unwritten.delete(forwarded));
    this.#unwritten.add(forwarded);
  }

  async #forward(alert: Alert, age: number): Promise<void> {
    const hasWebhook = this.#options.webhook !== undefined;
    await this.#options.outbox.forward(alert, hasWebhook);
    if (hasWebhook) this.#sweepers.webhook.enqueue([{ ...placeOfAlert(alert.id), alert, age }]);
  }

  /**
   * Resolves when the audit lines so far are written out, or on `stop`: an orderly end of the process writes them out.
   */
  async #written(): Promise<void> {
    await Promise.race([sleep(this.#pace.written, undefined, { ref: false }), this.#stopping.promise]);
  }
}

function eventOf(alert: Alert) {
  const { type, clientId, subject, grantId, address } = alert;
  return { type, clientId, subject, grantId, address, alert } as const;
}
