// The person store over a Map.

import { isDeepStrictEqual } from 'node:util';
import type { AssertedRecord, NewAssertedRecord, PersonStore } from '../oauth/ports/person-store.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

interface Entry {
  readonly record: AssertedRecord;
  readonly expiresAt: number;
}

/** What is known of a person, and what waits for its MAC. */
interface Entries {
  readonly sealed: Entry | undefined;
  readonly next: Entry | undefined;
}

/** {@link PersonStore} in this process. */
export class MemoryPersons implements PersonStore {
  readonly #clock: Clock;
  readonly #persons: ExpiringMap<Entries>;

  constructor({ clock, persons }: { readonly clock: Clock; readonly persons: ExpiringMap<Entries> }) {
    this.#clock = clock;
    this.#persons = persons;
  }

  async remember(record: NewAssertedRecord, lifetime: number): Promise<AssertedRecord> {
    const verifiedAt = this.#clock.now();
    const next = { record: { ...record, verifiedAt }, expiresAt: verifiedAt + lifetime };
    const sealed = this.#persons.get(record.subject)?.sealed;
    this.#persons.set(record.subject, { sealed, next }, Math.max(next.expiresAt, sealed?.expiresAt ?? 0));
    return next.record;
  }

  async seal(stamped: AssertedRecord, mac: string): Promise<void> {
    const { subject } = stamped;
    const next = this.#persons.get(subject)?.next;
    // Two sign-ins may be recorded in one millisecond.
    if (next === undefined || !isDeepStrictEqual(next.record, stamped)) return;
    const sealed = { ...next, record: { ...next.record, mac } };
    this.#persons.set(subject, { sealed, next: undefined }, next.expiresAt);
  }

  async read(subject: string): Promise<AssertedRecord | undefined> {
    const sealed = this.#persons.get(subject)?.sealed;
    return sealed !== undefined && this.#clock.now() < sealed.expiresAt ? sealed.record : undefined;
  }
}
