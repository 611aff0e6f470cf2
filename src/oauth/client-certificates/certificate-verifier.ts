// Verifies client certificates, those of TLS sockets and those of headers alike. The leaf is verified in every request: a
// resumed session keeps the result of its first handshake.

import type { Clock } from '../ports/ports.ts';
import { RecentValues } from '../values/recent-values.ts';
import { type Certificate, type CertificateReader, thumbprintOf } from './certificate.ts';
import type { Authority, CertificateAuthorities } from './certificate-authorities.ts';
import { type CertificateName, hasName } from './certificate-name.ts';
import { isRegistered, type RegisteredKeys } from './registered-keys.ts';

/** Why a certificate does not authenticate a client; a reason of `invalid_client`. */
export type CertificateFault =
  | 'certificate_malformed'
  | 'certificate_not_yet_valid'
  | 'certificate_expired'
  | 'certificate_untrusted'
  | 'certificate_authority_expired'
  | 'certificate_usage'
  | 'certificate_weak'
  | 'certificate_name_mismatch'
  | 'certificate_key_mismatch';

export interface CertificateVerifierOptions {
  readonly reader: CertificateReader;
  /** The authorities as of now; undefined where none are configured. */
  readonly authorities: () => CertificateAuthorities | undefined;
  readonly clock: Clock;
}

/** id-kp-clientAuth (RFC 5280 §4.2.1.12). */
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const LEAST_RSA_BITS = 2048;
const CERTIFICATES_KEPT = 1_000;

export class CertificateVerifier {
  readonly #options: CertificateVerifierOptions;
  readonly #read = new RecentValues<Certificate>(CERTIFICATES_KEPT);

  constructor(options: CertificateVerifierOptions) {
    this.#options = options;
  }

  /** Why this certificate is not one of an authority with this name (RFC 8705 §2.1); undefined where it is. */
  nameFault(der: Uint8Array, name: CertificateName): CertificateFault | undefined {
    const thumbprint = thumbprintOf(der);
    const certificate = this.#certificate(der, thumbprint);
    if (certificate === undefined) return 'certificate_malformed';
    const issuers = this.#options.authorities()?.issuersOf(certificate.x509, thumbprint) ?? [];
    const fault = dateFault(certificate, this.#now) ?? issuerFault(issuers, this.#now) ?? leafFault(certificate);
    return fault ?? (hasName(certificate, name) ? undefined : 'certificate_name_mismatch');
  }

  /** Why this certificate is none of the registered ones (RFC 8705 §2.2); undefined where it is. */
  keyFault(der: Uint8Array, registered: RegisteredKeys): CertificateFault | undefined {
    const thumbprint = thumbprintOf(der);
    const certificate = this.#certificate(der, thumbprint);
    if (certificate === undefined) return 'certificate_malformed';
    const fault = dateFault(certificate, this.#now);
    return fault ?? (isRegistered(certificate.x509, thumbprint, registered) ? undefined : 'certificate_key_mismatch');
  }

  get #now(): number {
    return this.#options.clock.now();
  }

  #certificate(der: Uint8Array, thumbprint: string): Certificate | undefined {
    const known = this.#read.get(thumbprint);
    if (known !== undefined) return known;
    const certificate = this.#options.reader.read(der);
    if (certificate !== undefined) this.#read.set(thumbprint, certificate);
    return certificate;
  }
}

function dateFault({ notBefore, notAfter }: Certificate, now: number): CertificateFault | undefined {
  if (now < notBefore) return 'certificate_not_yet_valid';
  return isWithin({ notBefore, notAfter }, now) ? undefined : 'certificate_expired';
}

function issuerFault(issuers: readonly Authority[], now: number): CertificateFault | undefined {
  if (issuers.length === 0) return 'certificate_untrusted';
  return issuers.some((issuer) => isWithin(issuer, now)) ? undefined : 'certificate_authority_expired';
}

/** RFC 5280 §4.1.2.5: both bounds are inclusive, the whole last second too. */
function isWithin({ notBefore, notAfter }: { notBefore: number; notAfter: number }, now: number): boolean {
  return notBefore <= now && now < notAfter + 1_000;
}

function leafFault({ x509, extendedKeyUsages, signatureHash }: Certificate): CertificateFault | undefined {
  if (extendedKeyUsages !== undefined && !extendedKeyUsages.includes(CLIENT_AUTH)) return 'certificate_usage';
  const bits = x509.publicKey.asymmetricKeyDetails?.modulusLength;
  const isWeak = signatureHash === undefined || (bits !== undefined && bits < LEAST_RSA_BITS);
  return isWeak ? 'certificate_weak' : undefined;
}
