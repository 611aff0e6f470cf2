// The logins that sessions recorded, and the pending logouts of ended sessions, over Maps.

import {
  type Login,
  type LogoutName,
  type LogoutStore,
  type PendingLogout,
  RECORDED_LOGINS,
} from '../oauth/ports/logout-store.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { shardOfPerson } from '../oauth/values/shard.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** A recorded login: a grant of a client. */
interface RecordedLogin extends Pick<Login, 'offline' | 'namespace' | 'mac'> {
  readonly clientUid: string;
  readonly grantId: string;
}

/** The logins of one session, the oldest first. */
export interface SessionLogins {
  readonly subject: string;
  readonly sid: string;
  readonly logins: readonly RecordedLogin[];
}

/** A pending logout, from when it can be taken, and how often it was. */
export interface PendingRecord {
  readonly logout: PendingLogout;
  readonly due: number;
  readonly tries: number;
}

/** The dependencies of {@link MemoryLogins}. */
interface MemoryLoginsParts {
  readonly clock: Clock;
  readonly recorded: ExpiringMap<SessionLogins>;
  readonly pending: ExpiringMap<PendingRecord>;
}

/** {@link LogoutStore} in this process, and the logins that its entries come from. */
export class MemoryLogins implements LogoutStore {
  readonly #clock: Clock;
  readonly #recorded: ExpiringMap<SessionLogins>;
  readonly #pending: ExpiringMap<PendingRecord>;

  constructor({ clock, recorded, pending }: MemoryLoginsParts) {
    this.#clock = clock;
    this.#recorded = recorded;
    this.#pending = pending;
  }

  /** Records a login of a session until the session's absolute end. @returns the one that makes room for it */
  note(
    { subject, sid }: Pick<SessionLogins, 'subject' | 'sid'>,
    login: RecordedLogin,
    endsAt: number,
  ): RecordedLogin | undefined {
    const key = keyOf(subject, sid);
    const logins = [...(this.#recorded.get(key)?.logins ?? []), login];
    const leaving = logins.length > RECORDED_LOGINS ? oldestOfMost(logins) : undefined;
    const kept = logins.filter((each) => each !== leaving);
    this.#recorded.set(key, { subject, sid, logins: kept }, endsAt);
    return leaving;
  }

  /** Keeps the recorded logins of a session until the end of its successor. */
  keep({ subject, sid }: Pick<SessionLogins, 'subject' | 'sid'>, endsAt: number): void {
    const key = keyOf(subject, sid);
    const recorded = this.#recorded.get(key);
    if (recorded !== undefined) this.#recorded.set(key, recorded, endsAt);
  }

  /** The session with this `sid` has ended: the logouts of its logins are pending. @returns these logouts */
  end({ subject, sid }: Pick<SessionLogins, 'subject' | 'sid'>): readonly PendingLogout[] {
    const key = keyOf(subject, sid);
    const recorded = this.#recorded.get(key);
    if (recorded === undefined) return [];
    this.#recorded.delete(key);
    const logouts = pendingOf(recorded, this.#clock.now());
    for (const each of logouts) this.#keep({ logout: each, due: 0, tries: 0 });
    return logouts;
  }

  /** All sessions of the person have ended. */
  endAll(subject: string): void {
    for (const recorded of this.#recorded.valuesWhere((each) => each.subject === subject)) this.end(recorded);
  }

  async list(shard: string, limit = 100): Promise<readonly PendingLogout[]> {
    const now = this.#clock.now();
    const records = this.#pending.valuesWhere(
      ({ logout, due }) => due <= now && shardOfPerson(logout.subject) === shard,
    );
    return records.slice(0, limit).map(({ logout }) => logout);
  }

  async take(name: LogoutName, lease: number): Promise<number | undefined> {
    const record = this.#pending.get(fieldOf(name));
    const now = this.#clock.now();
    if (record === undefined || record.due > now) return undefined;
    this.#keep({ ...record, due: now + lease, tries: record.tries + 1 });
    return record.tries;
  }

  async postpone(name: LogoutName, pause: number): Promise<void> {
    const record = this.#pending.get(fieldOf(name));
    if (record === undefined) return;
    this.#keep({ ...record, due: this.#clock.now() + pause });
  }

  #keep(record: PendingRecord): void {
    this.#pending.set(fieldOf(record.logout), record, Number.POSITIVE_INFINITY);
  }

  async acknowledge(name: LogoutName): Promise<boolean> {
    return this.#pending.delete(fieldOf(name));
  }
}

/** The oldest login of the client with the most, among those of the namespace with the most. */
function oldestOfMost(logins: readonly RecordedLogin[]): RecordedLogin | undefined {
  const ofNamespace = largest(Map.groupBy(logins, ({ namespace }) => namespace));
  return largest(Map.groupBy(ofNamespace, ({ clientUid }) => clientUid))[0];
}

/** The first of the largest groups. */
function largest(groups: ReadonlyMap<string, readonly RecordedLogin[]>): readonly RecordedLogin[] {
  return [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most), []);
}

/** One entry for each client, with the grants that do not survive. */
function pendingOf({ subject, sid, logins }: SessionLogins, since: number): readonly PendingLogout[] {
  return [...Map.groupBy(logins, ({ clientUid }) => clientUid)].map(([clientUid, own]) => {
    const grantIds = own.filter(({ offline }) => !offline).map(({ grantId }) => grantId);
    const mac = own.at(-1)?.mac;
    return mac === undefined
      ? { clientUid, subject, sid, grantIds, since }
      : { clientUid, subject, sid, grantIds, since, mac };
  });
}

function keyOf(subject: string, sid: string): string {
  return JSON.stringify([subject, sid]);
}

function fieldOf({ subject, sid, clientUid }: LogoutName): string {
  return JSON.stringify([subject, sid, clientUid]);
}
