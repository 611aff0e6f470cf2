// Writes audit events as lines of the stream `audit` and counts them. Fields are allow-listed; people appear by a keyed
// hash of their subject unless plain ones are configured. The log level does not affect the stream.

import type { Logger } from 'pino';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { Alert, Audit, AuditEvent } from '../../oauth/ports/audit.ts';
import { KeyedHash } from '../../oauth/values/keyed-hash.ts';
import { RecentValues } from '../../oauth/values/recent-values.ts';

export interface AuditLogOptions {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly subjects: 'hashed' | 'plain';
  /** The key of the hash: without one, a list of names would be enough to reverse it. */
  readonly pepper: Uint8Array;
  /** Called with every event. It must not throw. */
  readonly observe?: (event: AuditEvent) => void;
}

/** The ids of so many alerts are kept to detect repeated ones. */
const MAX_RECORDED_ALERTS = 10_000;

/** The hashed names of so many recent people are cached. */
const NAMES = 2000;

export class AuditLog implements Audit {
  readonly #log: Logger;
  readonly #metrics: Metrics;
  /** The events that have a counter of their own. */
  readonly #counters: Partial<Record<AuditEvent['type'], Metrics['statesLost']>>;
  readonly #subjects: 'hashed' | 'plain';
  readonly #pepper: KeyedHash;
  readonly #names = new RecentValues<string>(NAMES);
  readonly #recordedAlerts = new Set<string>();
  readonly #observe: (event: AuditEvent) => void;
  #onAlert: (alert: Alert) => void = () => {};

  constructor({ log, metrics, subjects, pepper, observe = () => {} }: AuditLogOptions) {
    this.#observe = observe;
    this.#log = log.child({ stream: 'audit' }, { level: 'info' });
    this.#metrics = metrics;
    this.#counters = {
      'refresh_token.reuse_detected': metrics.refreshReuse,
      'refresh_token.retried': metrics.refreshRetries,
      'refresh_token.retried_elsewhere': metrics.refreshRetriesElsewhere,
      'authorization_code.replayed': metrics.codeReplays,
      'client_assertion.replayed': metrics.assertionReplays,
      'dpop_proof.replayed': metrics.proofReplays,
      state_lost: metrics.statesLost,
      state_forged: metrics.statesForged,
    };
    this.#subjects = subjects;
    this.#pepper = new KeyedHash(pepper);
  }

  record(event: AuditEvent): void {
    // A store that lost writes may raise an alert again.
    if (event.alert !== undefined && this.#isRepeated(event.alert)) return;
    this.#count(event);
    this.#observe(event);
    const { type, clientId, subject, grantId, grantType, tokenFormat, scope, audience, reason } = event;
    const { provider, address, lastAddress, keyId } = event;
    this.#log[event.alert === undefined ? 'info' : 'warn']({
      event: type,
      clientId,
      subject: this.nameOf(subject),
      grantId,
      grantType,
      tokenFormat,
      scope,
      audience,
      reason,
      provider,
      address,
      lastAddress,
      keyId,
      ...(event.alert && { alert: this.#describe(event.alert) }),
    });
    if (event.alert !== undefined) this.#onAlert(event.alert);
  }

  /** Calls the listener with every alert from now on, once its line is written. It must not throw. */
  onAlert(listener: (alert: Alert) => void): void {
    this.#onAlert = listener;
  }

  #isRepeated({ id }: Alert): boolean {
    if (this.#recordedAlerts.has(id)) return true;
    const [oldest] = this.#recordedAlerts;
    if (this.#recordedAlerts.size >= MAX_RECORDED_ALERTS && oldest !== undefined) this.#recordedAlerts.delete(oldest);
    this.#recordedAlerts.add(id);
    return false;
  }

  #count({ type, grantType = 'unknown', tokenFormat = 'unknown', provider, reason }: AuditEvent): void {
    if (type === 'token.issued' || type === 'token.refreshed') {
      this.#metrics.tokensIssued.inc({ grant: grantType, format: tokenFormat });
    }
    if (type === 'login.succeeded' || type === 'login.failed' || type === 'person.refused') {
      const method = provider === undefined ? 'password' : 'provider';
      this.#metrics.signIns.inc({ provider: provider ?? 'local', method, outcome: reason ?? 'signed_in' });
    }
    this.#counters[type]?.inc();
  }

  #describe(alert: Alert) {
    const { id, type, time, presentedGeneration, currentGeneration, address, lastAddress, action } = alert;
    return { id, type, time, presentedGeneration, currentGeneration, address, lastAddress, action };
  }

  /** The name of a subject in the audit stream. A client that acts for itself is its own subject and not hashed. */
  nameOf(subject: string | undefined): string | undefined {
    if (subject === undefined || this.#subjects === 'plain' || !subject.startsWith('usr_')) return subject;
    const known = this.#names.get(subject);
    if (known !== undefined) return known;
    const name = this.#pepper.of(`audit-subject\0${subject}`).slice(0, 22);
    this.#names.set(subject, name);
    return name;
  }
}
