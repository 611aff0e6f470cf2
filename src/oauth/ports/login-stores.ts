// The stores of people who sign in: the local users as all replicas know them, sessions, the requests that wait for a
// decision, the consents to clients, and the uses of what was granted.

import type { PendingLogout } from './logout-store.ts';
import type { Confirmation } from './token-stores.ts';

/** How long a local user is absent from the list of users before all that the person holds ends; milliseconds. */
export const USER_ABSENCE = 3_600_000;

/** A local user as recorded by the replica that saw the list of users change last. */
export interface RecordedUser {
  /** {@link NamedPerson.credential} of an enabled user, another value for a disabled one; without blanks. */
  readonly credential: string;
  readonly isAbsent: boolean;
}

/**
 * The credentials of the local users that all replicas have agreed on. A replica compares its list of users with them,
 * so a change is found after a restart as well. It ends what the person holds once, whichever replica finds it first.
 */
export interface UserStore {
  /** The recorded users by subject, without those in a part of the store that is unavailable. */
  list(): Promise<ReadonlyMap<string, RecordedUser>>;
  /**
   * Records the credential of a user on the list: none recorded → recorded · the same → unchanged · another than `expected` →
   * outdated, nothing changes · else ended: the user watermark is raised to now and all sessions end, as by
   * `endAll`. An absence ends;
   * after one of at least {@link USER_ABSENCE}, or with another credential, the answer is `ended`, the consents are
   * withdrawn and the uses are forgotten, too.
   * @param expected the recorded credential that this one replaces
   */
  record(
    subject: string,
    credential: string,
    expected?: string,
  ): Promise<'recorded' | 'unchanged' | 'outdated' | 'ended'>;
  /**
   * For a recorded user who is not on the list: not recorded → unknown · absent since now, or for less than
   * {@link USER_ABSENCE} → absent, nothing ends · else ended: the watermark is raised, sessions end, consents are
   * withdrawn, uses are forgotten, and the record is removed.
   */
  recordAbsence(subject: string): Promise<'unknown' | 'absent' | 'ended'>;
}

/**
 * A signed-in browser. `sessionId` is `<shard of the person>.<SHA-256 of the cookie's value>`: a copy of the store is
 * not enough to sign in.
 */
export interface Session {
  readonly sessionId: string;
  /** Its name towards clients: random, and the same when the same person signs in again in the same browser. */
  readonly sid: string;
  readonly subject: string;
  readonly username: string;
  readonly displayName: string;
  readonly authTime: number;
  readonly idleLifetime: number;
  readonly absoluteLifetime: number;
  /** The IP address of the sign-in; undefined in records of versions that did not record it. */
  readonly address?: string | undefined;
  /** The family of the browser; undefined where it is not known. */
  readonly browser?: string | undefined;
  /** The name of the identity provider that the person signed in by; undefined for a local user. */
  readonly provider?: string | undefined;
  /** When the person signed in there, epoch milliseconds; undefined where the provider does not say. */
  readonly upstreamAuthTime?: number | undefined;
  /** The MAC of the record, from `seal`. */
  readonly mac?: string | undefined;
}

/** A session that begins; the store stamps its `authTime`. */
export type NewSession = Omit<Session, 'authTime' | 'mac'>;

/** The sessions of a person. One whose `authTime` is at or before the user watermark is over. */
export interface SessionStore {
  /**
   * Begins a session at the time of the store.
   * @param credential that of the local user who signed in; undefined for other people. Recorded where none is; where
   *   another one is recorded the list of users of this replica is outdated: `outdated`, and no session begins
   * @param succeeds a session of the same person in the same browser: it ends without logouts, and where it was
   *   active until now the new session has its `sid`, with its recorded logins
   */
  create(
    session: NewSession,
    credential: string | undefined,
    succeeds?: Pick<Session, 'sessionId' | 'sid'>,
  ): Promise<Session | 'outdated'>;
  /** Adds the MAC to an active session. */
  seal(session: Session, mac: string): Promise<void>;
  /** The active session, its idle time renewed; undefined once ended, idle- or absolute-expired. */
  use(sessionId: string): Promise<Session | undefined>;
  /**
   * Ends a session, and makes of its recorded logins one pending logout for each client, in one action.
   * @returns the logouts that are pending for it now
   */
  end(session: Pick<Session, 'sessionId' | 'subject' | 'sid'>): Promise<readonly PendingLogout[]>;
  /** Ends every session of the person in one action; the logouts of their recorded logins are pending then. */
  endAll(subject: string): Promise<void>;
  /**
   * The person's active sessions, in no order; none is renewed.
   * @param most the most sessions that are read, those with the latest absolute end, also unused ones; all by default
   */
  list(subject: string, most?: number): Promise<readonly Session[]>;
}

/** What a request with scope `openid` says about the sign-in (OpenID Connect Core §3.1.2.1), validated and ready to use. */
export interface OpenidRequest {
  /** Goes into the ID token as it is. */
  readonly nonce: string | undefined;
  /** `none` is alone; `login` and `consent` may come together. */
  readonly prompt: readonly Prompt[];
  /** The greatest age of the sign-in, in seconds. */
  readonly maxAge: number | undefined;
  /** The user name to begin with. */
  readonly loginHint: string | undefined;
  /** The one person that the answer may be about, by the ID token that the client sent as a hint. */
  readonly subject: string | undefined;
}

/** What the server is asked to show a person, or to show nothing. */
export type Prompt = 'none' | 'login' | 'consent' | 'select_account';

/** The checked authorization request a decision is recorded against (security row U9). */
export interface AuthorizationSnapshot {
  readonly clientUid: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scope: readonly string[];
  readonly audiences: readonly string[];
  readonly codeChallenge: string;
  /** The key that the code will be bound to (`dpop_jkt`); undefined where the client did not ask for it. */
  readonly confirmation?: Confirmation | undefined;
  readonly state: string | undefined;
  /** The languages of pages, the preferred one first, as well-formed tags; undefined where the request names none. */
  readonly uiLocales?: readonly string[] | undefined;
  /** Undefined unless the scope has `openid`. */
  readonly openid?: OpenidRequest | undefined;
}

export interface Interaction {
  readonly interactionId: string;
  readonly sessionId: string;
  readonly subject: string;
  readonly authTime: number;
  readonly request: AuthorizationSnapshot;
  readonly decision: 'allow' | 'deny' | undefined;
  /** The MACs of the record and of the decision; a store keeps them as they are. */
  readonly mac?: string | undefined;
  readonly decisionMac?: string | undefined;
}

/** How many requests of one session may wait for a decision: one person must not fill the store for all others. */
export const OPEN_INTERACTIONS_PER_SESSION = 20;

/** One attempt to take an interaction. */
export interface TakeAttempt {
  /** Random and unique to this attempt. */
  readonly attemptId: string;
  /** Earlier attempts of the same browser that got no answer: one of them may have taken the interaction. */
  readonly after: readonly string[];
}

/** One person's one decision about one request. */
export interface InteractionStore {
  /** Above {@link OPEN_INTERACTIONS_PER_SESSION} of a session the oldest is removed. */
  create(interaction: Omit<Interaction, 'decision' | 'decisionMac'>, lifetime: number): Promise<void>;
  /** The interaction if it has not expired and was opened by this session. */
  read(interactionId: string, sessionId: string): Promise<Interaction | undefined>;
  /** The first decision stays: `decided` for it and for the same one again, `conflict` for another. */
  decide(
    interactionId: string,
    sessionId: string,
    decision: 'allow' | 'deny',
    mac?: string,
  ): Promise<'decided' | 'conflict' | 'gone'>;
  /**
   * Takes a decided interaction, once. An attempt that lists the holder in `after` takes it over; every other attempt
   * gets nothing. A taken interaction can no longer be read or decided.
   * @returns undefined if it is gone, taken by another, undecided or another session's
   */
  take(interactionId: string, sessionId: string, by: TakeAttempt): Promise<Interaction | undefined>;
}

/**
 * The consent of a person to a client: the scope allowed at each resource. By resource, because `read` at one and
 * `write` at another is not `write` at both. Entries only widen until withdrawn.
 */
export type Consent = ReadonlyMap<string, readonly string[]>;

/** A consent with the client it was given to. */
export interface GivenConsent {
  readonly clientUid: string;
  readonly access: Consent;
}

export interface ConsentStore {
  read(subject: string, clientUid: string): Promise<Consent | undefined>;
  /** Adds to what was given before, at each audience by itself. `lifetime` starts again. */
  give(subject: string, clientUid: string, allowed: Consent, lifetime: number): Promise<void>;
  withdraw(subject: string, clientUid: string): Promise<void>;
  /** All that the person has given and not withdrawn, in no order. */
  list(subject: string): Promise<readonly GivenConsent[]>;
}

/** How long a use is remembered, in milliseconds: no grant lives so long without one. */
export const USE_MEMORY = 365 * 24 * 3_600_000;

/** A use that comes sooner after the last recorded one is not recorded; milliseconds. */
export const USE_INTERVAL = 3_600_000;

/** When a client got codes and tokens for a person; epoch milliseconds, the last one short by up to {@link USE_INTERVAL}. */
export interface ClientUse {
  readonly clientUid: string;
  readonly firstUsed: number;
  readonly lastUsed: number;
}

/** Which clients have used the access of a person. For the person to read: nothing is permitted or refused by it. */
export interface UseStore {
  /**
   * The client gets a token for the person now; `GrantStore.issue` records the same of a code: nothing remembered → the
   * first and the last use are now · the last use at least {@link USE_INTERVAL} ago → the last is now · else nothing
   * changes.
   */
  note(subject: string, clientUid: string): Promise<void>;
  forget(subject: string, clientUid: string): Promise<void>;
  /** All of the person that are remembered, in no order. */
  list(subject: string): Promise<readonly ClientUse[]>;
}
