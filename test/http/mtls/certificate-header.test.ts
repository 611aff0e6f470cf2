// The header forms of proxies (RFC 9440, Envoy, URL-encoded PEM): the bytes of one certificate, or a refusal.

import { describe, expect, it } from 'vitest';
import { CertificateHeaderError, certificateInHeader } from '../../../src/http/mtls/certificate-header.ts';

const DER = Buffer.from('any bytes: what they mean is verified later, as of a socket\xff\xfe', 'latin1');
const base64 = DER.toString('base64');
const pem = `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
const escaped = encodeURIComponent(pem);
const envoy = 'x-forwarded-client-cert';

describe('a header holds a certificate', () => {
  it.each([
    ['client-cert', `:${base64}:`],
    ['client-cert', ` :${base64}: `],
    ['x-ssl-client-cert', escaped],
    ['x-ssl-client-cert', escaped.replaceAll('%2F', '/').replaceAll('%2B', '+').replaceAll('%3D', '=')],
    [envoy, `Cert="${escaped}"`],
    [envoy, `Hash=ab;Cert="${escaped}";Subject="CN=a,O=\\"b\\";Cert=c";URI=;DNS=a.example`],
    [envoy, `By=spiffe://a/b;cert=${escaped.replaceAll('=', '%3D')}`],
  ])('given %s: %s → its bytes', (name, value) => {
    expect(certificateInHeader(name, value)).toEqual(DER);
  });

  it.each(['client-cert', 'x-ssl-client-cert', envoy])('given %s without a value → none', (name) => {
    expect(certificateInHeader(name, ' ')).toBeUndefined();
  });
});

describe('a header is broken', () => {
  it.each([
    ['client-cert', base64],
    ['client-cert', '::'],
    ['client-cert', `:${base64}`],
    ['client-cert', `:${base64}:;a=b`],
    ['client-cert', `:${base64}:, :${base64}:`],
    ['client-cert', `:${base64.slice(0, -1)}:`],
    ['client-cert', ':_-==:'],
    ['client-cert', escaped],
    ['x-ssl-client-cert', `:${base64}:`],
    ['x-ssl-client-cert', base64],
    ['x-ssl-client-cert', `${escaped}%ZZ`],
    ['x-ssl-client-cert', `${escaped}${escaped}`],
    ['x-ssl-client-cert', `${escaped}, ${escaped}`],
    ['x-ssl-client-cert', escaped.slice(0, -30)],
    ['x-ssl-client-cert', escaped.replaceAll('CERTIFICATE', 'PUBLIC%20KEY')],
    [envoy, escaped],
    [envoy, 'Hash=ab'],
    [envoy, `Cert="${escaped}",Cert="${escaped}"`],
    [envoy, `Hash=ab,Cert="${escaped}"`],
    [envoy, `Cert="${escaped}";Cert="${escaped}"`],
    [envoy, `Cert="${escaped}`],
    [envoy, `Cert="${escaped}"x`],
    [envoy, `Cert=`],
    [envoy, `=a;Cert="${escaped}"`],
  ])('given %s: %s → refused', (name, value) => {
    expect(() => certificateInHeader(name, value)).toThrow(CertificateHeaderError);
  });
});
