// Decodes X.509 certificates by the ASN.1 schemas of @peculiar. Only imported where mutual TLS is configured: the
// schemas cost 16 MB and 40 ms.

import { X509Certificate } from 'node:crypto';
import { RsaSaPssParams } from '@peculiar/asn1-rsa';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  type AlgorithmIdentifier,
  type AttributeTypeAndValue,
  Certificate as CertificateSchema,
  ExtendedKeyUsage,
  type Extensions,
  type GeneralName,
  id_ce_extKeyUsage,
  id_ce_subjectAltName,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509';
import type {
  AlternativeNames,
  Certificate,
  CertificateReader,
  NameAttribute,
} from '../../oauth/client-certificates/certificate.ts';
import { ipBytes } from '../../oauth/client-certificates/certificate-name.ts';

export const asn1CertificateReader: CertificateReader = {
  read(der) {
    try {
      return decoded(Buffer.from(der));
    } catch {
      return undefined;
    }
  },
};

function decoded(der: Buffer): Certificate {
  const x509 = new X509Certificate(der);
  // OpenSSL reads a certificate in front of other bytes, and PEM.
  if (!x509.raw.equals(der)) throw new Error('not one certificate in DER');
  const { tbsCertificate, signatureAlgorithm } = AsnConvert.parse(der, CertificateSchema);
  const { subject, extensions = [] } = tbsCertificate;
  const usages = extension(extensions, id_ce_extKeyUsage);
  return {
    x509,
    subject: [...subject].map((attributes) => [...attributes].map(attributeIn)),
    alternativeNames: alternativeNames(extension(extensions, id_ce_subjectAltName)),
    notBefore: x509.validFromDate.getTime(),
    notAfter: x509.validToDate.getTime(),
    extendedKeyUsages: usages && [...AsnConvert.parse(usages, ExtendedKeyUsage)],
    signatureHash: signatureHash(signatureAlgorithm),
  };
}

/** RFC 5280 §4.2: no extension is there twice. */
function extension(extensions: Extensions | readonly [], id: string): Uint8Array | undefined {
  const [only, ...more] = [...extensions].filter(({ extnID }) => extnID === id);
  if (more.length > 0) throw new Error(`the extension ${id} twice`);
  return only && new Uint8Array(only.extnValue.buffer);
}

const ASCII = /^[\x20-\x7e]*$/;

function attributeIn({ type, value }: AttributeTypeAndValue): NameAttribute {
  const ascii = value.printableString ?? value.ia5String;
  // The decoder reads other bytes in these two types as Latin-1, which neither is.
  const isAscii = ascii !== undefined && ASCII.test(ascii);
  return {
    type,
    text: isAscii ? ascii : (value.utf8String ?? value.bmpString),
    der: new Uint8Array(AsnConvert.serialize(value)),
  };
}

function alternativeNames(der: Uint8Array | undefined): AlternativeNames {
  const names: readonly GeneralName[] = der === undefined ? [] : [...AsnConvert.parse(der, SubjectAlternativeName)];
  return {
    dns: names.flatMap(({ dNSName }) => dNSName ?? []),
    uri: names.flatMap(({ uniformResourceIdentifier }) => uniformResourceIdentifier ?? []),
    email: names.flatMap(({ rfc822Name }) => rfc822Name ?? []),
    ip: names.flatMap(({ iPAddress }) => (iPAddress === undefined ? [] : (ipBytes(iPAddress) ?? []))),
  };
}

const RSASSA_PSS = '1.2.840.113549.1.1.10';

/** The accepted signature algorithms. SHA-1, MD5 and unknown ones are not among them. */
const HASHES: Readonly<Record<string, Certificate['signatureHash']>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.3.101.112': 'intrinsic',
  '1.3.101.113': 'intrinsic',
  // The hashes by themselves, as the parameters of RSASSA-PSS name them.
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

function signatureHash({ algorithm, parameters }: AlgorithmIdentifier): Certificate['signatureHash'] {
  if (algorithm !== RSASSA_PSS) return HASHES[algorithm];
  // Without parameters the hash is SHA-1 (RFC 4055 §3.1).
  if (parameters === undefined || parameters === null) return undefined;
  return HASHES[AsnConvert.parse(parameters, RsaSaPssParams).hashAlgorithm.algorithm];
}
