// The stores of people who sign in: their sessions, the requests that wait for their decision, and the consents they
// gave to clients.

import type { Grant } from './grant-store.ts';

/**
 * A signed-in browser. `sessionId` is the SHA-256 of the cookie's value: a copy of the store is not enough to sign in.
 */
export interface Session {
  readonly sessionId: string;
  readonly subject: string;
  readonly username: string;
  readonly displayName: string;
  readonly authTime: number;
  readonly idleLifetime: number;
  readonly absoluteLifetime: number;
}

export interface SessionStore {
  create(session: Session): Promise<void>;
  /** The living session, its idle time renewed; undefined once ended, idle- or absolute-expired. */
  use(sessionId: string): Promise<Session | undefined>;
  end(sessionId: string): Promise<void>;
  /** Ends every session of the person. A session that is created concurrently either ends too or is listed. */
  endAll(subject: string): Promise<void>;
  /** The person's living sessions, in no order; none is renewed. */
  list(subject: string): Promise<readonly Session[]>;
}

/** The checked authorization request a decision is recorded against (security row U9). */
export interface AuthorizationSnapshot {
  readonly clientUid: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scope: readonly string[];
  readonly audiences: readonly string[];
  readonly codeChallenge: string;
  readonly state: string | undefined;
}

export interface Interaction {
  readonly interactionId: string;
  readonly sessionId: string;
  readonly subject: string;
  readonly authTime: number;
  readonly request: AuthorizationSnapshot;
  readonly decision: 'allow' | 'deny' | undefined;
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
  create(interaction: Omit<Interaction, 'decision'>, lifetime: number): Promise<void>;
  /** The interaction if it is alive and was opened by this session. */
  read(interactionId: string, sessionId: string): Promise<Interaction | undefined>;
  /** The first decision stays: `decided` for it and for the same one again, `conflict` for another. */
  decide(
    interactionId: string,
    sessionId: string,
    decision: 'allow' | 'deny',
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
  /** Adds the scope at each of the audiences to what was given before. `lifetime` starts again. */
  give(
    subject: string,
    clientUid: string,
    allowed: Pick<Grant, 'scope' | 'audiences'>,
    lifetime: number,
  ): Promise<void>;
  withdraw(subject: string, clientUid: string): Promise<void>;
  /** All that the person has given and not withdrawn, in no order. */
  list(subject: string): Promise<readonly GivenConsent[]>;
}
