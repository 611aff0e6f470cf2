// An IdentityProvider as a token server holds it: where people sign in, what is asked for, and how its claims are read.
// Immutable; a changed manifest, or another value in its Secret, becomes a new object.

/** Stands for local users where providers are named; no provider has this name. */
export const LOCAL_USERS = 'local';

/** A provider of one of the types. */
export type IdentityProvider = OidcProvider | GitHubProvider;

interface ProviderBase {
  /** A path segment of the callback address; unique. */
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly displayName: string;
  /** While set, sign-in through it is disabled, and the sessions and tokens of its users are rejected. */
  readonly isSuspended: boolean;
  /** All that its people hold from at or before this time is revoked; epoch milliseconds. */
  readonly revokedBefore: number | undefined;
  /** How long an assertion of the provider is valid; milliseconds. */
  readonly verifyEvery: number;
  readonly allow: {
    /** Lower case; empty for any address, and for none. */
    readonly emailDomains: readonly string[];
    /** Groups as mapped, of which one is enough; empty for any. */
    readonly groups: readonly string[];
  };
  /** Which groups are kept, by their names at the provider, and what then stands before them. */
  readonly groups: { readonly include: readonly string[]; readonly prefix: string; readonly allowCommas: boolean };
  /** What grantry is at the provider; undefined while its Secret cannot be used. */
  readonly credentials: ProviderCredentials | undefined;
}

/** The content of a provider's Secret. */
export interface ProviderCredentials {
  readonly clientId: string;
  /** Undefined for `clientAuth: none`. */
  readonly clientSecret: string | undefined;
  /** PEM certificates of authorities that are trusted beside those of Node. */
  readonly authorities: string | undefined;
}

/** A provider of OpenID Connect. */
export interface OidcProvider extends ProviderBase {
  readonly type: 'OIDC';
  /** Exact, as its metadata and its ID tokens name it. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly clientAuth: 'client_secret_basic' | 'client_secret_post' | 'none';
  readonly subjectClaim: 'sub' | 'oid';
  readonly claims: ClaimNames;
  /** An address is valid without the claim that it is verified. */
  readonly assumeEmailVerified: boolean;
  readonly requiredClaims: readonly { readonly claim: string; readonly values: readonly string[] }[];
  /** Sent with each request. */
  readonly acrValues: readonly string[];
}

/** Where each fact stands: the name of a claim at the top, or a JSON Pointer (RFC 6901), which begins with `/`. */
export interface ClaimNames {
  readonly username: string;
  readonly displayName: string;
  readonly email: string;
  readonly emailVerified: string;
  readonly groups: string;
}

/** GitHub, or a GitHub Enterprise Server. */
export interface GitHubProvider extends ProviderBase {
  readonly type: 'GitHub';
  /** `github.com`, or the host of the server. */
  readonly host: string;
  /** Logins of organizations, of which one is enough, and whose teams become groups; empty for anyone. */
  readonly organizations: readonly string[];
}
