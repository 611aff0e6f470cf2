// The stores of access tokens: opaque tokens, marks on revoked JWTs, and the watermarks that end all tokens made before
// a point in time.

/**
 * What a token is bound to: `jkt.` and the thumbprint of a DPoP key (RFC 9449 §6), or `x5t.` and that of a certificate
 * (RFC 8705 §3.1).
 */
export type Confirmation = `jkt.${string}` | `x5t.${string}`;

/** An opaque access token about to be written by the same action that redeems or rotates. */
export interface NewAccessToken {
  /** `<shard>.<SHA-256(token)>`. */
  readonly tokenId: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  /** What the token is bound to, if anything. */
  readonly confirmation?: Confirmation | undefined;
  /** The MAC of the record; a store keeps it as it is. */
  readonly mac?: string | undefined;
  /** The MAC that replaces `mac` where the cap of this audience ends the token earlier; a store does not keep the list. */
  readonly macAt?: Readonly<Record<string, string>> | undefined;
}

/** An opaque access token as stored. */
export interface StoredAccessToken extends Omit<NewAccessToken, 'macAt'> {
  readonly clientUid: string;
  readonly clientId: string;
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: string;
  /** Undefined for client_credentials. */
  readonly grantId: string | undefined;
  /** When the person signed in, as it is reported; undefined where no person was involved. */
  readonly authTime: number | undefined;
}

/** Opaque access tokens, by `<shard>.<hash>`. Those of a grant are written by redeem and rotate. */
export interface AccessTokenStore {
  /** client_credentials only. */
  write(token: StoredAccessToken): Promise<void>;
  /** Undefined once expired or revoked. */
  read(tokenId: string): Promise<StoredAccessToken | undefined>;
  revoke(tokenId: string): Promise<void>;
}

/** Marks on the ids of revoked JWT access tokens, kept until the token expires. */
export interface RevokedTokenStore {
  mark(jti: string, expiresAtSeconds: number): Promise<void>;
  has(jti: string): Promise<boolean>;
}

/** The grants and tokens that a watermark ends. */
export type WatermarkSubject =
  | { readonly kind: 'global' }
  | { readonly kind: 'client'; readonly clientUid: string }
  | { readonly kind: 'user'; readonly subject: string }
  /** One person's grants to one client: raised when the consent is withdrawn. */
  | { readonly kind: 'consent'; readonly clientUid: string; readonly subject: string };

/** Not-before watermarks: a grant or token made at or before one is revoked. They only rise. */
export interface WatermarkStore {
  /** Sets the watermark to the maximum of what it is and `time`; the present time of the store by default. */
  raise(subject: WatermarkSubject, time?: number): Promise<void>;
  /** The highest of the global, the client's, the user's and the pair's watermark; 0 when none was raised. */
  read(clientUid: string, subject: string | undefined): Promise<number>;
}
