// A client certificate as the protocol reads it (RFC 8705), and the port of what decodes one. Names are values of ASN.1,
// never a library's text form of them: such forms can be made to read as other names (CVE-2021-44532).

import { createHash, type X509Certificate } from 'node:crypto';

/** One attribute of a subject: `type` is a dotted OID. */
export interface NameAttribute {
  readonly type: string;
  /** The value where it is a well-formed UTF8String, PrintableString, IA5String or BMPString; else undefined. */
  readonly text: string | undefined;
  /** The DER of the value, with tag and length. */
  readonly der: Uint8Array;
}

/** A certificate with the parts that a decision may rest on. */
export interface Certificate {
  readonly x509: X509Certificate;
  /** The subject: relative distinguished names in the order of the certificate, each a set. */
  readonly subject: readonly (readonly NameAttribute[])[];
  /** The subject alternative names of the four types that a client may be registered by. */
  readonly alternativeNames: AlternativeNames;
  /** Epoch milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** OIDs; undefined where the certificate has no such extension and may be used for anything. */
  readonly extendedKeyUsages: readonly string[] | undefined;
  /** The hash of the issuer's signature; undefined for one that is broken or unknown, SHA-1 included. */
  readonly signatureHash: 'sha256' | 'sha384' | 'sha512' | 'intrinsic' | undefined;
}

/** Values as encoded; an IP address is 4 or 16 bytes. */
export interface AlternativeNames {
  readonly dns: readonly string[];
  readonly uri: readonly string[];
  readonly email: readonly string[];
  readonly ip: readonly Uint8Array[];
}

/** Decodes certificates. A port: the decoder is loaded only where mutual TLS is configured. */
export interface CertificateReader {
  /** @returns undefined for bytes that are no X.509 certificate in DER */
  read(der: Uint8Array): Certificate | undefined;
}

/** The `x5t#S256` thumbprint of a certificate: base64url of SHA-256 over its DER (RFC 8705 §3.1). */
export function thumbprintOf(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('base64url');
}
