// The logins that sessions have noted, and the logouts that ended sessions owe, over Maps.

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

/** A login as noted: a grant of a client. */
interface NotedLogin extends Pick<Login, 'offline' | 'namespace' | 'mac'> {
  readonly clientUid: string;
  readonly grantId: string;
}

/** The logins of one session, the oldest first. */
export interface NotedLogins {
  readonly subject: string;
  readonly sid: string;
  readonly logins: readonly NotedLogin[];
}

/** An owed logout, from when it can be taken, and how often it was. */
export interface OwedRecord {
  readonly owed: PendingLogout;
  readonly due: number;
  readonly tries: number;
}

/** The dependencies of {@link MemoryLogins}. */
interface MemoryLoginsParts {
  readonly clock: Clock;
  readonly noted: ExpiringMap<NotedLogins>;
  readonly owed: ExpiringMap<OwedRecord>;
}

/** {@link LogoutStore} in this process, and the logins that its entries come from. */
export class MemoryLogins implements LogoutStore {
  readonly #clock: Clock;
  readonly #noted: ExpiringMap<NotedLogins>;
  readonly #owed: ExpiringMap<OwedRecord>;

  constructor({ clock, noted, owed }: MemoryLoginsParts) {
    this.#clock = clock;
    this.#noted = noted;
    this.#owed = owed;
  }

  /** Notes a login of a session until the session's absolute end. @returns the one that makes room for it */
  note(
    { subject, sid }: Pick<NotedLogins, 'subject' | 'sid'>,
    login: NotedLogin,
    endsAt: number,
  ): NotedLogin | undefined {
    const key = keyOf(subject, sid);
    const logins = [...(this.#noted.get(key)?.logins ?? []), login];
    const leaving = logins.length > RECORDED_LOGINS ? oldestOfMost(logins) : undefined;
    const kept = logins.filter((each) => each !== leaving);
    this.#noted.set(key, { subject, sid, logins: kept }, endsAt);
    return leaving;
  }

  /** Keeps what a session has noted until the end of its successor. */
  keep({ subject, sid }: Pick<NotedLogins, 'subject' | 'sid'>, endsAt: number): void {
    const key = keyOf(subject, sid);
    const noted = this.#noted.get(key);
    if (noted !== undefined) this.#noted.set(key, noted, endsAt);
  }

  /** The session with this `sid` has ended: what it has noted is owed. @returns what is owed by it */
  end({ subject, sid }: Pick<NotedLogins, 'subject' | 'sid'>): readonly PendingLogout[] {
    const key = keyOf(subject, sid);
    const noted = this.#noted.get(key);
    if (noted === undefined) return [];
    this.#noted.delete(key);
    const owed = owedBy(noted, this.#clock.now());
    for (const each of owed) this.#keep({ owed: each, due: 0, tries: 0 });
    return owed;
  }

  /** All sessions of the person have ended. */
  endAll(subject: string): void {
    for (const noted of this.#noted.valuesWhere((each) => each.subject === subject)) this.end(noted);
  }

  async list(shard: string, limit = 100): Promise<readonly PendingLogout[]> {
    const now = this.#clock.now();
    const records = this.#owed.valuesWhere(({ owed, due }) => due <= now && shardOfPerson(owed.subject) === shard);
    return records.slice(0, limit).map(({ owed }) => owed);
  }

  async take(name: LogoutName, lease: number): Promise<number | undefined> {
    const record = this.#owed.get(fieldOf(name));
    const now = this.#clock.now();
    if (record === undefined || record.due > now) return undefined;
    this.#keep({ ...record, due: now + lease, tries: record.tries + 1 });
    return record.tries;
  }

  async postpone(name: LogoutName, pause: number): Promise<void> {
    const record = this.#owed.get(fieldOf(name));
    if (record === undefined) return;
    this.#keep({ ...record, due: this.#clock.now() + pause });
  }

  #keep(record: OwedRecord): void {
    this.#owed.set(fieldOf(record.owed), record, Number.POSITIVE_INFINITY);
  }

  async acknowledge(owed: LogoutName): Promise<boolean> {
    return this.#owed.delete(fieldOf(owed));
  }
}

/** The oldest login of the client with the most, among those of the namespace with the most. */
function oldestOfMost(logins: readonly NotedLogin[]): NotedLogin | undefined {
  const ofNamespace = largest(Map.groupBy(logins, ({ namespace }) => namespace));
  return largest(Map.groupBy(ofNamespace, ({ clientUid }) => clientUid))[0];
}

/** The first of the largest groups. */
function largest(groups: ReadonlyMap<string, readonly NotedLogin[]>): readonly NotedLogin[] {
  return [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most), []);
}

/** One entry for each client, with the grants that do not survive. */
function owedBy({ subject, sid, logins }: NotedLogins, since: number): readonly PendingLogout[] {
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
