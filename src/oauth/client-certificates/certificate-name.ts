// The one name that a client with `tls_client_auth` is registered by (RFC 8705 §2.1.2), and whether a certificate has it.

import { ipv6Groups } from '../values/network.ts';
import type { Certificate } from './certificate.ts';
import { DistinguishedNameError, isSubject, parseDistinguishedName } from './distinguished-name.ts';

/** A registered name as the manifest has it: text, so that many clients cost little. */
export interface CertificateName {
  readonly name: 'subjectDn' | 'sanDns' | 'sanUri' | 'sanIp' | 'sanEmail';
  readonly value: string;
}

/** A host name, perhaps with `*` as its first label: an issued certificate may have one. ASCII only. */
const DNS = /^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$/;
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/;
const EMAIL = /^[!-?A-~]+@[!-?A-~]+$/;

/** Why a name can be in no certificate, as words that follow its text; undefined for one that can. */
export function certificateNameFault({ name, value }: CertificateName): string | undefined {
  switch (name) {
    case 'subjectDn':
      return distinguishedNameFault(value);
    case 'sanDns':
      return DNS.test(value) ? undefined : 'is no DNS name in ASCII';
    case 'sanUri':
      return URI.test(value) ? undefined : 'is no absolute URI in ASCII';
    case 'sanIp':
      return ipBytes(value) === undefined ? 'is no IP address' : undefined;
    case 'sanEmail':
      return EMAIL.test(value) ? undefined : 'is no e-mail address in ASCII';
  }
}

function distinguishedNameFault(text: string): string | undefined {
  try {
    parseDistinguishedName(text);
    return undefined;
  } catch (error) {
    if (error instanceof DistinguishedNameError) return error.message;
    throw error;
  }
}

/** Whether a certificate has the name, in its own type: a DNS name in the subject is no SAN. */
export function hasName({ subject, alternativeNames }: Certificate, { name, value }: CertificateName): boolean {
  switch (name) {
    case 'subjectDn':
      return isSubject(parseDistinguishedName(value), subject);
    case 'sanDns':
      return alternativeNames.dns.some((dns) => DNS.test(dns) && dns.toLowerCase() === value.toLowerCase());
    case 'sanUri':
      return alternativeNames.uri.includes(value);
    case 'sanIp':
      return alternativeNames.ip.some((bytes) => Buffer.compare(bytes, ipBytes(value) ?? Buffer.alloc(0)) === 0);
    case 'sanEmail':
      return alternativeNames.email.includes(value);
  }
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const IPV6 = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/;

/** The 4 or 16 bytes of an IP address; undefined for any other text. */
export function ipBytes(text: string): Uint8Array | undefined {
  if (IPV4.test(text)) return Uint8Array.from(text.split('.'), Number);
  // URL parsers read an address in brackets strictly, and write it without dots.
  const address = IPV6.test(text) ? URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1) : undefined;
  return address === undefined
    ? undefined
    : Uint8Array.from(ipv6Groups(address).flatMap((group) => [group >> 8, group & 255]));
}
