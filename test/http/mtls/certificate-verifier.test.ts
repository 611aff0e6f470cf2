// The verifier of client certificates with its real decoder, on certificates that openssl made (security rows M2, M3; RFC
// 8705 §2): which leaf authenticates a client, and the reason of each that does not.

import { X509Certificate } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { asn1CertificateReader } from '../../../src/http/mtls/asn1-certificate-reader.ts';
import { thumbprintOf } from '../../../src/oauth/client-certificates/certificate.ts';
import { CertificateAuthorities } from '../../../src/oauth/client-certificates/certificate-authorities.ts';
import type { CertificateName } from '../../../src/oauth/client-certificates/certificate-name.ts';
import { CertificateVerifier } from '../../../src/oauth/client-certificates/certificate-verifier.ts';
import { type RegisteredKey, readRegisteredKey } from '../../../src/oauth/client-certificates/registered-keys.ts';
import { CertificateMaker, type MadeCertificate, type Wishes } from '../../client-certificates.ts';

const maker = new CertificateMaker();
const authority = maker.authority();
const DAY = 86_400_000;

afterAll(() => maker.remove());

interface Circumstances {
  /** PEM of the file of authorities. */
  readonly file?: string | undefined;
  readonly now?: number;
}

function verifier({ file = authority.certificate, now }: Circumstances = {}): CertificateVerifier {
  const authorities = CertificateAuthorities.parse(file);
  return new CertificateVerifier({
    reader: asn1CertificateReader,
    authorities: () => authorities,
    clock: { now: () => now ?? Date.now() },
  });
}

const BILLING: CertificateName = { name: 'subjectDn', value: 'CN=billing,O=Shop' };
const billing = (wishes: Wishes = {}) => maker.client(authority, { subject: '/O=Shop/CN=billing', ...wishes });

describe('a certificate of a name', () => {
  const eku = 'extendedKeyUsage=clientAuth';
  const cases: readonly (readonly [string, CertificateName, Wishes])[] = [
    ['its subject', BILLING, {}],
    ['its subject in string types of its own', { name: 'subjectDn', value: 'CN=caf\\C3\\A9' }, { subject: '/CN=café' }],
    ['a set of two attributes', { name: 'subjectDn', value: 'OU=b+CN=a,O=Shop' }, { subject: '/O=Shop/CN=a+OU=b' }],
    [
      'a DNS name',
      { name: 'sanDns', value: 'B.Shop.example' },
      { extensions: [eku, 'subjectAltName=DNS:b.shop.example'] },
    ],
    ['one of two DNS names', { name: 'sanDns', value: 'b' }, { extensions: [eku, 'subjectAltName=DNS:a,DNS:b'] }],
    [
      'a URI',
      { name: 'sanUri', value: 'spiffe://shop/billing' },
      { extensions: [eku, 'subjectAltName=URI:spiffe://shop/billing'] },
    ],
    ['an IPv4 address', { name: 'sanIp', value: '10.1.2.3' }, { extensions: [eku, 'subjectAltName=IP:10.1.2.3'] }],
    [
      'an IPv6 address in another spelling',
      { name: 'sanIp', value: '2001:DB8:0::1' },
      { extensions: [eku, 'subjectAltName=IP:2001:db8::1'] },
    ],
    [
      'an e-mail address',
      { name: 'sanEmail', value: 'ops@shop.example' },
      { extensions: [eku, 'subjectAltName=email:ops@shop.example'] },
    ],
    ['no extended key usage', BILLING, { extensions: [] }],
    ['two usages', BILLING, { extensions: ['extendedKeyUsage=serverAuth,clientAuth'] }],
    ['a key of RSA', BILLING, { newKey: ['rsa:2048'] }],
    ['a key of Ed25519', BILLING, { newKey: ['ed25519'] }],
  ];

  it.each(cases)('given %s → it authenticates', (_, name, wishes) => {
    expect(verifier().nameFault(billing(wishes).der, name)).toBeUndefined();
  });

  const rsa = maker.authority('/CN=RSA CA', { newKey: ['rsa:2048'] });
  const pss = (hash: string) => ['-sigopt', 'rsa_padding_mode:pss', `-${hash}`];
  it.each([
    ['sha256', []],
    ['sha512', ['-sha512']],
    ['RSASSA-PSS with sha256', pss('sha256')],
  ])('given a signature by RSA with %s → it authenticates', (_, signing) => {
    const leaf = maker.client(rsa, { subject: '/O=Shop/CN=billing', signing });
    expect(verifier({ file: rsa.certificate }).nameFault(leaf.der, BILLING)).toBeUndefined();
  });

  it.each([
    ['RSA with SHA-1', ['-sha1']],
    ['RSASSA-PSS with SHA-1', pss('sha1')],
  ])('given a signature by %s → certificate_weak', (_, signing) => {
    const leaf = maker.client(rsa, { subject: '/O=Shop/CN=billing', signing });
    expect(verifier({ file: rsa.certificate }).nameFault(leaf.der, BILLING)).toBe('certificate_weak');
  });

  it('given a key of RSA with 1024 bits → certificate_weak', () => {
    expect(verifier().nameFault(billing({ newKey: ['rsa:1024'] }).der, BILLING)).toBe('certificate_weak');
  });

  it('given the usage of a server alone → certificate_usage', () => {
    const leaf = billing({ extensions: ['extendedKeyUsage=serverAuth'] });
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_usage');
  });

  it('given the same name from an authority with the same name → certificate_untrusted', () => {
    const impostor = maker.authority();
    const leaf = maker.client(impostor, { subject: '/O=Shop/CN=billing' });
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
    expect(verifier({ file: impostor.certificate }).nameFault(leaf.der, BILLING)).toBeUndefined();
  });

  it('given an issuer that is in the file only by its own issuer → certificate_untrusted; in the file itself → it authenticates', () => {
    const intermediate = maker.authority('/CN=Intermediate', { issuer: authority });
    const leaf = maker.client(intermediate, { subject: '/O=Shop/CN=billing' });
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
    expect(verifier({ file: intermediate.certificate }).nameFault(leaf.der, BILLING)).toBeUndefined();
  });

  it('given a leaf that another leaf has signed → certificate_untrusted', () => {
    const signer = billing();
    const leaf = maker.client(signer, { subject: '/O=Shop/CN=billing' });
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
  });

  it('given the name of the authority, no key identifier, and a signature by another key → certificate_untrusted', () => {
    const impostor = maker.authority('/CN=Test CA', { extensions: ['basicConstraints=critical,CA:TRUE'] });
    const extensions = ['extendedKeyUsage=clientAuth', 'authorityKeyIdentifier=none'];
    const leaf = maker.client(impostor, { subject: '/O=Shop/CN=billing', extensions });
    expect(new X509Certificate(leaf.der).checkIssued(new X509Certificate(authority.der))).toBe(true);
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
  });

  it('given a self-signed certificate of the name → certificate_untrusted', () => {
    const leaf = maker.make({ subject: '/O=Shop/CN=billing' });
    expect(verifier().nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
  });

  it('given its dates → valid from the first to the last second of them', () => {
    const leaf = billing();
    const { validFromDate, validToDate } = new X509Certificate(leaf.der);
    const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
    // The authority began a moment before, and lasts as long.
    const longer = maker.authority('/CN=Test CA', { days: 60 });
    const lasting = maker.client(longer, { subject: '/O=Shop/CN=billing', days: 30 });
    const end = new X509Certificate(lasting.der).validToDate.getTime();
    expect(verifier({ now: from - 1 }).nameFault(leaf.der, BILLING)).toBe('certificate_not_yet_valid');
    expect(verifier({ now: from }).nameFault(leaf.der, BILLING)).toBeUndefined();
    expect(verifier({ file: longer.certificate, now: end + 999 }).nameFault(lasting.der, BILLING)).toBeUndefined();
    expect(verifier({ file: longer.certificate, now: end + 1000 }).nameFault(lasting.der, BILLING)).toBe(
      'certificate_expired',
    );
    expect(to).toBeGreaterThan(from);
  });

  it('given an authority that has expired → certificate_authority_expired', () => {
    const short = maker.authority('/CN=Short CA', { days: 1 });
    const leaf = maker.client(short, { subject: '/O=Shop/CN=billing' });
    const after = verifier({ file: short.certificate, now: Date.now() + 2 * DAY });
    expect(after.nameFault(leaf.der, BILLING)).toBe('certificate_authority_expired');
  });

  it.each(['before', 'behind'])(
    'given an expired authority %s its renewal of the same key → it authenticates',
    (place) => {
      const expired = maker.authority('/CN=Short CA', { days: 1 });
      const renewal = maker.renewed(expired, '/CN=Short CA');
      const leaf = maker.client(expired, { subject: '/O=Shop/CN=billing' });
      const both = [expired, renewal].map(({ certificate }) => certificate);
      const file = (place === 'before' ? both : both.reverse()).join('');
      expect(verifier({ file, now: Date.now() + 2 * DAY }).nameFault(leaf.der, BILLING)).toBeUndefined();
    },
  );

  it('given a stranger with the names of both, after a right certificate → certificate_untrusted; the right one stays good', () => {
    const impostor = maker.authority();
    const stranger = maker.client(impostor, { subject: '/O=Shop/CN=billing' });
    const own = billing();
    const one = verifier();
    for (const _ of ['cold', 'warm']) {
      expect(one.nameFault(own.der, BILLING)).toBeUndefined();
      expect(one.nameFault(stranger.der, BILLING)).toBe('certificate_untrusted');
    }
  });

  it('given an authority that is not valid yet → certificate_authority_expired, as one that is not valid any more', () => {
    const { der } = billing();
    const start = new X509Certificate(authority.der).validFromDate.getTime();
    const authorities = CertificateAuthorities.parse(authority.certificate);
    // A leaf of any time: openssl makes none of before its authority.
    const read = (leaf: Uint8Array) => Object.assign({}, asn1CertificateReader.read(leaf), { notBefore: 0 });
    const at = (now: number) =>
      new CertificateVerifier({ reader: { read }, authorities: () => authorities, clock: { now: () => now } });
    expect(at(start - 1).nameFault(der, BILLING)).toBe('certificate_authority_expired');
    expect(at(start).nameFault(der, BILLING)).toBeUndefined();
  });

  it('given no file of authorities → certificate_untrusted', () => {
    const none = new CertificateVerifier({ reader: asn1CertificateReader, authorities: () => undefined, clock: Date });
    expect(none.nameFault(billing().der, BILLING)).toBe('certificate_untrusted');
  });

  it('given a certificate again → it is decoded once, and verified each time', () => {
    const read = vi.fn(asn1CertificateReader.read);
    const authorities = CertificateAuthorities.parse(authority.certificate);
    const one = new CertificateVerifier({ reader: { read }, authorities: () => authorities, clock: Date });
    const { der } = billing();
    const names = [BILLING, { name: 'subjectDn', value: 'CN=other' }, BILLING] as const;
    const faults = names.map((name) => one.nameFault(der, name));
    expect(faults).toEqual([undefined, 'certificate_name_mismatch', undefined]);
    expect(one.keyFault(der, { certificates: [], keys: [] })).toBe('certificate_key_mismatch');
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('given another file of authorities → a leaf that was valid is verified by that', () => {
    const other = maker.authority('/CN=Other CA');
    let authorities = CertificateAuthorities.parse(authority.certificate);
    const changing = new CertificateVerifier({
      reader: asn1CertificateReader,
      authorities: () => authorities,
      clock: { now: Date.now },
    });
    const leaf = billing();
    expect(changing.nameFault(leaf.der, BILLING)).toBeUndefined();
    authorities = CertificateAuthorities.parse(other.certificate);
    expect(changing.nameFault(leaf.der, BILLING)).toBe('certificate_untrusted');
  });
});

describe('a certificate of another name', () => {
  const san = (...names: readonly string[]) => ({ extensions: names.map((name) => `subjectAltName=${name}`) });
  it.each<readonly [string, CertificateName, Wishes]>([
    ['the order of the subject reversed', { name: 'subjectDn', value: 'O=Shop,CN=billing' }, {}],
    ['a comma inside a value', BILLING, { subject: '/CN=billing,O=Shop' }],
    ['the DNS name in the subject alone', { name: 'sanDns', value: 'billing' }, { subject: '/CN=billing' }],
    ['the DNS name as a URI', { name: 'sanDns', value: 'billing' }, san('URI:billing')],
    [
      'a DNS name that holds another in the form of Node',
      { name: 'sanDns', value: 'billing' },
      { extensions: ['subjectAltName=@names', '[names]', 'DNS.1=a, DNS:billing'] },
    ],
    ['a wildcard for the name', { name: 'sanDns', value: 'a.shop.example' }, san('DNS:*.shop.example')],
    ['a URI in another case', { name: 'sanUri', value: 'spiffe://shop/a' }, san('URI:spiffe://shop/A')],
    [
      'an e-mail address in another case',
      { name: 'sanEmail', value: 'ops@shop.example' },
      san('email:Ops@shop.example'),
    ],
    ['an IPv4 address inside IPv6', { name: 'sanIp', value: '10.1.2.3' }, san('IP:::ffff:10.1.2.3')],
    ['an IP address as a DNS name', { name: 'sanIp', value: '10.1.2.3' }, san('DNS:10.1.2.3')],
  ])('given %s → certificate_name_mismatch', (_, name, wishes) => {
    expect(verifier().nameFault(billing(wishes).der, name)).toBe('certificate_name_mismatch');
  });

  it('given the bytes of another character in a PrintableString → the subject is no text', () => {
    const leaf = billing({ subject: '/O=Shop/CN=billi\u00f1g' }).der;
    leaf[leaf.lastIndexOf('billi\u00f1g') - 2] = 0x13;
    const { subject } = asn1CertificateReader.read(leaf) ?? {};
    expect(subject?.at(-1)?.[0]?.text).toBeUndefined();
  });

  it('given a NUL behind the name → the subject is another', () => {
    const leaf = billing({ subject: '/O=Shop/CN=billing.evil' }).der;
    leaf[leaf.lastIndexOf('billing.evil') + 'billing'.length] = 0;
    const { subject } = asn1CertificateReader.read(leaf) ?? {};
    expect(subject?.at(-1)?.[0]?.text).toBe('billing\0evil');
  });
});

describe('bytes that are no certificate', () => {
  const leaf = billing().der;
  it.each<readonly [string, () => Buffer]>([
    ['nothing', () => Buffer.alloc(0)],
    ['text', () => Buffer.from('certificate')],
    ['PEM', () => Buffer.from(authority.certificate)],
    ['half a certificate', () => leaf.subarray(0, leaf.length / 2)],
    ['a certificate with bytes behind it', () => Buffer.concat([leaf, Buffer.from([0])])],
    [
      'a subject that is not UTF-8',
      () => replaced(billing({ subject: '/O=Shop/CN=billi\u00f1g' }).der, '\u00f1', [0xc3, 0x28]),
    ],
  ])('given %s → certificate_malformed', (_, bytes) => {
    const one = verifier();
    for (const _ of ['cold', 'warm']) {
      expect(one.nameFault(bytes(), BILLING)).toBe('certificate_malformed');
      expect(one.keyFault(bytes(), { certificates: [], keys: [] })).toBe('certificate_malformed');
    }
  });
});

function replaced(der: Buffer, text: string, bytes: readonly number[]): Buffer {
  Buffer.from(bytes).copy(der, der.lastIndexOf(text));
  return der;
}

describe('a self-signed certificate', () => {
  const own = maker.make({ subject: '/CN=own' });
  const jwkOf = (made: MadeCertificate) => new X509Certificate(made.der).publicKey.export({ format: 'jwk' });
  const x5c = (made: MadeCertificate) => [made.der.toString('base64')];
  const registered = (...jwks: readonly Readonly<Record<string, unknown>>[]) => {
    const keys = jwks.map(readRegisteredKey);
    expect(keys.every((key) => typeof key === 'object')).toBe(true);
    const read = keys as readonly RegisteredKey[];
    return {
      certificates: read.flatMap((key) => ('certificate' in key ? key.certificate : [])),
      keys: read.flatMap((key) => ('key' in key ? key.key : [])),
    };
  };

  it('given its key among the registered ones → it authenticates', () => {
    const other = jwkOf(maker.make({ newKey: ['rsa:2048'] }));
    expect(verifier().keyFault(own.der, registered(other, jwkOf(own)))).toBeUndefined();
    expect(verifier().keyFault(own.der, registered(other))).toBe('certificate_key_mismatch');
    expect(verifier().keyFault(own.der, registered())).toBe('certificate_key_mismatch');
  });

  it('given a key with its certificate → that certificate authenticates, and no other of the same key', () => {
    const certificateAlone = registered({ ...jwkOf(own), x5c: x5c(own) });
    const renewed = maker.renewed(own, '/CN=own');
    expect(jwkOf(renewed)).toEqual(jwkOf(own));
    expect(verifier().keyFault(own.der, certificateAlone)).toBeUndefined();
    expect(verifier().keyFault(renewed.der, certificateAlone)).toBe('certificate_key_mismatch');
    expect(verifier().keyFault(renewed.der, registered(jwkOf(own)))).toBeUndefined();
  });

  it.each([
    ['of a curve without a form as JWK', ['ec', '-pkeyopt', 'ec_paramgen_curve:brainpoolP256r1']],
    ['of RSA that is too short to be registered', ['rsa:1024']],
  ])('given a key %s → it is none of the registered ones', (_, newKey) => {
    const strange = maker.make({ subject: '/CN=own', newKey });
    expect(verifier().keyFault(strange.der, registered(jwkOf(own)))).toBe('certificate_key_mismatch');
    expect(verifier().keyFault(strange.der, registered())).toBe('certificate_key_mismatch');
    expect(readRegisteredKey({ ...jwkOf(own), x5c: x5c(strange) })).toBe('certificate_of_another_key');
  });

  it('given certificates of any length → their base64 counts with the padding that is due, and no other text', () => {
    const made = new Map<number, MadeCertificate>();
    for (let length = 1; made.size < 3; length++) {
      const certificate = maker.make({ subject: `/CN=${'a'.repeat(length)}` });
      made.set(certificate.der.length % 3, certificate);
    }
    for (const certificate of made.values()) {
      const [text = ''] = x5c(certificate);
      const read = (first: string) => readRegisteredKey({ ...jwkOf(certificate), x5c: [first] });
      expect(read(text)).toEqual({ certificate: thumbprintOf(certificate.der) });
      const url = text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
      const wrapped = text.replace(/.{64}/g, '$&\n');
      for (const other of [
        wrapped,
        `-${text}`,
        ` ${text}`,
        `${text} `,
        `${text}-`,
        `${text}=`,
        url === text ? '' : url,
      ]) {
        expect(read(other), other).toBe('certificate_malformed');
      }
    }
  });

  it('given no authorities, a weak signature and the usage of a server → only its dates and its key count', () => {
    const leaf = maker.make({ extensions: ['extendedKeyUsage=serverAuth'], newKey: ['rsa:2048'], signing: ['-sha1'] });
    const alone = (now: number) =>
      new CertificateVerifier({
        reader: asn1CertificateReader,
        authorities: () => undefined,
        clock: { now: () => now },
      });
    const keys = registered(jwkOf(leaf));
    expect(alone(Date.now() + 1000).keyFault(leaf.der, keys)).toBeUndefined();
    expect(alone(Date.now() + 31 * DAY).keyFault(leaf.der, keys)).toBe('certificate_expired');
    expect(alone(Date.now() - DAY).keyFault(leaf.der, keys)).toBe('certificate_not_yet_valid');
  });

  it.each<readonly [string, () => object]>([
    ['certificate_malformed', () => ({ ...jwkOf(own), x5c: ['AAAA'] })],
    ['certificate_malformed', () => ({ ...jwkOf(own), x5c: [own.certificate] })],
    ['certificate_of_another_key', () => ({ ...jwkOf(own), x5c: x5c(authority) })],
    ['private_member', () => ({ ...jwkOf(own), d: 'AAAA' })],
    ['unsupported_key_type', () => ({ kty: 'oct' })],
  ])('given a registered key with %s → refused', (fault, jwk) => {
    expect(readRegisteredKey(jwk())).toBe(fault);
  });
});

describe('a file of authorities', () => {
  const CUT_OFF = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  it.each([
    ['nothing in it', '', /no PEM certificate/],
    ['text alone', 'the authorities of our clients', /no PEM certificate/],
    ['a certificate of a client', billing().certificate, /certificate 1 .* not one of an authority/],
    ['a certificate cut off', CUT_OFF, /certificate 1 .* cannot be read/],
    [
      'an authority and a certificate of a client',
      authority.certificate + billing().certificate,
      /certificate 2 .* not/,
    ],
    ['an authority and a certificate cut off', authority.certificate + CUT_OFF, /certificate 2 .* cannot be read/],
  ])('given %s → refused, and the place named', (_, text, fault) => {
    expect(() => CertificateAuthorities.parse(text)).toThrow(fault);
  });

  it('given a leaf again → its signature is not verified again, a right one as little as a wrong one', () => {
    const verify = vi.spyOn(X509Certificate.prototype, 'verify');
    onTestFinished(() => verify.mockRestore());
    const extensions = ['extendedKeyUsage=clientAuth', 'authorityKeyIdentifier=none'];
    const impostor = maker.authority('/CN=Test CA', { extensions: ['basicConstraints=critical,CA:TRUE'] });
    const leaves = [billing(), maker.client(impostor, { subject: '/O=Shop/CN=billing', extensions })];
    const one = verifier();
    const faults = () => leaves.map(({ der }) => one.nameFault(der, BILLING));
    expect(faults()).toEqual([undefined, 'certificate_untrusted']);
    expect(faults()).toEqual([undefined, 'certificate_untrusted']);
    expect(verify).toHaveBeenCalledTimes(2);
  });
});
