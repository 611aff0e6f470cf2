// The ports of the protocol core: clock, random, people, limits and stores. The store interfaces are in grant-store.ts,
// token-stores.ts and login-stores.ts, the audit port is in audit.ts.
// A store answers with a named outcome. Each method is one atomic action, and its comment is the state table; `memory/`
// is the readable implementation. All times are epoch milliseconds of the store's clock, all durations milliseconds
// unless named `…Seconds`. Any method may throw StoreUnavailableError; it then changed nothing that a retry could not
// undo.

import type { GrantStore } from './grant-store.ts';
import type { ConsentStore, InteractionStore, SessionStore, UserStore, UseStore } from './login-stores.ts';
import type { LogoutStore } from './logout-store.ts';
import type { PersonStore } from './person-store.ts';
import type { AccessTokenStore, RevokedTokenStore, WatermarkStore } from './token-stores.ts';

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Uint8Array;
}

/**
 * Schedules a task for the end of this tick, after all callbacks that are ready in the event loop; `setImmediate` does.
 */
export type EndOfTick = (task: () => void) => void;

/**
 * Records of used values, each of which may be used once. A full store refuses (StoreUnavailableError); it evicts no
 * record before its expiry.
 */
export interface ReplayStore {
  /**
   * `fresh` the first time for this purpose and value until `expiresAt`, else `seen`. `lost`, and nothing is recorded, where
   * the store may have lost the record of a value that was issued at `issuedAt`: an emptied store revives no value.
   * @param issuedAt absent for values that are recorded only to be noticed: they are never `lost`
   */
  claim(purpose: string, value: string, expiresAt: number, issuedAt?: number): Promise<'fresh' | 'seen' | 'lost'>;
}

/**
 * Counters that must hold over all replicas (sign-in attempts). A fixed window per key. A full store forgets the oldest
 * window rather than refusing: a flood of new addresses must not lock out all users.
 */
export interface RateLimitStore {
  /** Counts one. Answers whole seconds to wait when the count in this window is now above `limit`, else 0. */
  hit(key: string, limit: number, windowMilliseconds: number): Promise<number>;
  /** Undoes one hit (the attempt turned out to be good); never below zero. */
  refund(key: string): Promise<void>;
}

/** All stores, as wired by a process. */
export interface Stores {
  readonly grants: GrantStore;
  readonly accessTokens: AccessTokenStore;
  readonly revokedTokens: RevokedTokenStore;
  readonly watermarks: WatermarkStore;
  readonly users: UserStore;
  readonly persons: PersonStore;
  readonly sessions: SessionStore;
  readonly logouts: LogoutStore;
  readonly interactions: InteractionStore;
  readonly consents: ConsentStore;
  readonly uses: UseStore;
  readonly replays: ReplayStore;
  readonly rateLimits: RateLimitStore;
}

/** A person who has proven who they are (RFC 6749 §1.1). */
export interface ResourceOwner {
  /** `usr_…`; can never equal a client id. */
  readonly subject: string;
  readonly username: string;
  readonly displayName: string;
  /** {@link NamedPerson.credential}, by which the person signed in; undefined where another party asserts the person. */
  readonly credential: string | undefined;
}

/** The record of a name. Proof of nothing: any caller can name a person. */
export interface NamedPerson {
  /** `usr_…` */
  readonly subject: string;
  /** A digest of the person's credential: with another password it is another one. Undefined for a disabled person. */
  readonly credential: string | undefined;
}

/** The current claims of a person, for clients that may have them. Unknown ones are undefined. */
export interface Person {
  /** `usr_…` */
  readonly subject: string;
  readonly username: string;
  readonly displayName: string | undefined;
  /** A verified address: another one is no address of the person. */
  readonly email: string | undefined;
  /** In the order of their source, each once. */
  readonly groups: readonly string[];
  /** The identity provider that asserts the person; undefined for a local user. */
  readonly provider?: AssertingProvider | undefined;
}

/** The provider as of its assertion. */
export interface AssertingProvider {
  readonly name: string;
  readonly issuer: string;
  readonly type: string;
  /** An address that it gave and did not verify. It is for blocks alone, and never disclosed. */
  readonly unverifiedEmail?: string | undefined;
  /** Epoch milliseconds. */
  readonly verifiedAt: number;
}

/** The people who can sign in: local users, and those of identity providers. */
export interface People {
  /** Whether a person may sign in by a password. */
  readonly takesPasswords: boolean;
  /** The person of a name as typed; undefined where there is none. No answer to a caller may show which it was. */
  lookUp(username: string): Promise<NamedPerson | undefined>;
  /** The person, or undefined for a wrong password, an unknown or a disabled user: the same work in each case. */
  authenticate(username: string, password: string): Promise<ResourceOwner | undefined>;
  /**
   * The person as of now; undefined for one who may hold nothing now ({@link People.revokedBefore}).
   * @throws StoreUnavailableError for people of providers alone
   */
  find(subject: string): Promise<Person | undefined>;
  /**
   * The kill switch of a person who was found, epoch milliseconds: all that the person holds from at or before this time is
   * revoked. Infinity for a person who may hold nothing now: absent, disabled, of a provider that is gone, or revoked
   * until a time ahead.
   */
  revokedBefore(person: Person): number;
}

/**
 * Limits failed client authentication per (client, address) and per address, in memory of one replica. Only failures
 * reach it, so it never refuses a right credential.
 */
export interface AuthenticationLimiter {
  /**
   * Counts one failed authentication, unless this pair or this address has failed too often already.
   * @param clientId as claimed, registered or not, of any length; undefined where the request names none
   * @returns whole seconds to wait if this failure is above a limit, else 0
   */
  failed(clientId: string | undefined, address: string): number;
}
