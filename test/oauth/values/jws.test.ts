// JWS of strangers. Whatever they send, nothing is accepted that jose, the oracle, refuses.

import { createHmac, createPublicKey, type JsonWebKey, sign as rawSign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJws, parseJwt, verifyJws } from '../../../src/oauth/values/jws.ts';
import {
  ALGORITHMS,
  aKey,
  compact,
  grantryAccepts,
  joseAccepts,
  readKey,
  sign,
  type TestKey,
} from './signed-tokens.ts';

const [es256, es384, ps256, rs256, eddsa] = [aKey('ES256'), aKey('ES384'), aKey('PS256'), aKey('RS256'), aKey('EdDSA')];
const keys = [es256, es384, ps256, rs256, eddsa];
const claims = { sub: 'shop.reports' };
const signature = Buffer.alloc(64, 1);
const faultOf = (token: string) => {
  const read = parseJwt(token);
  return typeof read === 'string' ? read : undefined;
};
const encoded = (text: string | Uint8Array) => Buffer.from(text).toString('base64url');

describe('a JWT', () => {
  it.each(keys)('of $algorithm → accepted by its key, refused by another one, jose agrees', async (key) => {
    // Many, because an ECDSA integer is one byte short in one of a few hundred signatures.
    const count = key.algorithm === 'ES256' ? 600 : 20;
    const other = aKey(key.algorithm);
    for (let made = 0; made < count; made++) {
      const token = await sign(key, { made });
      const jwt = parseJwt(token);
      if (typeof jwt === 'string') throw new Error(jwt);
      expect(jwt).toMatchObject({ claims: { made }, algorithm: key.algorithm });
      expect(verifyJws(jwt, key.key, [key.algorithm])).toBe(true);
      expect(verifyJws(jwt, other.key, [key.algorithm])).toBe(false);
      if (made < 5) expect(await joseAccepts(token, key.jwk)).toBe(true);
    }
  });

  it('with alg Ed25519 → the algorithm EdDSA, by a key with either name', async () => {
    const token = await sign(eddsa, claims, { alg: 'Ed25519' });
    expect(parseJws(token)).toMatchObject({ algorithm: 'EdDSA', header: { alg: 'Ed25519' } });
    for (const alg of ['EdDSA', 'Ed25519', undefined]) {
      expect(grantryAccepts(token, readKey({ ...eddsa.jwk, alg }))).toBe(true);
    }
  });

  it.each([
    ['nothing', ''],
    ['two parts', 'e30.e30'],
    ['four parts', `${compact({ alg: 'ES256' }, claims, signature)}.e30`],
    ['a fifth part', `${compact({ alg: 'ES256' }, claims, signature)}..`],
    ['no signature', compact({ alg: 'ES256' }, claims, Buffer.alloc(0))],
    ['padding', `${encoded('{"alg":"ES256"} ')}==.e30.AQ`],
    ['padding in the signature', `${compact({ alg: 'ES256' }, claims, Buffer.alloc(64, 1))}==`],
    ['unused bits', `${encoded('{"alg":"ES256"}')}.e31.AQ`],
    ['unused bits in the signature', `${encoded('{"alg":"ES256"}')}.e30.AR`],
    ['characters of base64', `${encoded('{"alg":"ES256"}')}.e30.+/8A`],
    ['white space', ` ${compact({ alg: 'ES256' }, claims, signature)}`],
    ['a final line break', `${compact({ alg: 'ES256' }, claims, signature)}\n`],
    ['a character beyond ASCII', `${compact({ alg: 'ES256' }, claims, signature)}Ā`],
    ['a header that is no JSON', `${encoded('{')}.e30.AQ`],
    ['a header that is an array', compact([{ alg: 'ES256' }], claims, signature)],
    ['a header that is null', compact(null, claims, signature)],
    ['a header of broken UTF-8', `${encoded(Buffer.from('{"alg":"ES256","x":"\xff"}', 'latin1'))}.e30.AQ`],
    ['a header with a byte order mark', `${encoded('\uFEFF{"alg":"ES256"}')}.e30.AQ`],
    ['no alg', compact({}, claims, signature)],
    ['an alg that is a list', compact({ alg: ['ES256'] }, claims, signature)],
    ['an inherited alg', compact({ ['__proto__']: { alg: 'ES256' } }, claims, signature)],
    ['a kid that is a number', compact({ alg: 'ES256', kid: 1 }, claims, signature)],
    ['a payload that is text', compact({ alg: 'ES256' }, 'claims', signature)],
    ['a payload that is an array', compact({ alg: 'ES256' }, [claims], signature)],
    ['an empty payload', `${encoded('{"alg":"ES256"}')}..AQ`],
    ['the JSON serialization', JSON.stringify({ protected: 'e30', payload: 'e30', signature: 'AQ' })],
  ])('given %s → malformed', (_, token) => {
    expect(faultOf(token)).toBe('malformed');
  });

  it('given a byte more than its limit → too_large; 8 KiB where none is given', () => {
    const token = compact({ alg: 'ES256' }, claims, signature);
    expect(typeof parseJws(token, token.length)).toBe('object');
    expect(parseJws(token, token.length - 1)).toBe('too_large');
    const [header, , last] = token.split('.') as [string, string, string];
    const padded = (length: number) => `${header}.${'A'.repeat(length - header.length - last.length - 2)}.${last}`;
    expect(parseJws(padded(8192))).not.toBe('too_large');
    expect(parseJws(padded(8193))).toBe('too_large');
  });

  it.each([
    ['crit', { crit: ['exp'] }],
    ['an empty crit', { crit: [] }],
    ['crit and b64', { crit: ['b64'], b64: false }],
    ['b64 alone', { b64: false }],
    ['b64 as it is by default', { b64: true }],
  ])('of the right key with %s → critical_header', (_, header) => {
    const token = compact({ alg: 'ES256', ...header }, claims, (input) =>
      rawSign('sha256', Buffer.from(input), { key: es256.privateKey, dsaEncoding: 'ieee-p1363' }),
    );
    expect(faultOf(token)).toBe('critical_header');
  });
});

describe('algorithm confusion', () => {
  const pem = createPublicKey({ key: rs256.jwk as JsonWebKey, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const hmacs = ['HS256', 'HS384', 'HS512'].flatMap((alg) =>
    [pem as string, JSON.stringify(rs256.jwk), rs256.jwk.n as string].map((secret) =>
      compact({ alg }, claims, (input) => createHmac(alg.replace('HS', 'sha'), secret).update(input).digest()),
    ),
  );

  it('given none in any case, or an HMAC by the public key → no algorithm, refused', () => {
    const none = ['none', 'None', 'NONE', 'nOnE', ''].map((alg) => compact({ alg }, claims, signature));
    for (const token of [...none, ...hmacs]) {
      expect(parseJws(token)).toMatchObject({ algorithm: undefined });
      for (const { key } of keys) expect(grantryAccepts(token, key)).toBe(false);
    }
  });

  it('given a signature of the key by PKCS #1 as PS256, or by PSS as RS256 → refused', async () => {
    const anyRsa = { ...rs256.jwk, alg: undefined };
    const pkcs1 = await sign({ ...rs256, algorithm: 'RS256' });
    const pss = await sign({ ...rs256, algorithm: 'PS256' });
    expect([pkcs1, pss].map((token) => grantryAccepts(token, readKey(anyRsa)))).toEqual([true, true]);
    expect(grantryAccepts(pss, rs256.key)).toBe(false);
    expect(grantryAccepts(pkcs1, readKey({ ...rs256.jwk, alg: 'PS256' }))).toBe(false);
    const renamed = (token: string, alg: string) =>
      compact({ alg }, claims, Buffer.from(token.split('.')[2] as string, 'base64url'));
    expect(grantryAccepts(renamed(pkcs1, 'PS256'), readKey(anyRsa))).toBe(false);
    expect(grantryAccepts(renamed(pss, 'RS256'), readKey(anyRsa))).toBe(false);
  });

  it('given a salt that is not as long as the digest → refused', () => {
    const salted = (saltLength: number) =>
      compact({ alg: 'PS256' }, claims, (input) =>
        rawSign('sha256', Buffer.from(input), { key: ps256.privateKey, padding: 6, saltLength }),
      );
    expect([0, 31, 32, 33, 222].filter((length) => grantryAccepts(salted(length), ps256.key))).toEqual([32]);
  });

  it('given an algorithm that the key does not fit, or the caller does not allow → refused', async () => {
    for (const key of keys) {
      const token = await sign(key);
      const jws = parseJws(token);
      if (typeof jws === 'string') throw new Error(jws);
      for (const other of keys) expect(grantryAccepts(token, other.key)).toBe(other === key);
      const others = ALGORITHMS.filter((algorithm) => algorithm !== key.algorithm);
      expect(verifyJws(jws, key.key, others)).toBe(false);
    }
  });
});

describe('an ECDSA signature', () => {
  const order256 = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');
  const one = Buffer.alloc(32);
  one[31] = 1;
  const zero = Buffer.alloc(32);
  const der = (input: string) => rawSign('sha256', Buffer.from(input), es256.privateKey);

  it.each([
    ['zeros', Buffer.alloc(64)],
    ['r of zero', Buffer.concat([zero, one])],
    ['s of zero', Buffer.concat([one, zero])],
    ['r and s of one', Buffer.concat([one, one])],
    ['r and s of the order', Buffer.concat([order256, order256])],
    ['no bytes but one', Buffer.alloc(1, 1)],
    ['63 bytes', Buffer.alloc(63, 1)],
    ['65 bytes', Buffer.alloc(65, 1)],
    ['the width of P-384', Buffer.alloc(96, 1)],
    ['DER', der],
  ])('of %s → refused', (_, bytes) => {
    expect(grantryAccepts(compact({ alg: 'ES256' }, claims, bytes), es256.key)).toBe(false);
  });

  it('of the right r and s with a zero more, wherever it is → refused', async () => {
    const [header, payload, last] = (await sign(es384)).split('.') as [string, string, string];
    const right = Buffer.from(last, 'base64url');
    const [r, s] = [right.subarray(0, 48), right.subarray(48)];
    const nought = Buffer.alloc(1);
    const wrong = [
      Buffer.concat([nought, r, nought, s]),
      Buffer.concat([r, nought, s]),
      Buffer.concat([right, nought]),
      Buffer.concat([nought, right]),
    ];
    for (const bytes of [right, ...wrong]) {
      expect(grantryAccepts(`${header}.${payload}.${encoded(bytes)}`, es384.key)).toBe(bytes === right);
    }
  });
});

describe('a key in the header', () => {
  const stranger = aKey('ES256');
  const headers = {
    jwk: stranger.jwk,
    jku: 'https://evil.example/jwks',
    x5u: 'https://evil.example/x5u',
    x5c: ['AA=='],
  };

  it('that made the signature → refused; beside a signature of the right key → ignored', async () => {
    for (const [name, value] of Object.entries(headers)) {
      expect(grantryAccepts(await sign(stranger, claims, { [name]: value }), es256.key)).toBe(false);
      expect(grantryAccepts(await sign(es256, claims, { [name]: value }), es256.key)).toBe(true);
    }
  });
});

describe('of any tokens', () => {
  const anyKey = fc.constantFrom(...keys);
  const anyObject = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });

  it('with any claims and header members → a signed one is accepted, and jose accepts it', async () => {
    const harmless = ['kid', 'crit', 'b64', 'alg'];
    const extra = anyObject.filter((header) => !harmless.some((name) => Object.hasOwn(header, name)));
    await fc.assert(
      fc.asyncProperty(anyKey, anyObject, extra, async (key, payload, header) => {
        const token = compact({ ...header, alg: key.algorithm }, payload, (input) => rawSignature(key, input));
        expect(parseJwt(token)).toMatchObject({ claims: JSON.parse(JSON.stringify(payload)) });
        expect(grantryAccepts(token, key.key)).toBe(true);
        expect(await joseAccepts(token, key.jwk)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  it('mutated in any way → none is accepted that jose refuses, nor one whose text differs', async () => {
    const tokens = await Promise.all(keys.map((key) => sign(key, { sub: 'shop.reports', aud: 'https://id.example' })));
    const position = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const character = fc.oneof(
      fc.constantFrom('A', 'B', '_', '-', '.', '=', '+', '/', ' ', '\n', '\0'),
      fc.string({ maxLength: 2 }),
    );
    const step = fc.oneof(
      fc.tuple(fc.constant('set'), position, character),
      fc.tuple(fc.constant('insert'), position, character),
      fc.tuple(fc.constant('remove'), position, fc.constant('')),
      fc.tuple(fc.constant('header'), position, fc.constantFrom(...HEADERS)),
      fc.tuple(fc.constant('splice'), position, fc.constantFrom(...tokens)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.nat(keys.length - 1),
        fc.array(step, { minLength: 1, maxLength: 3 }),
        async (index, steps) => {
          const token = tokens[index] as string;
          const { key, jwk } = keys[index] as (typeof keys)[number];
          const mutated = steps.reduce(mutate, token);
          const accepted = grantryAccepts(mutated, key);
          expect(accepted).toBe(mutated === token);
          if (accepted) expect(await joseAccepts(mutated, jwk)).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });

  const HEADERS = [
    ...['none', 'HS256', ...ALGORITHMS, 'Ed25519', 'ES256K', 'ES512'].map((alg) => JSON.stringify({ alg })),
    '{"alg":"none","alg":"ES256"}',
    '{"alg":"ES256","alg":"none"}',
    '{ "alg" : "ES256" }',
  ];

  function mutate(token: string, [kind, where, text]: [string, number, string]): string {
    const at = Math.floor(where * token.length);
    if (kind === 'set') return token.slice(0, at) + text + token.slice(at + text.length);
    if (kind === 'insert') return token.slice(0, at) + text + token.slice(at);
    if (kind === 'remove') return token.slice(0, at) + token.slice(at + 1);
    const parts = token.split('.');
    if (kind === 'header') return [encoded(text), ...parts.slice(1)].join('.');
    const part = Math.floor(where * 3);
    return parts.with(Math.min(part, parts.length - 1), text.split('.')[part] ?? '').join('.');
  }
});

function rawSignature({ algorithm, privateKey: key }: TestKey, input: string): Buffer {
  const data = Buffer.from(input);
  if (algorithm === 'EdDSA') return rawSign(null, data, key);
  if (algorithm === 'PS256') return rawSign('sha256', data, { key, padding: 6, saltLength: 32 });
  return rawSign(algorithm === 'ES384' ? 'sha384' : 'sha256', data, { key, dsaEncoding: 'ieee-p1363' });
}
