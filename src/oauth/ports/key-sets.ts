// The port to the key sets that clients publish at addresses of their own (RFC 7517 §5, `jwks_uri` of RFC 7591 §2), and
// the error of a set that cannot be read. The adapter is `outbound/`.

import { OAuthError } from './error.ts';

/** The client that a key set is read for. */
export interface KeySetOwner {
  readonly uid: string;
  readonly namespace: string;
}

/** @typeParam Key a public key, validated: `VerificationKey` of values/jwk.ts */
export interface KeySets<Key extends { readonly kid: string | undefined }> {
  /**
   * The usable keys of the set at an address, fresh or as stale as is allowed; at most 16, in the order of the set. The
   * same objects as long as the set is cached, which it is for each namespace by itself.
   * @param uri the address that a client registered
   * @param kid the key that is looked for: a cached set without it is fetched again, once per address and 30 seconds
   *   for all clients of the namespace. It narrows nothing.
   * @throws OAuthError of {@link keySetUnavailable} when nothing usable is cached and nothing can be fetched, of
   *   {@link keySetLimited} when too many requests of the client or of its namespace wait for a fetch already
   */
  keysAt(owner: KeySetOwner, uri: string, kid: string | undefined): Promise<readonly Key[]>;
}

/** The error of a set that cannot be read now: 503. @param outcome a slug of the last fetch, for the log line */
export function keySetUnavailable(outcome: string): OAuthError {
  return unavailable({ reason: 'client_jwks_unavailable', detail: outcome, retryAfterSeconds: 5 });
}

/** The error where too many requests wait for a set: 503. @param whose what has too many, for the log line */
export function keySetLimited(whose: 'client' | 'namespace'): OAuthError {
  return unavailable({ reason: 'client_jwks_limited', detail: whose, retryAfterSeconds: 2 });
}

function unavailable(details: ConstructorParameters<typeof OAuthError>[2]): OAuthError {
  return new OAuthError('temporarily_unavailable', 'The server cannot answer now.', details);
}
