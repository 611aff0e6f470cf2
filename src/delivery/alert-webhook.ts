// Posts an alert to the webhook. By the answer the alert is delivered, retried later, or a dead letter.

import type { Logger } from 'pino';
import type { Metrics } from '../http/metrics/metrics.ts';
import type { Alert } from '../oauth/ports/audit.ts';
import type { Outbox } from '../oauth/ports/outbox.ts';
import { type BackoffRange, exponentialBackoff } from '../oauth/values/backoff.ts';
import type { QueuedAlert } from '../redis/grants/alert-outbox.ts';
import type { Place } from '../redis/stores/outbox.ts';
import type { Webhook } from '../webhook/webhook.ts';

/** In milliseconds. The pause after a failed try is random, up to that of the backoff. */
export interface RetryPace extends BackoffRange {
  /** How long a try may take: longer than a call does. */
  readonly lease: number;
  /** The age of an alert at which it is a dead letter. */
  readonly triedFor: number;
}

export interface AlertWebhookParts {
  readonly webhook: Webhook;
  readonly outbox: Outbox<QueuedAlert, Place>;
  readonly issuer: string;
  /** Names a subject as the audit stream does. */
  readonly audit: { nameOf(subject: string | undefined): string | undefined };
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly pace: RetryPace;
}

export class AlertWebhook {
  readonly #parts: AlertWebhookParts;

  constructor(parts: AlertWebhookParts) {
    this.#parts = parts;
  }

  /** Tries once, unless another replica does or a pause is not over. @throws StoreUnavailableError */
  async deliver(queued: QueuedAlert, alert: Alert): Promise<void> {
    const { webhook, outbox, metrics, log, pace } = this.#parts;
    const triesBefore = await outbox.take(queued, pace.lease);
    if (triesBefore === undefined) return;
    const answer = await webhook.post(this.#bodyOf(alert));
    if (answer.accepted) {
      metrics.alertDeliveries.inc({ outcome: 'delivered' });
      await outbox.acknowledge(queued);
      return;
    }
    const facts = { alert: alert.id, type: alert.type, tries: triesBefore + 1, fault: answer.fault };
    const pause = Math.random() * exponentialBackoff(pace, triesBefore);
    if (queued.age + pause >= pace.triedFor) {
      metrics.alertDeliveries.inc({ outcome: 'dead_letter' });
      log.error(facts, 'alert webhook: given up');
      await outbox.acknowledge(queued);
    } else {
      metrics.alertDeliveries.inc({ outcome: 'failed' });
      log.warn(facts, 'alert webhook: not accepted');
      await outbox.postpone(queued, pause);
    }
  }

  #bodyOf(alert: Alert): string {
    const { id, type, time, clientId, subject, grantId, address, lastAddress, action } = alert;
    const { presentedGeneration, currentGeneration } = alert;
    return JSON.stringify({
      id,
      type,
      time: new Date(time).toISOString(),
      issuer: this.#parts.issuer,
      clientId,
      subject: this.#parts.audit.nameOf(subject),
      grantId,
      presentedGeneration,
      currentGeneration,
      address,
      lastAddress,
      action,
    });
  }
}
