// An admitted client as the protocol core reads it: the result of a manifest that `admission/` accepted.
// Immutable; a changed manifest becomes a new object in a new registry.

import type { VerificationKey } from '../values/jwk.ts';
import type { SigningAlgorithm } from '../values/signature.ts';

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

/** How ID tokens for this client are made. */
export interface IdTokenSettings {
  readonly signingAlgorithm: SigningAlgorithm;
  readonly lifetimeSeconds: number;
}

/** How assertions of a client are verified (RFC 7523 §3). */
export interface AssertionSettings {
  /** The keys of the manifest, validated by shape only, or the address that serves them. */
  readonly keys: readonly VerificationKey[] | { readonly jwksUri: string };
  /** The JWS algorithms that its assertions may have; never empty. */
  readonly algorithms: readonly SigningAlgorithm[];
  /** Whether an assertion may be for the token endpoint in place of the issuer. */
  readonly acceptTokenEndpointAudience: boolean;
}

/**
 * Which certificates are those of a client (RFC 8705 §2): one name that a CA has certified; or its own certificates by
 * their SHA-256 thumbprints (the `x5c[0]` of its JWKs), and its own keys (JWKs without `x5c`) by theirs (RFC 7638).
 */
export type CertificateSettings =
  | { readonly name: 'subjectDn' | 'sanDns' | 'sanUri' | 'sanIp' | 'sanEmail'; readonly value: string }
  | { readonly certificates: readonly string[]; readonly keys: readonly string[] };

/** A ServiceAccount of the client's namespace. An account that is deleted and created again has another uid. */
export interface ServiceAccountIdentity {
  readonly name: string;
  readonly uid: string;
}

/** What every access token of a client is bound to (RFC 9449, RFC 8705 §3). */
export type SenderConstraint = 'None' | 'DPoP' | 'MutualTLS';

/** A resource that a client refers to; its owner decides whether it is granted. */
export interface ResourceReference {
  /** Undefined for the namespace of the client. */
  readonly namespace: string | undefined;
  readonly name: string;
  /** Undefined for every scope that is granted. */
  readonly scopes: readonly string[] | undefined;
}

/** Which people may use a client: each list that is not empty has to be met, by one of its members. */
export interface SignInLimits {
  /** Names of identity providers, and `local` for local users. */
  readonly identityProviders: readonly string[];
  /** Groups as mapped, with the prefix of their provider. */
  readonly groups: readonly string[];
}

/** A registered, admitted client (RFC 6749 §2). */
export interface Client {
  /** The uid of the OAuthClient object. Grants are keyed by it: a re-created client inherits nothing. */
  readonly uid: string;
  readonly clientId: string;
  /** The namespace of the OAuthClient object. */
  readonly namespace: string;
  /** The name of the OAuthClient object. */
  readonly name: string;
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
  /** Set for private_key_jwt only. */
  readonly assertion: AssertionSettings | undefined;
  /** Set for the mutual-TLS methods only. */
  readonly certificate: CertificateSettings | undefined;
  /** The accounts whose tokens authenticate the client; empty unless its method is kubernetes_service_account. */
  readonly serviceAccounts: readonly ServiceAccountIdentity[];
  readonly senderConstraint: SenderConstraint;
  readonly grantTypes: readonly string[];
  readonly redirectUris: readonly string[];
  /** Where people may be sent after a sign-out (OpenID Connect RP-Initiated Logout §3.1). */
  readonly postLogoutRedirectUris: readonly string[];
  readonly allowedCorsOrigins: readonly string[];
  /** The scopes that an administrator permits, at each of the `audiences`. `access/client-access.ts` adds granted ones. */
  readonly scopes: readonly string[];
  readonly defaultScopes: readonly string[];
  /** Globs of the groups that are disclosed to the client, where it has the scope for them; one list for all its tokens. */
  readonly groups: readonly string[];
  /** Where the client is notified of a session that ended (OpenID Connect Back-Channel Logout §2.2). */
  readonly backchannelLogoutUri: string | undefined;
  /** Resources that an administrator permits (RFC 8707); never the issuer. */
  readonly audiences: readonly string[];
  /** Resources that their owners may grant. */
  readonly resources: readonly ResourceReference[];
  readonly defaultAudience: string | undefined;
  /** Resources that this client serves as their API: it may introspect their tokens. */
  readonly resourceServerAudiences: readonly string[];
  /** `baseline` where no ClientPolicy selects its namespace: no administrator permitted its redirect URIs by name. */
  readonly admittedBy: 'policy' | 'baseline';
  readonly consent: 'Required' | 'Skip';
  /** Undefined where each person may use it. */
  readonly signIn: SignInLimits | undefined;
  readonly requireState: boolean;
  readonly tokens: TokenSettings;
  readonly idTokens: IdTokenSettings;
}
