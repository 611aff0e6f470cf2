// Reads ID tokens that a client sends back: `id_token_hint` of the authorization endpoint (OpenID Connect Core §3.1.2.1)
// and of the logout endpoint (RP-Initiated Logout §2).

import type { KeyRing } from '../registry/keys.ts';
import { parseJwt } from '../values/jws.ts';
import { isSignatureOf } from '../values/signature.ts';

/** The sign-in that an ID token of this issuer reported. */
export interface IdTokenHint {
  readonly subject: string;
  /** Its audience: the client that it was issued to. */
  readonly clientId: string;
  readonly sid: string;
}

/** An ID token with the most groups and the longest names that this issuer makes is smaller. */
const MOST_BYTES = 16 * 1024;

/**
 * The content of a hint; undefined for anything but an ID token that this issuer signed with a key of the ring. Its expiry
 * does not count: a hint is sent long after the sign-in. Never throws.
 */
export function readIdTokenHint(
  hint: string,
  { issuer, keys }: { readonly issuer: string; readonly keys: KeyRing },
): IdTokenHint | undefined {
  const jwt = parseJwt(hint, MOST_BYTES);
  if (typeof jwt === 'string') return undefined;
  const { header, algorithm, claims, signingInput, signature } = jwt;
  const key = keys.find(header.kid ?? '');
  // Access tokens and logout tokens have another type (RFC 8725 §3.11).
  if (key === undefined || key.algorithm !== algorithm || header.typ !== 'JWT') return undefined;
  if (!isSignatureOf({ signingInput, signature, algorithm, key: key.publicKey })) return undefined;
  const { iss, sub, aud, sid } = claims;
  if (iss !== issuer || typeof sub !== 'string' || typeof aud !== 'string' || typeof sid !== 'string') return undefined;
  return { subject: sub, clientId: aud, sid };
}
