// The part of a replica that delivers alerts: audit stream, metrics, and the delivery over a given connection to Redis.

import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { AlertDelivery, type DeliveryPace } from '../../../src/delivery/alert-delivery.ts';
import { Metrics } from '../../../src/http/metrics/metrics.ts';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import type { Clock } from '../../../src/oauth/ports/ports.ts';
import { AuditLog } from '../../../src/processes/log/audit-log.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import type { RedisConnection } from '../../../src/redis/connection/connection.ts';
import type { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { AlertOutbox } from '../../../src/redis/grants/alert-outbox.ts';
import { Webhook } from '../../../src/webhook/webhook.ts';

interface DeliveringOptions {
  readonly connection: RedisConnection;
  readonly keys: RedisKeys;
  readonly onReconnect: (listener: () => void) => void;
  /** Of the receiver; undefined where there is none. */
  readonly webhookUrl: string | undefined;
  /** Default: that of the product. */
  readonly pace?: DeliveryPace;
  /** By which tries are signed. Default: that of the machine. */
  readonly clock?: Clock;
}

/** What its webhook signs with. */
export const WEBHOOK_SECRET = 'x'.repeat(32);

/** Delivers once its `delivery` is started. Stop that. */
export class DeliveringReplica {
  readonly lines: Record<string, unknown>[] = [];
  readonly metrics = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: false });
  readonly audit: AuditLog;
  readonly delivery: AlertDelivery;
  /** The alerts that it counts for the controller, with and without an audit line of its own. */
  readonly counted: string[] = [];

  constructor({ connection, keys, onReconnect, webhookUrl, pace, clock }: DeliveringOptions) {
    const stream = new Writable({
      decodeStrings: false,
      write: (line: string, _encoding, done) => {
        this.lines.push(JSON.parse(line));
        done();
      },
    });
    const log = createLog('info', stream);
    const { metrics } = this;
    this.audit = new AuditLog({
      log,
      metrics,
      subjects: 'hashed',
      pepper: randomBytes(32),
      observe: ({ alert }) => alert && this.counted.push(alert.id),
    });
    const outbox = new AlertOutbox({ connection, keys });
    const signing = { secrets: () => [WEBHOOK_SECRET], clock: clock ?? { now: () => Date.now() }, limit: 1000 };
    this.delivery = new AlertDelivery({
      log,
      metrics,
      audit: this.audit,
      issuer: 'https://id.example',
      onReconnect,
      ...(pace !== undefined && { pace }),
      outbox,
      alerted: ({ id }) => this.counted.push(id),
      webhook: webhookUrl === undefined ? undefined : new Webhook({ url: webhookUrl, ...signing }),
    });
  }

  start(): this {
    this.delivery.start();
    return this;
  }

  /** Got the reply of the action that raised this. */
  raise(alert: Alert): void {
    const { type, clientId, subject, grantId, address } = alert;
    this.audit.record({ type, clientId, subject, grantId, address, alert });
  }

  /** The events of its audit stream. */
  audits(): readonly unknown[] {
    return this.lines.filter(({ stream }) => stream === 'audit').map(({ event }) => event);
  }

  async deliveries(outcome: string): Promise<number> {
    const pattern = new RegExp(`^grantry_alert_deliveries_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm');
    return Number((await this.metrics.text()).match(pattern)?.[1] ?? 0);
  }
}
