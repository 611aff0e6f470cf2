// The keys that a client with `self_signed_tls_client_auth` is registered by (RFC 8705 §2.2.2): JSON Web Keys, each by
// its certificate (`x5c`) or by itself.

import { X509Certificate } from 'node:crypto';
import type { PublicJwk } from '../values/jwk.ts';

const KEY_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e'] as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Whether a certificate is the one of a registered key or, where that has none, holds the key. */
export function isRegistered(certificate: X509Certificate, keys: readonly PublicJwk[]): boolean {
  return keys.some((key) => {
    const [first] = key.x5c ?? [];
    return first === undefined ? holdsKey(certificate, key) : Buffer.from(first, 'base64').equals(certificate.raw);
  });
}

/** Why the certificate of a registered key cannot be used, as words that follow its place; undefined where it can. */
export function registeredCertificateFault(key: PublicJwk): string | undefined {
  const [first] = key.x5c ?? [];
  if (first === undefined) return undefined;
  const certificate = BASE64.test(first) ? certificateIn(Buffer.from(first, 'base64')) : undefined;
  if (certificate === undefined) return 'is no certificate in base64 of DER';
  // RFC 7517 §4.7: both must be the same key.
  return holdsKey(certificate, key) ? undefined : 'is a certificate of another key';
}

function certificateIn(der: Uint8Array): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    return certificate.raw.equals(der) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

function holdsKey({ publicKey }: X509Certificate, key: PublicJwk): boolean {
  const own = exported(publicKey);
  return own !== undefined && KEY_MEMBERS.every((member) => own[member] === key[member]);
}

/** The members of a key as a JWK has them; undefined for a kind of key that has no JWK. */
function exported(key: X509Certificate['publicKey']): Readonly<Record<string, unknown>> | undefined {
  try {
    return key.export({ format: 'jwk' });
  } catch {
    return undefined;
  }
}
