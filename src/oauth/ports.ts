// What the protocol needs from outside: time, chance, and the stores of per-grant state.
// Stores answer in words; each method is one atomic action and its comment is the state table. `memory/` is the readable
// form. All times are epoch milliseconds of the store's clock, all durations milliseconds unless named `…Seconds`.
// Any method may throw StoreUnavailableError; it then changed nothing that a repeat could not undo.

import type { ErrorCode } from './error.ts';

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Uint8Array;
}

/** Runs a task once everything that is ready in this turn of the event loop has run; `setImmediate` does. */
export type EndOfTurn = (task: () => void) => void;

// Grants: an authorization code and the refresh family it starts are one record.

/** Who consented to what for whom: everything a code is bound to (security row K4). */
export interface Grant {
  /** `<shard>.<SHA-256(family)>`: the only name of the grant outside its handles; `grant_id` in tokens. */
  readonly grantId: string;
  readonly clientUid: string;
  readonly clientId: string;
  readonly subject: string;
  /** The session the person was signed in with; undefined when there was none. */
  readonly sessionId: string | undefined;
  /** When the person signed in. */
  readonly authTime: number;
  readonly scope: readonly string[];
  /** The resources the grant covers; never empty. */
  readonly audiences: readonly string[];
  readonly redirectUri: string;
  /** RFC 7636 S256 challenge; undefined only for records made by other means than our authorization endpoint. */
  readonly codeChallenge: string | undefined;
}

/** A grant as stored. */
export interface StoredGrant extends Grant {
  readonly createdAt: number;
}

/** What a token request asks of a grant, and what its client may have today; judged by `narrowAccess`. */
export interface AccessRequest {
  /** The `scope` parameter; undefined when absent. */
  readonly scope: readonly string[] | undefined;
  /** The one `resource` parameter; undefined when absent. */
  readonly resource: string | undefined;
  readonly allowedScopes: readonly string[];
  readonly allowedAudiences: readonly string[];
  readonly defaultAudience: string | undefined;
}

/** An opaque access token about to be written by the same action that redeems or rotates. */
export interface NewAccessToken {
  /** `<shard>.<SHA-256(token)>`. */
  readonly tokenId: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

/** An opaque access token as stored. */
export interface StoredAccessToken extends NewAccessToken {
  readonly clientUid: string;
  readonly clientId: string;
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: string;
  /** Undefined for client_credentials. */
  readonly grantId: string | undefined;
  /** When the person signed in; undefined where no person was involved. */
  readonly authTime: number | undefined;
}

/** An alert written in the same action as the revocation it reports; one per grant for each type. Holds no token. */
export interface Alert {
  readonly id: string;
  readonly type: 'refresh_token.reuse_detected' | 'authorization_code.replayed' | 'state_lost';
  readonly time: number;
  readonly clientUid: string;
  readonly clientId: string;
  readonly subject: string;
  readonly grantId: string;
  readonly presentedGeneration: number | undefined;
  readonly currentGeneration: number | undefined;
  /** Addresses of this and of the last good use. */
  readonly address: string;
  readonly lastAddress: string | undefined;
  readonly action: 'grant_revoked' | 'healed_forward';
}

export interface RedeemRequest {
  readonly grantId: string;
  /** SHA-256 of the code's secret part, base64url. */
  readonly secretHash: string;
  readonly clientUid: string;
  readonly redirectUri: string;
  /** S256 of a well-formed verifier; undefined when the verifier is absent or malformed. */
  readonly verifierChallenge: string | undefined;
  /** A random id of this try: the same id again is given the first answer, without an alert. */
  readonly attemptId: string;
  /** How long from the grant's creation its record is needed: nothing issued under it lives longer. */
  readonly retention: number;
  readonly access: AccessRequest;
  /** See {@link RotateRequest}. */
  readonly revokedBefore?: number;
  /** Set for clients with opaque access tokens: written if and only if the code is redeemed. */
  readonly accessToken: NewAccessToken | undefined;
  readonly address: string;
}

export type RedeemAnswer =
  | {
      readonly outcome: 'redeemed';
      readonly grant: StoredGrant;
      readonly scope: readonly string[];
      readonly audience: string;
    }
  /** Already redeemed and all else right: the grant is revoked now. `alert` is undefined if it had been raised before. */
  | { readonly outcome: 'replayed'; readonly alert: Alert | undefined }
  /** Missing, expired, revoked, or dead of wrong verifiers. */
  | { readonly outcome: 'gone' }
  /** Another secret or another client; nothing changed. */
  | { readonly outcome: 'no_match' }
  /** Wrong redirect_uri, no or malformed verifier, a verifier for a code without challenge; nothing changed. */
  | { readonly outcome: 'bad_proof' }
  /** Redeemed, but a kill switch had ended the grant: nothing may be issued. */
  | { readonly outcome: 'ended' }
  /** A well-formed wrong verifier; counted, the fifth kills the code (never a revocation). */
  | { readonly outcome: 'wrong_verifier' }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

export interface RotateRequest {
  readonly grantId: string;
  readonly clientUid: string;
  /** The generation in the presented token; its MAC has been checked. */
  readonly generation: number;
  readonly rotation: 'Always' | 'Never';
  readonly reuseGrace: number;
  readonly idleLifetime: number;
  readonly absoluteLifetime: number;
  readonly attemptId: string;
  readonly access: AccessRequest;
  readonly accessToken: NewAccessToken | undefined;
  readonly address: string;
  /** What {@link GrantStore} `subjectOf` said; a store that needs it and is not told asks itself. */
  readonly subject?: string;
  /**
   * Epoch milliseconds. Where it is given, kill switches count: a grant made at or before this, or at or before a watermark
   * that `watermarks.read` would answer in the same moment, is `ended`.
   */
  readonly revokedBefore?: number;
}

export type RotateAnswer =
  | {
      /** `benign_retry`: the immediate predecessor within the grace, answered with the same successor. */
      readonly outcome: 'rotated' | 'benign_retry' | 'healed';
      readonly grant: StoredGrant;
      /** The generation the client's next refresh token has. */
      readonly generation: number;
      readonly scope: readonly string[];
      readonly audience: string;
      /** Set for `healed`: the store had lost writes. */
      readonly alert: Alert | undefined;
    }
  /** A kill switch has ended the grant. It did not move, unless the switch was thrown in that very moment. */
  | { readonly outcome: 'ended' }
  /** An already rotated token: the grant is revoked now. `alert` is undefined if it had been raised before. */
  | { readonly outcome: 'reused'; readonly alert: Alert | undefined }
  /** Missing, revoked, never redeemed, idle- or absolute-expired. */
  | { readonly outcome: 'gone' }
  /** Another client's; nothing changed. */
  | { readonly outcome: 'no_match' }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

/** What introspection and revocation see of a grant. */
export interface GrantState {
  readonly grant: StoredGrant;
  readonly revoked: boolean;
  /** The current refresh generation; undefined while the code has not been redeemed. */
  readonly generation: number | undefined;
  /** When the current generation was last used or made. */
  readonly refreshedAt: number;
}

/** Codes and refresh families. Monotone: issued → redeemed → replayed; generations only grow; revoked is sticky. */
export interface GrantStore {
  /** Writes a grant whose code can be redeemed for `codeLifetime`. */
  issue(grant: Grant, secretHash: string, codeLifetime: number): Promise<void>;
  /**
   * Judges in this order: revoked or missing → gone · other secret or client → no_match · wrong redirect_uri, absent or
   * malformed verifier, verifier without challenge, anything else wrong on a redeemed code → bad_proof · well-formed
   * wrong verifier while issued → wrong_verifier (the fifth kills the code) · already redeemed → replayed, grant revoked
   * (same attempt id: the first answer) · expired → gone · access not covered → scope_exceeded, target_exceeded ·
   * else redeemed at generation 0, which is `ended` if a kill switch says so.
   */
  redeem(request: RedeemRequest): Promise<RedeemAnswer>;
  /**
   * Judges in this order: missing → gone · client differs → no_match · kill switches → ended · revoked, not redeemed,
   * idle- or absolute-expired → gone · same attempt id → the first answer · generation current → rotated (`Never`: same generation, idle time renewed) ·
   * current − 1 within the grace → benign_retry · above current → healed · else reused, grant revoked. In each of the
   * three good cases access that is not covered answers scope_exceeded or target_exceeded and changes nothing.
   */
  rotate(request: RotateRequest): Promise<RotateAnswer>;
  /** Whose the grant is; undefined when it is not known. It never changes. */
  subjectOf(grantId: string): Promise<string | undefined>;
  /** Kills a grant without an alert: `voided` codes, revocation, withdrawn consent. Idempotent. */
  revoke(grantId: string): Promise<void>;
  /** The grant if it is known and not past every lifetime; undefined otherwise. */
  read(grantId: string): Promise<GrantState | undefined>;
}

/** Opaque access tokens, by `<shard>.<hash>`. Those of a grant are written by redeem and rotate. */
export interface AccessTokenStore {
  /** client_credentials only. */
  write(token: StoredAccessToken): Promise<void>;
  /** Undefined once expired or revoked. */
  read(tokenId: string): Promise<StoredAccessToken | undefined>;
  revoke(tokenId: string): Promise<void>;
}

/** Marks on the ids of revoked JWT access tokens, kept until the token would have died by itself. */
export interface RevokedTokenStore {
  mark(jti: string, expiresAtSeconds: number): Promise<void>;
  has(jti: string): Promise<boolean>;
}

/** What a watermark is about. */
export type WatermarkSubject =
  | { readonly kind: 'global' }
  | { readonly kind: 'client'; readonly clientUid: string }
  | { readonly kind: 'user'; readonly subject: string }
  /** One person's grants to one client: raised when the consent is withdrawn. */
  | { readonly kind: 'consent'; readonly clientUid: string; readonly subject: string };

/** Not-before watermarks: a grant or token made at or before one is dead. They only rise. */
export interface WatermarkStore {
  /** Sets the watermark to the maximum of what it is and `time`. */
  raise(subject: WatermarkSubject, time: number): Promise<void>;
  /** The highest of the global, the client's, the user's and the pair's watermark; 0 when none was raised. */
  read(clientUid: string, subject: string | undefined): Promise<number>;
}

// Login state.

/** A signed-in browser. `sessionId` is the SHA-256 of the cookie's value: the store cannot be used to sign in. */
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

/** So many requests of one session wait for a decision; one person must not fill the store for all others. */
export const OPEN_INTERACTIONS_PER_SESSION = 20;

/** One person's one decision about one request. */
export interface InteractionStore {
  /** Of more than {@link OPEN_INTERACTIONS_PER_SESSION} of a session the oldest goes. */
  create(interaction: Omit<Interaction, 'decision'>, lifetime: number): Promise<void>;
  /** The interaction if it is alive and was opened by this session. */
  read(interactionId: string, sessionId: string): Promise<Interaction | undefined>;
  /** The first decision stays: `decided` for it and for the same one again, `conflict` for another. */
  decide(
    interactionId: string,
    sessionId: string,
    decision: 'allow' | 'deny',
  ): Promise<'decided' | 'conflict' | 'gone'>;
  /** Takes a decided interaction, once; undefined if it is gone, taken, undecided or another session's. */
  take(interactionId: string, sessionId: string): Promise<Interaction | undefined>;
}

/**
 * What a person has let a client do: the scope allowed at each resource. By resource, because `read` at one and `write` at
 * another is not `write` at both. Entries only widen until withdrawn.
 */
export type Consent = ReadonlyMap<string, readonly string[]>;

/** A consent with the client it was given to. */
export interface GivenConsent {
  readonly clientUid: string;
  readonly access: Consent;
}

export interface ConsentStore {
  read(subject: string, clientUid: string): Promise<Consent | undefined>;
  /** Adds the scope at each of the audiences to what was given before. `lifetime` runs anew. */
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

/** Marks on values that may be seen once. Flooding evicts nothing before its time: a full store refuses (StoreUnavailableError). */
export interface ReplayStore {
  /** `fresh` the first time for this purpose and value until `expiresAt`, else `seen`. */
  claim(purpose: string, value: string, expiresAt: number): Promise<'fresh' | 'seen'>;
}

/**
 * Counters that must hold over all replicas (sign-in attempts). A fixed window per key. A full store forgets the oldest
 * window rather than refusing: a flood of new addresses must not keep everybody out.
 */
export interface RateLimitStore {
  /** Counts one. Answers whole seconds to wait when the count in this window is now above `limit`, else 0. */
  hit(key: string, limit: number, windowMilliseconds: number): Promise<number>;
  /** Takes one count back (the attempt turned out to be good); never below zero. */
  refund(key: string): Promise<void>;
}

/** All stores, as wired by a process. */
export interface Stores {
  readonly grants: GrantStore;
  readonly accessTokens: AccessTokenStore;
  readonly revokedTokens: RevokedTokenStore;
  readonly watermarks: WatermarkStore;
  readonly sessions: SessionStore;
  readonly interactions: InteractionStore;
  readonly consents: ConsentStore;
  readonly replays: ReplayStore;
  readonly rateLimits: RateLimitStore;
}

// People.

/** A person who has proven who they are (RFC 6749 §1.1). */
export interface ResourceOwner {
  /** `usr_…`; can never equal a client id. */
  readonly subject: string;
  readonly username: string;
  readonly displayName: string;
}

/** Who people are: local users now, upstream OpenID Connect later. */
export interface ResourceOwners {
  /** The person, or undefined for a wrong password, an unknown or a disabled user: the same work in each case. */
  authenticate(username: string, password: string): Promise<ResourceOwner | undefined>;
  /** Whether this person may still hold sessions and grants. */
  isActive(subject: string): Promise<boolean>;
}

// What happened, for the audit stream, the metrics and the alert sinks.

/** One thing worth an audit line. Only these fields ever leave; none of them is a credential. */
export interface AuditEvent {
  readonly type:
    | 'token.issued'
    | 'token.refreshed'
    | 'token.refused'
    | 'token.revoked'
    | 'refresh_token.retried'
    | 'refresh_token.reuse_detected'
    | 'authorization_code.issued'
    | 'authorization_code.replayed'
    | 'state_lost'
    | 'code_challenge.repeated'
    | 'login.succeeded'
    | 'login.failed'
    | 'session.ended'
    | 'consent.given'
    | 'consent.denied'
    | 'consent.withdrawn'
    | 'key.activated'
    | 'client.accepted'
    | 'client.refused'
    | 'client.removed';
  readonly clientId?: string | undefined;
  readonly subject?: string | undefined;
  readonly grantId?: string | undefined;
  readonly grantType?: string | undefined;
  readonly tokenFormat?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly reason?: string | undefined;
  /** The code that {@link reason} is of; counted, never written. */
  readonly error?: ErrorCode | undefined;
  readonly address?: string | undefined;
  readonly keyId?: string | undefined;
  readonly alert?: Alert | undefined;
}

/** Where audit events go. Never throws, never waits. */
export interface Audit {
  record(event: AuditEvent): void;
}

/** Limits failed client authentication per (client, address) and per address, in memory of one replica. */
export interface AuthenticationLimiter {
  /**
   * Whole seconds to wait if this pair or this address has failed too often, else 0. Call before judging a secret.
   * @param clientId undefined for an id that is not registered: only the address counts then
   */
  waitSeconds(clientId: string | undefined, address: string): number;
  /** Counts one failed authentication. */
  failed(clientId: string | undefined, address: string): void;
}
