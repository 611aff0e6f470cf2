// The validation of public keys by their shape, and their thumbprints.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { readJwk, readJwkSet, thumbprintOf } from '../../../src/oauth/values/jwk.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { aKey, grantryAccepts, readKey, sign, type TestKey } from './signed-tokens.ts';

/** A key whose JWK has no `alg`. */
function bareKey(algorithm: SigningAlgorithm): TestKey {
  const { jwk, ...key } = aKey(algorithm);
  delete jwk.alg;
  return { ...key, jwk };
}

const [es256, es384, rs256, eddsa] = [bareKey('ES256'), bareKey('ES384'), bareKey('RS256'), bareKey('EdDSA')];

/** A modulus of that many bits. */
function modulus(bits: number): string {
  const bytes = randomBytes(Math.ceil(bits / 8));
  const first = 2 ** ((bits - 1) % 8);
  bytes[0] = first | ((bytes[0] as number) & (first - 1));
  return bytes.toString('base64url');
}
const hex = (digits: string) => Buffer.from(digits, 'hex').toString('base64url');
const changed = (text: string | undefined, by: (bytes: Buffer) => Uint8Array) =>
  Buffer.from(by(Buffer.from(text ?? '', 'base64url'))).toString('base64url');
const outcomeOf = (value: unknown) => {
  const key = readJwk(value);
  return typeof key === 'string' ? key : key.algorithms;
};

describe('a JWK', () => {
  it.each([
    ['a key on P-256', es256.jwk, ['ES256']],
    ['a key on P-384', es384.jwk, ['ES384']],
    ['an Ed25519 key', eddsa.jwk, ['EdDSA']],
    ['an Ed25519 key with alg Ed25519', { ...eddsa.jwk, alg: 'Ed25519' }, ['EdDSA']],
    ['an RSA key', rs256.jwk, ['PS256', 'RS256']],
    ['an RSA key with alg PS256', { ...rs256.jwk, alg: 'PS256' }, ['PS256']],
    ['an RSA key with alg RS256', { ...rs256.jwk, alg: 'RS256' }, ['RS256']],
    ['use sig and key_ops verify', { ...es256.jwk, use: 'sig', key_ops: ['verify'] }, ['ES256']],
    ['key_ops verify among others', { ...es256.jwk, key_ops: ['sign', 'verify'] }, ['ES256']],
    ['members that are not known', { ...es256.jwk, x5c: ['AA=='], exp: 1, toString: 'x' }, ['ES256']],
    ['RSA of 2048 bits', { ...rs256.jwk, n: modulus(2048) }, ['PS256', 'RS256']],
    ['RSA of 4096 bits', { ...rs256.jwk, n: modulus(4096) }, ['PS256', 'RS256']],
    ['the exponent 3', { ...rs256.jwk, e: 'Aw' }, ['PS256', 'RS256']],
    ['the exponent of 32 bits', { ...rs256.jwk, e: hex('ffffffff') }, ['PS256', 'RS256']],
  ])('with %s → accepted', (_, jwk, algorithms) => {
    expect(outcomeOf(jwk)).toEqual(algorithms);
  });

  it.each([
    ['RSA of 512 bits', { ...rs256.jwk, n: modulus(512) }, 'rsa_modulus_size'],
    ['RSA of 1024 bits', { ...rs256.jwk, n: modulus(1024) }, 'rsa_modulus_size'],
    ['RSA of 2047 bits', { ...rs256.jwk, n: modulus(2047) }, 'rsa_modulus_size'],
    ['RSA of 4097 bits', { ...rs256.jwk, n: modulus(4097) }, 'rsa_modulus_size'],
    ['RSA of 16384 bits', { ...rs256.jwk, n: modulus(16384) }, 'rsa_modulus_size'],
    ['an exponent of 3072 bits', { ...rs256.jwk, e: changed(modulus(3072), (e) => e.fill(1, 383)) }, 'rsa_exponent'],
    ['an exponent of 33 bits', { ...rs256.jwk, e: hex('0100000001') }, 'rsa_exponent'],
    ['the exponent 1', { ...rs256.jwk, e: 'AQ' }, 'rsa_exponent'],
    ['an even exponent', { ...rs256.jwk, e: hex('010000') }, 'rsa_exponent'],
    ['the exponent 0', { ...rs256.jwk, e: 'AA' }, 'malformed'],
    ['a zero before the exponent', { ...rs256.jwk, e: hex('00010001') }, 'malformed'],
    ['a zero before the modulus', { ...rs256.jwk, n: hex(`00${'ff'.repeat(256)}`) }, 'malformed'],
    ['an empty modulus', { ...rs256.jwk, n: '' }, 'malformed'],
    ['no exponent', { ...rs256.jwk, e: undefined }, 'malformed'],
    ['a modulus that is a number', { ...rs256.jwk, n: 12345 }, 'malformed'],
    ['a padded coordinate', { ...es256.jwk, x: `${es256.jwk.x}=` }, 'malformed'],
    ['a coordinate of 31 bytes', { ...es256.jwk, y: hex('ab'.repeat(31)) }, 'malformed'],
    ['a coordinate of 33 bytes', { ...es256.jwk, y: hex('ab'.repeat(33)) }, 'malformed'],
    ['the coordinates of P-256 on P-384', { ...es256.jwk, crv: 'P-384' }, 'malformed'],
    ['no y', { ...es256.jwk, y: undefined }, 'malformed'],
    ['an Ed25519 x of 31 bytes', { ...eddsa.jwk, x: hex('ab'.repeat(31)) }, 'malformed'],
    ['no kty', { ...es256.jwk, kty: undefined }, 'malformed'],
    ['a kid that is a number', { ...es256.jwk, kid: 1 }, 'malformed'],
    ['an alg that is a list', { ...es256.jwk, alg: ['ES256'] }, 'malformed'],
    ['key_ops that is text', { ...es256.jwk, key_ops: 'verify' }, 'malformed'],
    ['a list in its place', [es256.jwk], 'malformed'],
    ['null in its place', null, 'malformed'],
    ['text in its place', 'EC', 'malformed'],
    ['kty oct', { kty: 'oct', alg: 'HS256' }, 'unsupported_key_type'],
    ['an inherited kty', JSON.parse('{"__proto__": {"kty": "oct"}}'), 'malformed'],
    ['kty AKP', { kty: 'AKP', alg: 'ML-DSA-44', pub: 'AA' }, 'unsupported_key_type'],
    ['P-521', { ...es256.jwk, crv: 'P-521' }, 'unsupported_key_type'],
    ['secp256k1', { ...es256.jwk, crv: 'secp256k1' }, 'unsupported_key_type'],
    ['X25519', { ...eddsa.jwk, crv: 'X25519' }, 'unsupported_key_type'],
    ['Ed448', { ...eddsa.jwk, crv: 'Ed448' }, 'unsupported_key_type'],
    ['ES384 on P-256', { ...es256.jwk, alg: 'ES384' }, 'unsupported_algorithm'],
    ['alg HS256 on an RSA key', { ...rs256.jwk, alg: 'HS256' }, 'unsupported_algorithm'],
    ['alg PS512', { ...rs256.jwk, alg: 'PS512' }, 'unsupported_algorithm'],
    ['alg RSA-OAEP', { ...rs256.jwk, alg: 'RSA-OAEP' }, 'unsupported_algorithm'],
    ['alg none', { ...rs256.jwk, alg: 'none' }, 'unsupported_algorithm'],
    ['an empty alg', { ...rs256.jwk, alg: '' }, 'unsupported_algorithm'],
    ['use enc', { ...es256.jwk, use: 'enc' }, 'wrong_use'],
    ['key_ops sign', { ...es256.jwk, key_ops: ['sign'] }, 'wrong_use'],
    ['no key_ops at all', { ...es256.jwk, key_ops: [] }, 'wrong_use'],
  ])('with %s → %s', (_, jwk, fault) => {
    expect(outcomeOf(jwk)).toBe(fault);
  });

  it.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])('with the private member %s → private_member', (member) => {
    for (const { jwk } of [es256, eddsa, rs256]) expect(outcomeOf({ ...jwk, [member]: '' })).toBe('private_member');
    expect(outcomeOf({ kty: 'oct', [member]: 'AA' })).toBe('private_member');
  });

  it('of a whole private key → private_member', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(outcomeOf(privateKey.export({ format: 'jwk' }))).toBe('private_member');
  });

  it('whose point is not on its curve → passes by its shape, has no key and verifies nothing', async () => {
    const broken = { ...es256.jwk, y: changed(es256.jwk.y, (y) => y.fill((y.at(-1) as number) ^ 1, 31)) };
    const key = readKey(broken);
    expect([key.keyObject, key.keyObject]).toEqual([undefined, undefined]);
    expect(grantryAccepts(await sign(es256), key)).toBe(false);
  });

  it('is imported once', () => {
    const key = readKey(es256.jwk);
    expect(key.keyObject).toBe(key.keyObject);
    expect(key.keyObject?.type).toBe('public');
  });
});

describe('an RFC 7638 thumbprint', () => {
  it('of every key type → the one that jose calculates, whatever other members there are', async () => {
    for (const { jwk } of [es256, es384, rs256, eddsa]) {
      const key = readKey({ kid: 'other', use: 'sig', ...jwk });
      expect(key.thumbprint).toBe(await calculateJwkThumbprint(jwk));
      expect(thumbprintOf(key.jwk)).toBe(key.thumbprint);
    }
  });

  it('of the key of RFC 8037, appendix A.2 → that of appendix A.3', () => {
    const key = readKey({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' });
    expect(key.thumbprint).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });
});

describe('a JWK Set', () => {
  it('→ its keys in their order, and the fault of each other one by its index', () => {
    const set = readJwkSet({ keys: [{ kty: 'oct' }, { ...es256.jwk, kid: 'a' }, { ...es256.jwk, d: '' }, eddsa.jwk] });
    if (typeof set === 'string') throw new Error(set);
    expect(set.keys.map(({ kid, algorithms }) => [kid, ...algorithms])).toEqual([
      ['a', 'ES256'],
      [undefined, 'EdDSA'],
    ]);
    expect(set.faults).toEqual([
      { index: 0, fault: 'unsupported_key_type' },
      { index: 2, fault: 'private_member' },
    ]);
  });

  it('of 16 keys → read; of 17 → too_many_keys', () => {
    const keys = Array.from({ length: 17 }, () => es256.jwk);
    expect(readJwkSet({ keys: keys.slice(1) })).toMatchObject({ faults: [] });
    expect(readJwkSet({ keys })).toBe('too_many_keys');
  });

  it.each([
    ['a list', []],
    ['null', null],
    ['no keys', {}],
    ['keys that are an object', { keys: {} }],
    ['text', '{"keys":[]}'],
  ])('given %s → malformed', (_, value) => {
    expect(readJwkSet(value)).toBe('malformed');
  });
});
