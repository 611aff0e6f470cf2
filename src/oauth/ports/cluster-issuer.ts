// The port to the issuer of the cluster's ServiceAccount tokens. `kubernetes/` reads it from the API server; `grantry dev` has
// one of its own.

import { OAuthError } from './error.ts';

/** The issuer of ServiceAccount tokens and the keys that they are signed with. */
export interface AccountIssuer<Key> {
  /** The value of `iss`. */
  readonly issuer: string;
  readonly keys: readonly Key[];
}

/** @typeParam Key a public key, validated: `VerificationKey` of values/jwk.ts */
export interface ClusterIssuer<Key extends { readonly kid: string | undefined }> {
  /**
   * The issuer and its keys, fresh or as stale as is allowed.
   * @param kid the key that is looked for: known keys without it are read again, once per 30 seconds for all callers. It
   *   narrows nothing.
   * @throws OAuthError of {@link clusterIssuerUnavailable} when they were never read, or too long ago
   */
  current(kid: string | undefined): Promise<AccountIssuer<Key>>;
}

const RETRY_SECONDS = 5;

/** The error of an issuer that cannot be read now: 503. @param detail a slug of the last read, for the log line */
export function clusterIssuerUnavailable(detail: string): OAuthError {
  return new OAuthError('temporarily_unavailable', 'The server cannot answer now.', {
    reason: 'cluster_issuer_unavailable',
    detail,
    retryAfterSeconds: RETRY_SECONDS,
  });
}
