// Client secrets and their verifiers. A secret has 256 random bits, so one SHA-256 is enough: no slow hash on the token path.

import { hash, timingSafeEqual } from 'node:crypto';
import type { Random } from '../ports/ports.ts';
import { randomId } from '../values/random-id.ts';

const VERIFIER_VERSION = 'grantry-client-secret-v1';

/** A new secret of 256 bits in base64url: safe for consumers that send it unencoded. */
export function generateClientSecret(random: Random): string {
  return randomId(random, 32);
}

/**
 * The stored form of a secret: SHA-256 over a version tag, the object's uid and the secret, so that neither another
 * client's verifier nor another version's is accepted.
 * @param uid the uid of the OAuthClient object
 */
export function secretVerifier(uid: string, secret: string): Uint8Array {
  // As hex and back: a hash that returns a buffer takes three times as long.
  return Buffer.from(hash('sha256', `${VERIFIER_VERSION}\0${uid}\0${secret}`, 'hex'), 'hex');
}

const UNKNOWN_UID = 'nobody';

/**
 * Whether one of the presented secrets is one of the client's. All digests are made and all compared in constant time; an
 * unknown client (`undefined`) costs the same work (security rows C6, P9).
 * @param presented the form-decoded secret and, when it differs, the raw one
 */
export function secretMatches(
  client: { readonly uid: string; readonly secretVerifiers: readonly Uint8Array[] } | undefined,
  presented: readonly string[],
): boolean {
  const uid = client?.uid ?? UNKNOWN_UID;
  const verifiers = client?.secretVerifiers.length ? client.secretVerifiers : [secretVerifier(UNKNOWN_UID, '')];
  let matched = false;
  for (const secret of presented) {
    const digest = secretVerifier(uid, secret);
    for (const verifier of verifiers) {
      const equal = timingSafeEqual(digest, verifier);
      matched = matched || equal;
    }
  }
  return matched && (client?.secretVerifiers.length ?? 0) > 0;
}
