// The consent store over a Map. A client is identified by its uid: a re-created one starts without consent.

import type { Consent, ConsentStore, GivenConsent } from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

interface ConsentRecord extends GivenConsent {
  readonly subject: string;
}

/** {@link ConsentStore} in this process. */
export class MemoryConsents implements ConsentStore {
  readonly #clock: Clock;
  readonly #consents: ExpiringMap<ConsentRecord>;

  constructor({ clock, consents }: { clock: Clock; consents: ExpiringMap<ConsentRecord> }) {
    this.#clock = clock;
    this.#consents = consents;
  }

  async read(subject: string, clientUid: string): Promise<Consent | undefined> {
    return this.#consents.get(keyOf(subject, clientUid))?.access;
  }

  async give(subject: string, clientUid: string, allowed: Consent, lifetime: number): Promise<void> {
    const key = keyOf(subject, clientUid);
    const wider = new Map(this.#consents.get(key)?.access);
    for (const [audience, scope] of allowed) {
      wider.set(audience, [...new Set([...(wider.get(audience) ?? []), ...scope])]);
    }
    this.#consents.set(key, { subject, clientUid, access: wider }, this.#clock.now() + lifetime);
  }

  async withdraw(subject: string, clientUid: string): Promise<void> {
    this.#consents.delete(keyOf(subject, clientUid));
  }

  /** Withdraws all consents of a person. */
  withdrawAll(subject: string): void {
    this.#consents.deleteWhere((record) => record.subject === subject);
  }

  async list(subject: string): Promise<readonly GivenConsent[]> {
    const records = this.#consents.valuesWhere((record) => record.subject === subject);
    return records.map(({ clientUid, access }) => ({ clientUid, access }));
  }
}

function keyOf(subject: string, clientUid: string): string {
  return JSON.stringify([subject, clientUid]);
}
