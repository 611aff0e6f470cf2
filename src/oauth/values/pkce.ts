// Proof Key for Code Exchange (RFC 7636), method S256 only: the syntax of both values and the transform between them.
// Requiring a challenge is the authorization endpoint's duty; comparing with the stored one is the grant store's.

import { hash } from 'node:crypto';

const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** Whether this can be an S256 challenge: a SHA-256 digest in base64url is exactly 43 characters (RFC 7636 §4.2). */
export function isChallenge(value: string): boolean {
  return CHALLENGE.test(value);
}

/** Whether this is a code verifier: 43 to 128 unreserved characters (RFC 7636 §4.1). */
export function isVerifier(value: string): boolean {
  return VERIFIER.test(value);
}

/** BASE64URL(SHA-256(ASCII(verifier))) without padding (RFC 7636 §4.2). Check {@link isVerifier} first. */
export function s256(verifier: string): string {
  return hash('sha256', verifier, 'base64url');
}
