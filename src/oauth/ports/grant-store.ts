// The grant store: an authorization code and the refresh family it starts are one record. This file holds the record,
// the requests that redeem and rotate it, and the state tables of both. `tokens/handles.ts` defines how handles name a
// grant.

import type { Alert } from './audit.ts';
import type { Login } from './logout-store.ts';
import type { Confirmation, NewAccessToken } from './token-stores.ts';

/** The sign-in behind a grant as its client knows it (OpenID Connect Core §2). */
export interface OpenidLogin {
  /** Names the session towards clients. */
  readonly sid: string;
  /** That of the authorization request; undefined where it had none, and from the first rotation on (Core §12.2). */
  readonly nonce: string | undefined;
}

/** Everything a code is bound to: client, person, scope, resources, redirect URI, PKCE challenge (security row K4). */
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
  /** That of the session; tokens report the earlier of both times. */
  readonly upstreamAuthTime?: number | undefined;
  readonly scope: readonly string[];
  /** The resources the grant covers; never empty. */
  readonly audiences: readonly string[];
  readonly redirectUri: string;
  /** RFC 7636 S256 challenge; undefined only in records that the authorization endpoint did not make. */
  readonly codeChallenge: string | undefined;
  /** The sign-in that ID tokens report; undefined without OpenID Connect. */
  readonly openid?: OpenidLogin | undefined;
  /** The key that the code is bound to (RFC 9449 §10), if any. */
  readonly confirmation?: Confirmation | undefined;
  /** The MAC of the record; a store keeps it as it is. */
  readonly mac?: string | undefined;
}

/** A grant that is issued. */
export interface NewGrant extends Grant {
  /** The login that the session of the grant notes; undefined without OpenID Connect. */
  readonly login?: Login | undefined;
}

/** A grant as stored. */
export interface StoredGrant extends Grant {
  readonly createdAt: number;
}

/** The access that a token request asks for, and the access its client may have now; `narrowAccess` compares the two. */
export interface AccessRequest {
  /** The `scope` parameter; undefined when absent. */
  readonly scope: readonly string[] | undefined;
  /** The one `resource` parameter; undefined when absent. */
  readonly resource: string | undefined;
  readonly allowedScopes: readonly string[];
  readonly allowedAudiences: readonly string[];
  readonly defaultAudience: string | undefined;
  /**
   * The rules of the audiences that differ: any other allowed audience has all of `allowedScopes`, and no cap. Undefined
   * where none differs.
   */
  readonly at: Readonly<Record<string, AudienceRules>> | undefined;
  /**
   * The audience that alone has its scopes, under a grant which covers it: the issuer, with OpenID Connect. A grant without
   * it has those scopes wherever else the client may have them.
   */
  readonly issuer?: string | undefined;
}

/** What the owner of a resource, or the manifest that refers to it, leaves of a client's access there. */
export interface AudienceRules {
  readonly scopes: readonly string[];
  /** The longest life of an access token for this audience, seconds; undefined: the client's. */
  readonly maxLifetimeSeconds: number | undefined;
}

export interface RedeemRequest {
  readonly grantId: string;
  /** SHA-256 of the code's secret part, base64url. */
  readonly secretHash: string;
  readonly clientUid: string;
  readonly redirectUri: string;
  /** What the access token will be bound to. */
  readonly confirmation: Confirmation | undefined;
  /** Whether the refresh tokens of the grant are bound to `confirmation`, where it is set: those of a public client. */
  readonly bindsRefreshTokens: boolean;
  /** S256 of a well-formed verifier; undefined when the verifier is absent or malformed. */
  readonly verifierChallenge: string | undefined;
  /** A random id of this attempt: the same id again gets the first answer, without an alert. */
  readonly attemptId: string;
  /** How long from the grant's creation its record is needed: nothing issued under it lives longer. */
  readonly retention: number;
  readonly access: AccessRequest;
  /** See {@link RotateRequest}. */
  readonly revokedBefore: number;
  /** Set for clients with opaque access tokens: written, as `cappedToken` leaves it, if and only if the code is redeemed. */
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
  /**
   * Already redeemed and all else right: the grant is revoked now. `alert` is undefined if it had been raised before.
   */
  | { readonly outcome: 'replayed'; readonly alert: Alert | undefined }
  /** Missing, expired, revoked, or invalidated by wrong verifiers. */
  | { readonly outcome: 'gone' }
  /** Another secret or another client; nothing changed. */
  | { readonly outcome: 'no_match' }
  /** Wrong redirect_uri or key, no or malformed verifier, a verifier for a code without challenge; nothing changed. */
  | { readonly outcome: 'bad_proof' }
  /** Redeemed, but a kill switch had ended the grant: nothing may be issued. */
  | { readonly outcome: 'ended' }
  /** A well-formed but wrong verifier. Each is counted; the fifth invalidates the code (never a revocation). */
  | { readonly outcome: 'wrong_verifier' }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

export interface RotateRequest {
  readonly grantId: string;
  readonly clientUid: string;
  /** The generation in the presented token; its MAC has been checked. */
  readonly generation: number;
  /** What the access token will be bound to. */
  readonly confirmation: Confirmation | undefined;
  /** Whether the client is public: its refresh tokens prove nothing but for the key that they are bound to. */
  readonly isPublic: boolean;
  readonly rotation: 'Always' | 'Never';
  readonly reuseGrace: number;
  readonly idleLifetime: number;
  readonly absoluteLifetime: number;
  /** See {@link RedeemRequest}: it may be more now than it was then. */
  readonly retention: number;
  readonly attemptId: string;
  readonly access: AccessRequest;
  readonly accessToken: NewAccessToken | undefined;
  readonly address: string;
  /** The answer of `subjectOf` ({@link GrantStore}). */
  readonly subject: string;
  /**
   * The kill switch of the client's manifest, or of the person, epoch milliseconds: a grant made at or before this, or at or before a
   * watermark that `watermarks.read` would answer in the same moment, is `ended`.
   */
  readonly revokedBefore: number;
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
      /** Set for `benign_retry`: the address of the rotation. */
      readonly rotatedFrom?: string | undefined;
    }
  /**
   * A kill switch has ended the grant. The record did not change, unless the kill switch took effect during the call.
   */
  | { readonly outcome: 'ended' }
  /** An already rotated token: the grant is revoked now. `alert` is undefined if it had been raised before. */
  | { readonly outcome: 'reused'; readonly alert: Alert | undefined }
  /** Missing, revoked, never redeemed, idle- or absolute-expired. */
  | { readonly outcome: 'gone' }
  /** Another client's; nothing changed. */
  | { readonly outcome: 'no_match' }
  /** Of a public client: another key than the refresh tokens are bound to, or none where they have to be; nothing changed. */
  | { readonly outcome: 'bad_proof' }
  | { readonly outcome: 'scope_exceeded' | 'target_exceeded' };

/** In how many generations in a row a retry from another network raises an alert. */
export const RETRIES_IN_A_ROW = 3;

/** A `benign_retry` that came from another network than the rotation. */
export interface RetryElsewhere {
  readonly grantId: string;
  /** The generation that was presented. */
  readonly generation: number;
  readonly address: string;
  readonly rotatedFrom: string;
}

/** The state of a grant, for introspection and revocation. */
export interface GrantState {
  readonly grant: StoredGrant;
  readonly revoked: boolean;
  /** The current refresh generation; undefined while the code has not been redeemed. */
  readonly generation: number | undefined;
  /** When the current generation was last used or made. */
  readonly refreshedAt: number;
}

/** The client and the person of a grant: their watermarks, and those of the pair, end it. */
export type GrantParties = Pick<Grant, 'clientUid' | 'subject'>;

/** The state of a grant, and the watermark that ends what was issued under it. */
export interface GrantStatus extends GrantState {
  /** The highest of the global, the client's, the user's and the pair's; 0 when none was raised. */
  readonly watermark: number;
}

/** So many redeemed grants of one person at one client, the newest, are never removed to make room. */
export const KEPT_GRANTS = 100;
/** So many unredeemed codes of one person at one client, the newest, are never removed to make room. */
export const KEPT_CODES = 50;
/** The most records that one person has at one client, but for concurrent calls: the next one makes room. */
export const MOST_RECORDS = 200;

export type IssueAnswer =
  | {
      readonly outcome: 'issued';
      /** The grants and codes that were removed to make room and had not been revoked. */
      readonly evicted: readonly string[];
      /** The grant, of whatever client, that ended because its session notes its login no more; undefined for none. */
      readonly forgotten?: string | undefined;
    }
  /** The person has to sign in again; nothing was written. `signed_out`: the session of the login has ended. */
  | { readonly outcome: 'outdated' | 'signed_out' };

/** Codes and refresh families. Monotone: issued → redeemed → replayed; generations only grow; revoked is sticky. */
export interface GrantStore {
  /**
   * Writes a grant whose code can be redeemed for `codeLifetime`; its shard is that of its person. `outdated`, and
   * nothing is written, if the person signed in at or before the global watermark, their own, or that of their consent
   * to the client. `signed_out`, and nothing is written, if the grant comes by a login whose session has ended; else the
   * session notes the login in the same action. The grant of a login that the session notes no more ends with that, but
   * for one that survives the session.
   *
   * Where the person has {@link MOST_RECORDS} at the client, the redeemed grants beyond {@link KEPT_GRANTS} are removed,
   * revoked ones first, then the oldest, and the oldest codes beyond {@link KEPT_CODES}, this one included: opening codes
   * ends no grant. Nothing that was issued under a removed grant is good any more. What is written counts as a use of the
   * client by the person, as in `UseStore.note`, in the same action.
   * @param retention how long from now a grant of the client is needed at most, as in {@link RedeemRequest}
   */
  issue(grant: NewGrant, secretHash: string, codeLifetime: number, retention: number): Promise<IssueAnswer>;
  /**
   * Checks in this order: revoked or missing → gone · other secret or client → no_match · wrong redirect_uri, another key
   * than the code is bound to, absent or malformed verifier, verifier without challenge, anything else wrong on a redeemed code → bad_proof · well-formed
   * wrong verifier while issued → wrong_verifier (the fifth invalidates the code) · already redeemed → replayed, grant
   * revoked (same attempt id: the first answer) · expired → gone · access not covered → target_exceeded, scope_exceeded
   * · else redeemed at generation 0, or `ended` if a kill switch applies.
   */
  redeem(request: RedeemRequest): Promise<RedeemAnswer>;
  /**
   * Checks in this order: missing → gone · client differs → no_match · kill switches → ended · revoked, not redeemed,
   * idle- or absolute-expired → gone · of a public client, another key than the refresh tokens are bound to, or unbound
   * ones without rotation → bad_proof · same attempt id → the first answer · generation current → rotated (`Never`: same
   * generation, idle time renewed) · current − 1 within the grace → benign_retry · above current → healed, also where a
   * store knows that it may have lost the redemption · else reused, grant revoked. In each of the three good cases
   * access that is not covered answers target_exceeded or scope_exceeded and changes nothing.
   */
  rotate(request: RotateRequest): Promise<RotateAnswer>;
  /**
   * Counts a retry, once per generation. {@link RETRIES_IN_A_ROW} generations in a row raise an alert, one per grant; nothing is revoked.
   * @returns the alert that this call raised; undefined also where the grant is unknown or revoked
   */
  noteRetryElsewhere(retry: RetryElsewhere): Promise<Alert | undefined>;
  /** The subject of the grant; undefined when the grant is unknown. It never changes. */
  subjectOf(grantId: string): Promise<string | undefined>;
  /** Revokes a grant without an alert: invalidated code, revocation, withdrawn consent. Idempotent. */
  revoke(grantId: string): Promise<void>;
  /** The grant if it is known and not past every lifetime; undefined otherwise. */
  read(grantId: string): Promise<GrantState | undefined>;
  /**
   * As `read`, with the watermark of the parties that a token of the grant names. The caller compares them with those of the
   * grant, which may be others; undefined then, too, where a store cannot read both in one action.
   */
  status(grantId: string, parties: GrantParties): Promise<GrantStatus | undefined>;
}
