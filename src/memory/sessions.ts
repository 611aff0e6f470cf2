// The session store over a Map: signed-in browsers. A session ends at its idle or absolute lifetime, whichever comes
// first.

import type { NewSession, Session, SessionStore } from '../oauth/ports/login-stores.ts';
import type { PendingLogout } from '../oauth/ports/logout-store.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';
import type { MemoryLogins } from './logins.ts';
import type { MemoryUsers } from './users.ts';
import type { MemoryWatermarks } from './watermarks.ts';

/** A session as stored, with its absolute end. */
export interface SessionRecord {
  readonly session: Session;
  readonly endsAt: number;
}

/** The dependencies of {@link MemorySessions}. */
interface MemorySessionsParts {
  readonly clock: Clock;
  readonly sessions: ExpiringMap<SessionRecord>;
  readonly logins: MemoryLogins;
  readonly users: MemoryUsers;
  readonly watermarks: MemoryWatermarks;
}

/** {@link SessionStore} in this process. */
export class MemorySessions implements SessionStore {
  readonly #clock: Clock;
  readonly #sessions: ExpiringMap<SessionRecord>;
  readonly #logins: MemoryLogins;
  readonly #users: MemoryUsers;
  readonly #watermarks: MemoryWatermarks;

  constructor({ clock, sessions, logins, users, watermarks }: MemorySessionsParts) {
    this.#clock = clock;
    this.#sessions = sessions;
    this.#logins = logins;
    this.#users = users;
    this.#watermarks = watermarks;
  }

  async create(
    session: NewSession,
    credential: string | undefined,
    succeeds?: Pick<Session, 'sessionId' | 'sid'>,
  ): Promise<Session | 'outdated'> {
    if (credential !== undefined && this.#users.noteIfNew(session.subject, credential) !== credential)
      return 'outdated';
    const { subject } = session;
    const former = succeeds && this.#sessions.get(succeeds.sessionId);
    const livesOn = former?.session.subject === subject && this.#isAlive(former);
    const authTime = this.#clock.now();
    const endsAt = authTime + session.absoluteLifetime;
    const begun = { ...session, sid: livesOn ? (succeeds?.sid ?? session.sid) : session.sid, authTime };
    this.#keep({ session: begun, endsAt });
    if (livesOn) {
      this.#sessions.delete(former.session.sessionId);
      this.#logins.keep(begun, endsAt);
    }
    return begun;
  }

  async seal({ sessionId }: Session, mac: string): Promise<void> {
    const record = this.#sessions.get(sessionId);
    if (record !== undefined) this.#keep({ ...record, session: { ...record.session, mac } });
  }

  async use(sessionId: string): Promise<Session | undefined> {
    const record = this.#sessions.get(sessionId);
    if (record === undefined || !this.#isAlive(record)) return undefined;
    this.#keep(record);
    return record.session;
  }

  async end(session: Pick<Session, 'sessionId' | 'subject' | 'sid'>): Promise<readonly PendingLogout[]> {
    this.#sessions.delete(session.sessionId);
    return this.#logins.end(session);
  }

  async endAll(subject: string): Promise<void> {
    this.#sessions.deleteWhere((record) => record.session.subject === subject);
    this.#logins.endAll(subject);
  }

  async list(subject: string, most = Number.POSITIVE_INFINITY): Promise<readonly Session[]> {
    const records = this.#sessions.valuesWhere((record) => record.session.subject === subject);
    const active = records.filter((record) => this.#isAlive(record));
    const longest = active.toSorted((one, other) => other.endsAt - one.endsAt).slice(0, most);
    return longest.map(({ session }) => session);
  }

  #isAlive({ session }: SessionRecord): boolean {
    return session.authTime > this.#watermarks.ofUser(session.subject);
  }

  #keep(record: SessionRecord): void {
    const idleAt = this.#clock.now() + record.session.idleLifetime;
    this.#sessions.set(record.session.sessionId, record, Math.min(idleAt, record.endsAt));
  }
}
