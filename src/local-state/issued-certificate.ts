// Makes certificates for a laptop: an authority of one's own, and what it issues to a server and a client. ECDSA with P-256.

import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

const YEARS = 10;
const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });

/** What a certificate is to say. */
export interface CertificateWishes {
  readonly commonName: string;
  readonly usage: 'authority' | 'server' | 'client';
  readonly dns?: readonly string[];
  readonly ips?: readonly string[];
}

/** What a certificate is made with. */
export interface IssuerParts {
  /** PEM of the key that is certified. */
  readonly key: string;
  /** The common name and the PEM key of the authority; of the certificate itself where it signs itself. */
  readonly issuer: { readonly commonName: string; readonly key: string };
  /** At least 16 random bytes. */
  readonly serial: Uint8Array;
  readonly now: Date;
}

/** A new private key as PEM (PKCS #8). */
export function generateKeyPem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString().trimEnd();
}

/** The certificate as PEM, valid from now for ten years. */
export function issueCertificate(wishes: CertificateWishes, { key, issuer, serial, now }: IssuerParts): string {
  const notAfter = new Date(now);
  notAfter.setUTCFullYear(now.getUTCFullYear() + YEARS);
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(serial),
    signature: ECDSA_WITH_SHA256,
    issuer: nameOf(issuer.commonName),
    validity: new Validity({ notBefore: now, notAfter }),
    subject: nameOf(wishes.commonName),
    subjectPublicKeyInfo: publicKeyInfo(createPublicKey(key)),
    extensions: new Extensions([...extensionsOf(wishes), ...keyIdentifiers(key, issuer.key)]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), createPrivateKey(issuer.key));
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: ECDSA_WITH_SHA256,
    signatureValue: arrayBuffer(signature),
  });
  const base64 = Buffer.from(AsnConvert.serialize(certificate)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----`;
}

/** RFC 5280 §4.1.2.2: positive, of at most 20 bytes. */
function serialNumber(random: Uint8Array): ArrayBuffer {
  const bytes = Buffer.from(random.subarray(0, 16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return arrayBuffer(bytes);
}

function nameOf(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

function publicKeyInfo(key: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);
}

function extensionsOf({ usage, dns = [], ips = [] }: CertificateWishes): Extension[] {
  if (usage === 'authority') {
    const uses = new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign);
    return [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true }), true),
      extension(id_ce_keyUsage, uses, true),
    ];
  }
  const purpose = usage === 'server' ? id_kp_serverAuth : id_kp_clientAuth;
  const names = [
    ...dns.map((dNSName) => new GeneralName({ dNSName })),
    ...ips.map((iPAddress) => new GeneralName({ iPAddress })),
  ];
  return [
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([purpose])),
    ...(names.length === 0 ? [] : [extension(id_ce_subjectAltName, new SubjectAlternativeName(names))]),
  ];
}

/** RFC 5280 §4.2.1.1, §4.2.1.2: strict verifiers want both. */
function keyIdentifiers(key: string, issuerKey: string): Extension[] {
  const identifierOf = (pem: string) => {
    const { subjectPublicKey } = publicKeyInfo(createPublicKey(pem));
    return arrayBuffer(hash('sha1', Buffer.from(subjectPublicKey), 'buffer'));
  };
  const keyIdentifier = new KeyIdentifier(identifierOf(issuerKey));
  return [
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(identifierOf(key))),
    extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier })),
  ];
}

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function arrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
