// Posts an alert to the webhook. By the answer the alert is delivered, retried later, or a dead letter.

import type { Logger } from 'pino';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import type { DeliveryLeases } from '../../redis/grants/delivery-leases.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { AuditLog } from '../log/audit-log.ts';

/** In milliseconds, but for the number of tries. */
export interface RetryPace {
  /**
   * The maximum of the delay after the first failed try, doubled with each further one. The delay is random up to it.
   */
  readonly backOff: number;
  readonly longestBackOff: number;
  /** Tries until an alert is a dead letter. */
  readonly tries: number;
}

export interface AlertWebhookParts {
  readonly webhook: Webhook;
  readonly leases: DeliveryLeases;
  readonly issuer: string;
  readonly audit: AuditLog;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly pace: RetryPace;
}

export class AlertWebhook {
  readonly #parts: AlertWebhookParts;

  constructor(parts: AlertWebhookParts) {
    this.#parts = parts;
  }

  /** Tries once. @param tries the number of tries so far, this one included @throws StoreUnavailableError */
  async post(alert: Alert, tries: number): Promise<void> {
    const { webhook, leases, metrics, log, pace } = this.#parts;
    const { backOff, longestBackOff, tries: most } = pace;
    const answer = await webhook.post(this.#bodyOf(alert));
    const facts = { alert: alert.id, type: alert.type, tries };
    if (answer.accepted) {
      metrics.alertDeliveries.inc({ outcome: 'delivered' });
      await leases.acknowledge(alert.id, 'delivery');
    } else if (tries >= most) {
      metrics.alertDeliveries.inc({ outcome: 'dead_letter' });
      log.error({ ...facts, fault: answer.fault }, 'alert webhook: given up');
      await leases.acknowledge(alert.id, 'delivery');
    } else {
      metrics.alertDeliveries.inc({ outcome: 'failed' });
      log.warn({ ...facts, fault: answer.fault }, 'alert webhook: not accepted');
      const ceiling = exponentialBackoff({ first: backOff, longest: longestBackOff }, tries - 1);
      await leases.postpone(alert.id, Math.random() * ceiling);
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
