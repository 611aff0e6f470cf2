// The person store over a Map.

import type { NewVouchedRecord, PersonStore, VouchedRecord } from '../oauth/ports/person-store.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

interface Entry {
  readonly record: VouchedRecord;
  readonly expiresAt: number;
}

/** {@link PersonStore} in this process. */
export class MemoryPersons implements PersonStore {
  readonly #clock: Clock;
  readonly #persons: ExpiringMap<Entry>;

  constructor({ clock, persons }: { readonly clock: Clock; readonly persons: ExpiringMap<Entry> }) {
    this.#clock = clock;
    this.#persons = persons;
  }

  async remember(record: NewVouchedRecord, lifetime: number): Promise<VouchedRecord> {
    const verifiedAt = this.#clock.now();
    const noted = { ...record, verifiedAt };
    this.#persons.set(record.subject, { record: noted, expiresAt: verifiedAt + lifetime }, verifiedAt + lifetime);
    return noted;
  }

  async seal({ subject, verifiedAt }: VouchedRecord, mac: string): Promise<void> {
    const entry = this.#persons.get(subject);
    if (entry?.record.verifiedAt !== verifiedAt) return;
    this.#persons.set(subject, { ...entry, record: { ...entry.record, mac } }, entry.expiresAt);
  }

  async read(subject: string): Promise<VouchedRecord | undefined> {
    return this.#persons.get(subject)?.record;
  }
}
