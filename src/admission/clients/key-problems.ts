// The sentences about a JWK that is not accepted, for keys that sign assertions and for those of certificates alike.

import type { JwkFault } from '../../oauth/values/jwk.ts';

/** What is wrong with a key, and the remedy: words that follow its name in a message. */
export const KEY_PROBLEMS: Readonly<Record<JwkFault, string>> = {
  private_member:
    'has a private member, which is no secret any more: replace the key by a new one, and publish its public members only',
  malformed:
    'lacks a member of its kty, or has one that is not plain base64url (RFC 7518 section 6); in YAML "y" and "n" need quotes',
  unsupported_key_type: 'is no key of kty EC with crv P-256 or P-384, of kty OKP with crv Ed25519, or of kty RSA',
  unsupported_algorithm: 'has an alg that is not supported, or does not fit its kty; leave it out',
  wrong_use: 'is not for signatures: use must be sig, and key_ops hold verify, where they are given',
  rsa_modulus_size: 'is an RSA key of fewer than 2048 or more than 4096 bits; make another, or one of kty EC',
  rsa_exponent: 'is an RSA key with an unusual exponent; make another with the exponent 65537 (e: AQAB)',
};
