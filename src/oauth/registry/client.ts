// An admitted client as the protocol core reads it: the result of a manifest that `admission/` accepted.
// Immutable; a changed manifest becomes a new object in a new registry.

export type AccessTokenFormat = 'jwt' | 'opaque';

/** How this client's tokens are made. All lifetimes are whole seconds. */
export interface TokenSettings {
  readonly accessTokenFormat: AccessTokenFormat;
  readonly accessTokenLifetimeSeconds: number;
  readonly refreshTokenIdleLifetimeSeconds: number;
  readonly refreshTokenLifetimeSeconds: number;
  /** `Never` only for confidential or sender-constrained clients (RFC 9700 §4.14.2). */
  readonly refreshTokenRotation: 'Always' | 'Never';
  /** How long the immediate predecessor of a refresh token is answered with the same successor; 0 turns it off. */
  readonly refreshTokenReuseGraceSeconds: number;
}

/** A registered, admitted client (RFC 6749 §2). */
export interface Client {
  /** The uid of the OAuthClient object. Grants are keyed by it: a re-created client inherits nothing. */
  readonly uid: string;
  readonly clientId: string;
  /** The namespace of the OAuthClient object. */
  readonly namespace: string;
  /** How many bytes all clients of the namespace may have in the store without a person, by the policies of this one. */
  readonly maxState: number;
  /** The name shown to people; falls back to the client id. */
  readonly displayName: string;
  readonly clientUri: string | undefined;
  readonly policyUri: string | undefined;
  readonly tosUri: string | undefined;
  /** Epoch milliseconds: every grant and token issued at or before this is revoked. 0 when unset. */
  readonly revokeTokensBefore: number;
  /** The wire name of the one authentication method this client may use (a key of the client-auth table). */
  readonly authMethod: string;
  /** Verifiers of the accepted secrets ({@link secretVerifier}), newest first; empty unless the method needs a secret. */
  readonly secretVerifiers: readonly Uint8Array[];
  readonly grantTypes: readonly string[];
  readonly redirectUris: readonly string[];
  readonly allowedCorsOrigins: readonly string[];
  readonly scopes: readonly string[];
  readonly defaultScopes: readonly string[];
  /** Resources this client may ask tokens for (RFC 8707); never empty, and never the issuer. */
  readonly audiences: readonly string[];
  readonly defaultAudience: string | undefined;
  /** Resources that this client serves as their API: it may introspect their tokens. */
  readonly resourceServerAudiences: readonly string[];
  /** `baseline` where no ClientPolicy selects its namespace: no administrator permitted its redirect URIs by name. */
  readonly admittedBy: 'policy' | 'baseline';
  readonly consent: 'Required' | 'Skip';
  readonly requireState: boolean;
  readonly tokens: TokenSettings;
}
