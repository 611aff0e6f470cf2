// Which keys of a set are tried for a JWS, and that a refusal costs a verification even where there is no key.

import { verify } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { parseJws } from '../../../src/oauth/values/jws.ts';
import { candidateKeys, verifyInVain, verifyWithKeys } from '../../../src/oauth/values/key-selection.ts';
import { ALGORITHMS, aKey, readKey, sign, type TestKey } from './signed-tokens.ts';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return { ...crypto, verify: vi.fn(crypto.verify) };
});

const verifications = vi.mocked(verify);

beforeEach(() => {
  verifications.mockClear();
});

const [first, second, third] = [aKey('ES256'), aKey('ES256'), aKey('ES256')];
const [rsa, ed] = [aKey('RS256'), aKey('EdDSA')];
const named = ({ jwk }: TestKey, kid?: string, members: object = {}) => readKey({ ...jwk, kid, ...members });

async function signed(key: TestKey, header: object = {}) {
  const jws = parseJws(await sign(key, {}, header));
  if (typeof jws === 'string') throw new Error(jws);
  return jws;
}

const trusting = (...keys: readonly VerificationKey[]) => ({ keys, algorithms: ALGORITHMS });

describe('the keys tried for a JWS', () => {
  it('with a kid → all of that kid which fit its algorithm, in their order, and no others', async () => {
    const [a, b] = [named(first, 'k'), named(second, 'k')];
    const others = [named(third, 'other'), named(third), named(rsa, 'k'), named(ed, 'k')];
    const jws = await signed(first, { kid: 'k' });
    expect(candidateKeys(jws, [...others, b, a])).toEqual([b, a]);
    expect(verifyWithKeys(jws, trusting(...others, b, a))).toBe(a);
  });

  it('of one kid, sixteen → the first four: a refusal has a bounded cost', async () => {
    const right = named(first, 'k');
    const wrong = (count: number) => Array.from({ length: count }, () => named(second, 'k'));
    const jws = await signed(first, { kid: 'k' });
    expect(verifyWithKeys(jws, trusting(...wrong(3), right))).toBe(right);
    expect(verifyWithKeys(jws, trusting(...wrong(4), right, ...wrong(11)))).toBe('signature_invalid');
  });

  it('without a kid → the first two that fit', async () => {
    const jws = await signed(first);
    const keys = [named(ed), named(second, 'b'), named(rsa), named(first, 'a'), named(third, 'c')];
    expect(candidateKeys(jws, keys)).toEqual([keys[1], keys[3]]);
    expect(verifyWithKeys(jws, trusting(...keys))).toBe(keys[3]);
    expect(verifyWithKeys(await signed(third), trusting(...keys))).toBe('signature_invalid');
    expect(verifications).toHaveBeenCalledTimes(4);
  });

  it('with an empty kid → not those without kid', async () => {
    expect(candidateKeys(await signed(first, { kid: '' }), [named(first), named(second, 'a')])).toEqual([]);
  });

  it.each([
    ['PS256', 'RS256'],
    ['RS256', 'PS256'],
  ] as const)('of %s → no RSA key whose alg is %s', async (algorithm, other) => {
    const jws = await signed({ ...rsa, algorithm });
    const keys = [named(rsa, undefined, { alg: other }), named(rsa, undefined, { alg: undefined })];
    expect(candidateKeys(jws, keys)).toEqual([keys[1]]);
  });

  it.each([
    'k\0',
    '\0',
    '../../../../etc/passwd',
    '/dev/null',
    "k' UNION SELECT 'k",
    "' OR 1=1 --",
    '__proto__',
    'constructor',
    '$(id)',
    'K',
    'k ',
    'x'.repeat(5000),
  ])('with the hostile kid %j → key_unknown', async (kid) => {
    expect(verifyWithKeys(await signed(first, { kid }), trusting(named(first, 'k')))).toBe('key_unknown');
  });

  it('with a kid of 10 kB → not read at all', async () => {
    expect(parseJws(await sign(first, {}, { kid: 'x'.repeat(10_000) }))).toBe('too_large');
  });
});

describe('a JWS that is refused', () => {
  it.each([
    ['an algorithm that is not allowed', 'algorithm_not_allowed', { keys: [named(first, 'k')], algorithms: ['PS256'] }],
    ['no key of its kid', 'key_unknown', trusting(named(first, 'other'))],
    ['no key at all', 'key_unknown', trusting()],
    ['another key', 'signature_invalid', trusting(named(second, 'k'))],
    ['no algorithm, as for an unknown client', 'algorithm_not_allowed', { keys: [], algorithms: [] }],
  ] as const)('for %s → %s, after one verification', async (_, fault, keys) => {
    expect(verifyWithKeys(await signed(first, { kid: 'k' }), keys)).toBe(fault);
    expect(verifications).toHaveBeenCalledTimes(1);
  });

  it('for an algorithm that grantry never accepts → the same', async () => {
    const jws = { ...(await signed(first)), algorithm: undefined };
    expect(verifyWithKeys(jws, trusting(named(first)))).toBe('algorithm_not_allowed');
    expect(verifications).toHaveBeenCalledTimes(1);
  });

  it('for a signature of the wrong length → after one verification of a well-formed one', async () => {
    const jws = { ...(await signed(first)), signature: Buffer.alloc(63, 1) };
    expect(verifyWithKeys(jws, trusting(named(first)))).toBe('signature_invalid');
    expect(verifications).toHaveBeenCalledTimes(1);
    // SEQUENCE { INTEGER 1, INTEGER 1 }
    expect(verifications.mock.lastCall?.[3]).toEqual(Buffer.from('3006020101020101', 'hex'));
  });

  it('without any key → verified by a fixed one, which comes to its end and fails', async () => {
    verifyInVain(await signed(first));
    expect(verifications.mock.results).toEqual([{ type: 'return', value: false }]);
  });
});
