// The keys that a client with `self_signed_tls_client_auth` is registered by (RFC 8705 §2.2.2): JSON Web Keys, each by
// its certificate (`x5c`) or by itself. Kept as thumbprints, which is all that a comparison needs.

import { X509Certificate } from 'node:crypto';
import { type JwkFault, readJwk } from '../values/jwk.ts';
import { thumbprintOf } from './certificate.ts';

/** Thumbprints of the certificates and of the keys of a client. */
export interface RegisteredKeys {
  /** SHA-256 of the DER, base64url, of the keys with `x5c`. */
  readonly certificates: readonly string[];
  /** RFC 7638, of the keys without. */
  readonly keys: readonly string[];
}

/** Why a key is not accepted: that of {@link readJwk}, or its certificate is none, or is of another key. */
export type RegisteredKeyFault = JwkFault | 'certificate_malformed' | 'certificate_of_another_key';

/** A registered key: the thumbprint of its certificate or, without one, its own. */
export type RegisteredKey = { readonly certificate: string } | { readonly key: string };

/** Validates one JWK of the client. Only the first certificate of its `x5c` is read: it alone is that of the key. */
export function readRegisteredKey(
  jwk: object & { readonly x5c?: readonly string[] | undefined },
): RegisteredKey | RegisteredKeyFault {
  const read = readJwk(jwk);
  if (typeof read === 'string') return read;
  const [first] = jwk.x5c ?? [];
  if (first === undefined) return { key: read.thumbprint };
  const certificate = BASE64.test(first) ? certificateIn(Buffer.from(first, 'base64')) : undefined;
  if (certificate === undefined) return 'certificate_malformed';
  // RFC 7517 §4.7: both must be the same key.
  if (keyThumbprintOf(certificate) !== read.thumbprint) return 'certificate_of_another_key';
  return { certificate: thumbprintOf(certificate.raw) };
}

/** Whether a certificate is a registered one, or of a registered key. @param thumbprint of the certificate */
export function isRegistered(
  certificate: X509Certificate,
  thumbprint: string,
  { certificates, keys }: RegisteredKeys,
): boolean {
  if (certificates.includes(thumbprint)) return true;
  const own = keys.length === 0 ? undefined : keyThumbprintOf(certificate);
  return own !== undefined && keys.includes(own);
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function certificateIn(der: Uint8Array): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    return certificate.raw.equals(der) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** The RFC 7638 thumbprint of the key of a certificate; undefined for a key that could not be registered. */
function keyThumbprintOf({ publicKey }: X509Certificate): string | undefined {
  try {
    const key = readJwk(publicKey.export({ format: 'jwk' }));
    return typeof key === 'string' ? undefined : key.thumbprint;
  } catch {
    // Node has no JWK of some kinds of keys.
    return undefined;
  }
}
