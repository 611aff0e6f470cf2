// The user store over a Map: the recorded credentials of the local users. An entry never expires: a user who is absent for
// an hour is ended by `recordAbsence`, which removes the entry.

import { type RecordedUser, type Session, USER_ABSENCE, type UserStore } from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { MemoryConsents } from './consents.ts';
import type { ExpiringMap } from './expiring-map.ts';
import type { MemoryLogins } from './logins.ts';
import type { MemoryUses } from './uses.ts';
import type { MemoryWatermarks } from './watermarks.ts';

/** A recorded user; `absentSince` in epoch milliseconds. */
interface UserRecord {
  readonly subject: string;
  readonly credential: string;
  readonly absentSince: number | undefined;
}

/** The dependencies of {@link MemoryUsers}; a change ends what the others hold. */
interface MemoryUsersParts {
  readonly clock: Clock;
  readonly users: ExpiringMap<UserRecord>;
  readonly sessions: ExpiringMap<{ readonly session: Session }>;
  readonly logins: MemoryLogins;
  readonly consents: MemoryConsents;
  readonly uses: MemoryUses;
  readonly watermarks: MemoryWatermarks;
}

/** {@link UserStore} in this process. */
export class MemoryUsers implements UserStore {
  readonly #parts: MemoryUsersParts;

  constructor(parts: MemoryUsersParts) {
    this.#parts = parts;
  }

  async list(): Promise<ReadonlyMap<string, RecordedUser>> {
    const records = this.#parts.users.valuesWhere(() => true);
    return new Map(
      records.map(({ subject, credential, absentSince }) => [
        subject,
        { credential, isAbsent: absentSince !== undefined },
      ]),
    );
  }

  async record(
    subject: string,
    credential: string,
    expected?: string,
  ): Promise<'recorded' | 'unchanged' | 'outdated' | 'ended'> {
    const record = this.#parts.users.get(subject);
    const isChanged = record !== undefined && record.credential !== credential;
    if (isChanged && record.credential !== expected) return 'outdated';
    this.#note({ subject, credential, absentSince: undefined });
    if (record === undefined) return 'recorded';
    if (!isChanged && !this.#isLongAbsent(record)) return 'unchanged';
    this.#end(subject, { forgets: record.absentSince !== undefined });
    return 'ended';
  }

  async recordAbsence(subject: string): Promise<'unknown' | 'absent' | 'ended'> {
    const record = this.#parts.users.get(subject);
    if (record === undefined) return 'unknown';
    if (!this.#isLongAbsent(record)) {
      this.#note({ ...record, absentSince: record.absentSince ?? this.#parts.clock.now() });
      return 'absent';
    }
    this.#end(subject, { forgets: true });
    this.#parts.users.delete(subject);
    return 'ended';
  }

  /** The credential that applies: the recorded one, or the given one, which is recorded then. */
  noteIfNew(subject: string, credential: string): string {
    const recorded = this.#parts.users.get(subject)?.credential;
    if (recorded === undefined) this.#note({ subject, credential, absentSince: undefined });
    return recorded ?? credential;
  }

  #note(record: UserRecord): void {
    this.#parts.users.set(record.subject, record, Number.POSITIVE_INFINITY);
  }

  #isLongAbsent({ absentSince }: UserRecord): boolean {
    return absentSince !== undefined && this.#parts.clock.now() - absentSince >= USER_ABSENCE;
  }

  #end(subject: string, { forgets }: { readonly forgets: boolean }): void {
    const { watermarks, sessions, logins, consents, uses } = this.#parts;
    watermarks.raiseNow({ kind: 'user', subject });
    sessions.deleteWhere((record) => record.session.subject === subject);
    logins.endAll(subject);
    if (!forgets) return;
    consents.withdrawAll(subject);
    uses.forgetAll(subject);
  }
}
