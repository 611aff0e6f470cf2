// What happened, as lines of the stream `audit` and as counters. Fields by allow-list; people by a keyed hash of their
// subject unless configuration asks for plain ones. The log level does not silence it.

import type { Logger } from 'pino';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { Alert, Audit, AuditEvent } from '../../oauth/ports/audit.ts';
import { KeyedHash } from '../../oauth/values/keyed-hash.ts';
import { RecentValues } from '../../oauth/values/recent-values.ts';

export interface AuditLogOptions {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly subjects: 'hashed' | 'plain';
  /** The key of the hash: without it a list of names would be enough to undo it. */
  readonly pepper: Uint8Array;
  /** Is told every event too. It must not throw. */
  readonly observe?: (event: AuditEvent) => void;
}

/** How many alerts are known to have been told. */
const MOST_TOLD = 10_000;

/** How many people of the last events are known by their hashed names. */
const NAMES = 2000;

export class AuditLog implements Audit {
  readonly #log: Logger;
  readonly #metrics: Metrics;
  /** The events that are counted by themselves. */
  readonly #counters: Partial<Record<AuditEvent['type'], Metrics['statesLost']>>;
  readonly #subjects: 'hashed' | 'plain';
  readonly #pepper: KeyedHash;
  readonly #names = new RecentValues<string>(NAMES);
  readonly #told = new Set<string>();
  readonly #observe: (event: AuditEvent) => void;
  #onAlert: (alert: Alert) => void = () => {};

  constructor({ log, metrics, subjects, pepper, observe = () => {} }: AuditLogOptions) {
    this.#observe = observe;
    this.#log = log.child({ stream: 'audit' }, { level: 'info' });
    this.#metrics = metrics;
    this.#counters = {
      'refresh_token.reuse_detected': metrics.refreshReuse,
      'refresh_token.retried': metrics.refreshRetries,
      'authorization_code.replayed': metrics.codeReplays,
      state_lost: metrics.statesLost,
    };
    this.#subjects = subjects;
    this.#pepper = new KeyedHash(pepper);
  }

  record(event: AuditEvent): void {
    // A store that lost writes may raise an alert again.
    if (event.alert !== undefined && this.#wasTold(event.alert)) return;
    this.#count(event);
    this.#observe(event);
    const { type, clientId, subject, grantId, grantType, tokenFormat, scope, audience, reason, address, keyId } = event;
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
      address,
      keyId,
      ...(event.alert && { alert: this.#describe(event.alert) }),
    });
    if (event.alert !== undefined) this.#onAlert(event.alert);
  }

  /** Calls the listener with every alert from now on, once its line is written. It must not throw. */
  onAlert(listener: (alert: Alert) => void): void {
    this.#onAlert = listener;
  }

  #wasTold({ id }: Alert): boolean {
    if (this.#told.has(id)) return true;
    const [oldest] = this.#told;
    if (this.#told.size >= MOST_TOLD && oldest !== undefined) this.#told.delete(oldest);
    this.#told.add(id);
    return false;
  }

  #count({ type, grantType = 'unknown', tokenFormat = 'unknown' }: AuditEvent): void {
    if (type === 'token.issued' || type === 'token.refreshed') {
      this.#metrics.tokensIssued.inc({ grant: grantType, format: tokenFormat });
    }
    this.#counters[type]?.inc();
  }

  #describe(alert: Alert) {
    const { id, type, time, presentedGeneration, currentGeneration, address, lastAddress, action } = alert;
    return { id, type, time, presentedGeneration, currentGeneration, address, lastAddress, action };
  }

  /** What a subject is called outside. A client that acts for itself is its own subject, and no person. */
  nameOf(subject: string | undefined): string | undefined {
    if (subject === undefined || this.#subjects === 'plain' || !subject.startsWith('usr_')) return subject;
    const known = this.#names.get(subject);
    if (known !== undefined) return known;
    const name = this.#pepper.of(`audit-subject\0${subject}`).slice(0, 22);
    this.#names.set(subject, name);
    return name;
  }
}
