// Names as manifests write them (RFC 4514) against subjects as certificates hold them (security row M3): only the same
// sequence of sets of attributes is the same name.

import { describe, expect, it } from 'vitest';
import type { NameAttribute } from '../../../src/oauth/client-certificates/certificate.ts';
import {
  DistinguishedNameError,
  isSubject,
  parseDistinguishedName,
} from '../../../src/oauth/client-certificates/distinguished-name.ts';

const [CN, O, OU, C] = ['2.5.4.3', '2.5.4.10', '2.5.4.11', '2.5.4.6'];

/** An attribute as a certificate with a UTF8String has it. */
function utf8(type: string, text: string): NameAttribute {
  const bytes = Buffer.from(text);
  return { type, text, der: Buffer.concat([Buffer.from([12, bytes.length]), bytes]) };
}

describe('a name is the subject of a certificate', () => {
  const cases: readonly (readonly [string, readonly (readonly NameAttribute[])[]])[] = [
    ['CN=billing', [[utf8(CN, 'billing')]]],
    ['cn=billing', [[utf8(CN, 'billing')]]],
    ['2.5.4.3=billing', [[utf8(CN, 'billing')]]],
    ['CN=billing,O=Shop,C=DE', [[utf8(C, 'DE')], [utf8(O, 'Shop')], [utf8(CN, 'billing')]]],
    ['CN=Shop\\, Inc.', [[utf8(CN, 'Shop, Inc.')]]],
    ['CN=Shop\\2C Inc.', [[utf8(CN, 'Shop, Inc.')]]],
    ['CN=\\ a\\ ', [[utf8(CN, ' a ')]]],
    ['CN=\\#a\\=b=c', [[utf8(CN, '#a=b=c')]]],
    ['CN=a\\\\\\"\\+\\;\\<\\>', [[utf8(CN, 'a\\"+;<>')]]],
    ['CN=Lu\\C4\\8Di\\C4\\87', [[utf8(CN, 'Lučić')]]],
    ['CN=Lučić', [[utf8(CN, 'Lučić')]]],
    ['CN=#0c0161', [[utf8(CN, 'a')]]],
    ['OU=b+CN=a', [[utf8(CN, 'a'), utf8(OU, 'b')]]],
    ['emailAddress=a@shop.example', [[utf8('1.2.840.113549.1.9.1', 'a@shop.example')]]],
    [
      'serialNumber=7,UID=u,DC=example',
      [
        [utf8('0.9.2342.19200300.100.1.25', 'example')],
        [utf8('0.9.2342.19200300.100.1.1', 'u')],
        [utf8('2.5.4.5', '7')],
      ],
    ],
  ];

  it.each(cases)('given %s → it is', (text, subject) => {
    expect(isSubject(parseDistinguishedName(text), subject)).toBe(true);
  });
});

describe('a name is not the subject of a certificate', () => {
  const cases: readonly (readonly [string, string, readonly (readonly NameAttribute[])[]])[] = [
    ['another order', 'CN=billing,O=Shop', [[utf8(CN, 'billing')], [utf8(O, 'Shop')]]],
    ['another case', 'CN=billing', [[utf8(CN, 'Billing')]]],
    ['more sets', 'CN=billing', [[utf8(O, 'Shop')], [utf8(CN, 'billing')]]],
    ['fewer sets', 'CN=billing,O=Shop', [[utf8(CN, 'billing')]]],
    ['a value that reads as two attributes', 'CN=billing,O=Shop', [[utf8(CN, 'billing,O=Shop')]]],
    ['a set in place of a sequence', 'CN=a,OU=b', [[utf8(CN, 'a'), utf8(OU, 'b')]]],
    ['a value behind a NUL', 'CN=billing', [[utf8(CN, 'billing\0.evil.example')]]],
    ['another type', 'CN=billing', [[utf8(OU, 'billing')]]],
    ['another string type where bytes are asked for', 'CN=#130161', [[utf8(CN, 'a')]]],
    ['no text where text is asked for', 'CN=a', [[{ type: CN, text: undefined, der: Buffer.from('140161', 'hex') }]]],
    ['one attribute for two', 'CN=a+CN=#0c0161', [[utf8(CN, 'a'), utf8(CN, 'b')]]],
    ['a composed character', 'CN=\u00e9', [[utf8(CN, 'e\u0301')]]],
  ];

  it.each(cases)('given %s → it is not', (_, text, subject) => {
    expect(isSubject(parseDistinguishedName(text), subject)).toBe(false);
  });
});

describe('a text is no name', () => {
  it.each([
    ['nothing', ''],
    ['no type', 'billing'],
    ['an unknown type', 'XX=billing'],
    ['a malformed OID', '2.05.4=a'],
    ['no value', 'CN='],
    ['an end behind a separator', 'CN=a,'],
    ['a space behind a separator', 'CN=a, O=b'],
    ['the slashes of OpenSSL alone', '/CN=a'],
    ['a NUL', 'CN=a\0'],
    ['an escaped NUL', 'CN=a\\00b'],
    ['a plus inside a value', 'CN=a+b'],
    ['a quote', 'CN="a"'],
    ['a space at the beginning', 'CN= a'],
    ['a space at the end', 'CN=a '],
    ['an escape of nothing', 'CN=a\\'],
    ['an escape of a letter', 'CN=\\zz'],
    ['half a byte', 'CN=#0c016'],
    ['bytes that are not UTF-8', 'CN=\\C3'],
    ['one attribute twice', 'CN=a+CN=a'],
    ['a lone surrogate', 'CN=\ud800'],
  ])('given %s → refused', (_, text) => {
    expect(() => parseDistinguishedName(text)).toThrow(DistinguishedNameError);
  });
});
