// The session store over a Map: signed-in browsers. A session ends at its idle or absolute lifetime, whichever comes
// first.

import type { Session, SessionStore } from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** A session as stored, with its absolute end. */
interface SessionRecord {
  readonly session: Session;
  readonly endsAt: number;
}

/** {@link SessionStore} in this process. */
export class MemorySessions implements SessionStore {
  readonly #clock: Clock;
  readonly #sessions: ExpiringMap<SessionRecord>;

  constructor({ clock, sessions }: { clock: Clock; sessions: ExpiringMap<SessionRecord> }) {
    this.#clock = clock;
    this.#sessions = sessions;
  }

  async create(session: Session): Promise<void> {
    this.#keep({ session, endsAt: this.#clock.now() + session.absoluteLifetime });
  }

  async use(sessionId: string): Promise<Session | undefined> {
    const record = this.#sessions.get(sessionId);
    if (record === undefined) return undefined;
    this.#keep(record);
    return record.session;
  }

  async end(sessionId: string): Promise<void> {
    this.#sessions.delete(sessionId);
  }

  async endAll(subject: string): Promise<void> {
    this.#sessions.deleteWhere((record) => record.session.subject === subject);
  }

  async list(subject: string): Promise<readonly Session[]> {
    return this.#sessions.valuesWhere(({ session }) => session.subject === subject).map(({ session }) => session);
  }

  #keep(record: SessionRecord): void {
    const idleAt = this.#clock.now() + record.session.idleLifetime;
    this.#sessions.set(record.session.sessionId, record, Math.min(idleAt, record.endsAt));
  }
}
