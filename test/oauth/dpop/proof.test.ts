// The checks of RFC 9449 §4.3, one by one (docs/scope.md: D1, D2, D4, D8, 9449-1, 9449-3).

import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type NonceRule, ProofNonces } from '../../../src/oauth/dpop/nonces.ts';
import { type ProofExpectations, ProofVerifier } from '../../../src/oauth/dpop/proof.ts';
import { DpopHolder, type HolderAlgorithm, type ProofChanges } from '../../dpop-holder.ts';

const URL = 'https://auth.example/token';
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** The begin of a minute. */
const NOW = 1_800_000_000_000;
const PEPPER = Buffer.alloc(32, 7);
const TOKEN = 'an-access-token';

const holder = new DpopHolder();
const verifier = new ProofVerifier();

function noncesOf(rule: NonceRule, pepper = PEPPER): ProofNonces {
  return new ProofNonces({ issuer: 'https://auth.example', peppers: [pepper], rule });
}

const ON_DEMAND = noncesOf('on-demand');
const REQUIRED = noncesOf('required');

function verified(header: string, changes: Partial<ProofExpectations> = {}) {
  return verifier.verify(header, { method: 'POST', urls: [URL], now: NOW, nonces: ON_DEMAND, ...changes });
}

function faultOf(header: string, changes: Partial<ProofExpectations> = {}): string {
  const answer = verified(header, changes);
  return typeof answer === 'string' ? answer : 'passes';
}

/** The fault of a proof that differs from a right one. */
function changed(changes: ProofChanges, expected: Partial<ProofExpectations> = {}, by = holder): string {
  return faultOf(by.proof(URL, NOW, changes), expected);
}

const seconds = (milliseconds: number) => milliseconds / SECOND;
const ath = (token: string) => createHash('sha256').update(token).digest('base64url');

describe('a right proof', () => {
  it.each(['ES256', 'PS256', 'EdDSA', 'Ed25519'] as const)('by %s → the key that it is of', (algorithm) => {
    const by = new DpopHolder(algorithm);
    const answer = verified(by.proof(URL, NOW, { claims: { jti: 'one' } }));
    expect(answer).toMatchObject({ thumbprint: by.thumbprint, confirmation: `jkt.${by.thumbprint}`, nonce: undefined });
    expect(answer).toMatchObject({ mark: { value: `${by.thumbprint}.one`, issuedAt: NOW } });
  });

  it('with claims and header members that the check does not know → passes', () => {
    const header = { kid: 'x', cty: 'y', jku: 'https://evil.example/', x5c: ['z'] };
    expect(changed({ header, claims: { sub: 'x', aud: ['y'], exp: 1, nbf: 9e9, ath: 'z' } })).toBe('passes');
    expect(changed({ header: { jwk: { ...holder.jwk, kid: 'a', use: 'sig', alg: 'ES256', ext: true } } })).toBe(
      'passes',
    );
  });

  it('whose key was seen before, in other proofs → is of the same key', () => {
    const [one, other] = [new DpopHolder(), new DpopHolder()];
    for (const by of [one, other, one, other]) {
      expect(verified(by.proof(URL, NOW))).toMatchObject({ thumbprint: by.thumbprint });
    }
    // A known header proves no signature.
    const [header = ''] = one.proof(URL, NOW).split('.');
    const [, ...rest] = other.proof(URL, NOW).split('.');
    expect(faultOf([header, ...rest].join('.'))).toBe('dpop_signature_invalid');
  });
});

describe('a text that is no proof', () => {
  const proof = holder.proof(URL, NOW);
  it.each([
    ['', 'dpop_proof_malformed'],
    ['x', 'dpop_proof_malformed'],
    [`${proof}, ${proof}`, 'dpop_proof_repeated'],
    [`${proof},${proof}`, 'dpop_proof_repeated'],
    [`${proof}, `, 'dpop_proof_repeated'],
    [`${proof}.`, 'dpop_proof_malformed'],
    [`${proof}=`, 'dpop_proof_malformed'],
    [`DPoP ${proof}`, 'dpop_proof_malformed'],
    [proof.split('.').slice(0, 2).join('.'), 'dpop_proof_malformed'],
    [`${proof.split('.').slice(0, 2).join('.')}.`, 'dpop_proof_malformed'],
    [JSON.stringify({ signature: 'y' }), 'dpop_proof_malformed'],
    [`${proof}${'A'.repeat(4097 - proof.length)}`, 'dpop_proof_too_large'],
  ])('%# → refused', (text, fault) => {
    expect(faultOf(text)).toBe(fault);
  });

  it('of any characters → refused, never thrown', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.nat({ max: 3 }), (text, part) => {
        const parts = proof.split('.');
        if (part < 3) parts[part] = text;
        const mutated = part < 3 ? parts.join('.') : text;
        fc.pre(mutated !== proof);
        expect(faultOf(mutated)).toMatch(/^dpop_/);
      }),
    );
  });

  it('with one character changed anywhere → refused', () => {
    for (let index = 0; index < proof.length; index++) {
      const other = proof[index] === 'A' ? 'B' : 'A';
      expect(faultOf(proof.slice(0, index) + other + proof.slice(index + 1))).toMatch(/^dpop_/);
    }
  });
});

describe('a proof whose header', () => {
  it.each([undefined, '', 'jwt', 'JWT', 'at+jwt', 'DPoP+jwt', 'application/dpop+jwt', 'client-authentication+jwt', 1])(
    'has the type %j → refused',
    (typ) => {
      expect(changed({ header: { typ } })).toBe('dpop_type_wrong');
    },
  );

  it.each(['none', 'None', '', 'HS256', 'RS256', 'ES384', 'ES512', 'ES256K', 'PS384', 'Ed448', 'es256'])(
    'says %j → refused',
    (alg) => {
      expect(changed({ header: { alg } })).toBe('dpop_algorithm_not_allowed');
    },
  );

  it.each(['ES384', 'RS256'] as const)('is rightly signed by %s → refused', (algorithm) => {
    expect(changed({}, {}, new DpopHolder(algorithm))).toBe('dpop_algorithm_not_allowed');
  });

  it('says HS256, with the public key as the secret → refused', () => {
    const [, claims] = holder.proof(URL, NOW).split('.');
    const header = Buffer.from(JSON.stringify({ typ: 'dpop+jwt', alg: 'HS256', jwk: holder.jwk })).toString(
      'base64url',
    );
    const mac = createHmac('sha256', JSON.stringify(holder.jwk)).update(`${header}.${claims}`).digest('base64url');
    expect(faultOf(`${header}.${claims}.${mac}`)).toBe('dpop_algorithm_not_allowed');
  });

  it('has no alg, or one that is no text → refused', () => {
    for (const alg of [undefined, 1, null, ['ES256']])
      expect(changed({ header: { alg } })).toBe('dpop_proof_malformed');
  });

  it('demands an extension → refused', () => {
    for (const header of [{ crit: ['exp'] }, { crit: [] }, { b64: true }, { crit: ['b64'], b64: false }]) {
      expect(changed({ header })).toBe('dpop_proof_malformed');
    }
  });
});

describe('the key of a proof', () => {
  const rsa = new DpopHolder('PS256');
  it.each([
    ['missing', undefined],
    ['null', null],
    ['a text', 'x'],
    ['a list', [holder.jwk]],
    ['its private key', holder.privateKey.export({ format: 'jwk' })],
    ['with an empty private member', { ...holder.jwk, d: '' }],
    ['with a secret member', { ...holder.jwk, k: 'AA' }],
    ['symmetric', { kty: 'oct', k: 'AAAA' }],
    ['of an unknown kind', { ...holder.jwk, kty: 'AKP' }],
    ['of another curve', { ...holder.jwk, crv: 'P-521' }],
    ['with a short coordinate', { ...holder.jwk, x: 'AAAA' }],
    ['for encryption', { ...holder.jwk, use: 'enc' }],
    ['for signing only', { ...holder.jwk, key_ops: ['sign'] }],
    ['for an algorithm that no key of its kind has', { ...holder.jwk, alg: 'RS256' }],
    ['with an exponent of 384 bits', { ...rsa.jwk, e: Buffer.alloc(384, 255).toString('base64url') }],
    ['with an exponent of one', { ...rsa.jwk, e: 'AQ' }],
    ['with a modulus of 16384 bits', { ...rsa.jwk, n: Buffer.alloc(2048, 255).toString('base64url') }],
  ])('%s → refused', (_name, jwk) => {
    expect(changed({ header: { jwk } })).toBe('dpop_key_not_allowed');
  });

  it.each([
    [1024, 'dpop_key_not_allowed'],
    [2048, 'passes'],
    [4096, 'passes'],
  ])(
    'RSA of %i bits → %s',
    (modulusLength, fault) => {
      expect(changed({}, {}, new DpopHolder('PS256', { modulusLength }))).toBe(fault);
    },
    30_000,
  );

  it('that is another one, or of another kind → refused', () => {
    const jwks = [new DpopHolder().jwk, new DpopHolder('EdDSA').jwk, rsa.jwk];
    for (const jwk of jwks) expect(changed({ header: { jwk } })).toBe('dpop_signature_invalid');
  });

  it('that is not on its curve → refused', () => {
    const jwk = { ...holder.jwk, x: Buffer.alloc(32, 1).toString('base64url') };
    expect(changed({ header: { jwk } })).toBe('dpop_signature_invalid');
  });

  it('signs all zeros → refused', () => {
    const [header, claims] = holder.proof(URL, NOW).split('.');
    expect(faultOf(`${header}.${claims}.${Buffer.alloc(64).toString('base64url')}`)).toBe('dpop_signature_invalid');
  });

  it('that signs by a padding of another algorithm → refused', () => {
    const by = new DpopHolder('RS256');
    expect(changed({ header: { alg: 'PS256' } }, {}, by)).toBe('dpop_signature_invalid');
  });
});

describe('the claims of a proof', () => {
  const wrong: readonly (readonly [string, unknown, string])[] = [
    ...[undefined, null, '', 'post', 'Post', 'GET', 'POST ', ['POST']].map(
      (value) => ['htm', value, 'dpop_method_mismatch'] as const,
    ),
    ...[undefined, null, '', 'https://other.example/token', 'https://auth.example/token/', [URL]].map(
      (value) => ['htu', value, 'dpop_target_mismatch'] as const,
    ),
    ...[undefined, null, '', 7, 'x'.repeat(257), ['x']].map((value) => ['jti', value, 'dpop_id_malformed'] as const),
    ...[undefined, null, '', `${seconds(NOW)}`, [1], true].map(
      (value) => ['iat', value, 'dpop_time_malformed'] as const,
    ),
    ...[null, '', 'x', 7, [ON_DEMAND.make(NOW)]].map((value) => ['nonce', value, 'dpop_nonce_unknown'] as const),
  ];
  it.each(wrong)('%s: %j → %s', (name, value, fault) => {
    expect(changed({ claims: { [name]: value } })).toBe(fault);
  });

  it.each([1, 256])('an id of %i characters → passes', (length) => {
    expect(changed({ claims: { jti: 'x'.repeat(length) } })).toBe('passes');
  });

  it('htu with a query or fragment, in other cases or with its port → passes', () => {
    for (const htu of [`${URL}?x=y`, `${URL}#x`, 'HTTPS://Auth.Example:443/token']) {
      expect(changed({ claims: { htu } })).toBe('passes');
    }
  });

  it('that name each other by their method are for that one', () => {
    expect(changed({ claims: { htm: 'GET' } }, { method: 'GET' })).toBe('passes');
    expect(changed({}, { method: 'GET' })).toBe('dpop_method_mismatch');
  });
});

describe('the time of a proof', () => {
  const nonce = ON_DEMAND.make(NOW);

  it.each([
    { off: -60 * SECOND - SECOND, fault: 'dpop_clock_skewed' },
    { off: -60 * SECOND, fault: 'passes' },
    { off: 60 * SECOND, fault: 'passes' },
    { off: 60 * SECOND + SECOND, fault: 'dpop_clock_skewed' },
    { off: 60 * MINUTE, fault: 'dpop_clock_skewed' },
  ])('$off ms off, without nonce → $fault', ({ off, fault }) => {
    expect(changed({ claims: { iat: seconds(NOW + off) } })).toBe(fault);
  });

  it.each([-24 * 60 * MINUTE, -60 * MINUTE, -301 * SECOND, 301 * SECOND, 60 * MINUTE, 24 * 60 * MINUTE])(
    '%i ms off, with a nonce → passes: the nonce is the time (RFC 9449 §4.3 check 11)',
    (off) => {
      for (const nonces of [ON_DEMAND, REQUIRED]) {
        expect(changed({ claims: { nonce, iat: seconds(NOW + off) } }, { nonces })).toBe('passes');
      }
    },
  );

  it.each([undefined, null, 'now', Number.POSITIVE_INFINITY])('that is %s, with a nonce → malformed', (iat) => {
    expect(changed({ claims: { nonce, iat } })).toBe('dpop_time_malformed');
  });

  it('counts to the millisecond, and a second may have a fraction', () => {
    const iat = seconds(NOW);
    expect(changed({}, { now: NOW + 60 * SECOND })).toBe('passes');
    expect(changed({}, { now: NOW + 60 * SECOND + 1 })).toBe('dpop_clock_skewed');
    expect(changed({ claims: { iat: iat + 0.5 } }, { now: NOW + 60 * SECOND + 1 })).toBe('passes');
  });

  it('that is absurd → refused', () => {
    for (const iat of [0, -1, 1e300, NOW]) expect(changed({ claims: { iat } })).toBe('dpop_clock_skewed');
  });

  it('without a nonce where one is required → that is the fault, also of a right time', () => {
    expect(changed({}, { nonces: REQUIRED })).toBe('dpop_nonce_missing');
  });

  it.each([
    { minute: -4, fault: 'dpop_nonce_unknown' },
    { minute: -3, fault: 'passes' },
    { minute: 1, fault: 'passes' },
    { minute: 2, fault: 'dpop_nonce_unknown' },
  ])('with the nonce of minute $minute → $fault', ({ minute, fault }) => {
    for (const nonces of [ON_DEMAND, REQUIRED]) {
      expect(changed({ claims: { nonce: nonces.make(NOW + minute * MINUTE) } }, { nonces })).toBe(fault);
    }
  });

  it('with the nonce of another server → refused', () => {
    const other = noncesOf('required', Buffer.alloc(32, 8)).make(NOW);
    for (const nonces of [ON_DEMAND, REQUIRED]) {
      expect(changed({ claims: { nonce: other } }, { nonces })).toBe('dpop_nonce_unknown');
    }
  });
});

describe('the mark of a proof', () => {
  it.each([
    { name: 'without nonce, early', off: -60, withNonce: false },
    { name: 'without nonce, late', off: 60, withNonce: false },
    { name: 'with a nonce', off: 0, withNonce: true },
    { name: 'with a nonce, an hour early', off: -3600, withNonce: true },
    { name: 'with a nonce, an hour late', off: 3600, withNonce: true },
  ])('$name → lasts as long as the proof could pass, and little longer', ({ off, withNonce }) => {
    const nonce = withNonce ? ON_DEMAND.make(NOW) : undefined;
    const proof = holder.proof(URL, NOW + off * SECOND, { claims: { nonce } });
    const first = verified(proof);
    if (typeof first === 'string') throw new Error(first);
    const { expiresAt } = first.mark;
    expect(expiresAt - NOW).toBeLessThanOrEqual(5 * MINUTE + 5 * SECOND);
    // The clocks of two replicas may differ by a little.
    const last = expiresAt - 5 * SECOND;
    expect(faultOf(proof, { now: last - 1 })).toBe('passes');
    expect(faultOf(proof, { now: last })).not.toBe('passes');
  });

  it.each([
    { off: -60 * SECOND, withNonce: false, from: -60 * SECOND },
    { off: 60 * SECOND, withNonce: false, from: 60 * SECOND },
    { off: -60 * SECOND, withNonce: true, from: -60 * SECOND },
    { off: -61 * SECOND, withNonce: true, from: -MINUTE },
    { off: 60 * MINUTE, withNonce: true, from: -MINUTE },
    { off: -60 * MINUTE, withNonce: true, from: -MINUTE },
  ])('$off ms off, with a nonce: $withNonce → begins $from ms off', ({ off, withNonce, from }) => {
    const nonce = withNonce ? ON_DEMAND.make(NOW) : undefined;
    const proof = verified(holder.proof(URL, NOW + off, { claims: { nonce } }));
    if (typeof proof === 'string') throw new Error(proof);
    expect(proof.mark.issuedAt - NOW).toBe(from);
  });

  it('is about key and id: another key, or another id, has another', () => {
    const markOf = (by: DpopHolder, jti: string) => {
      const answer = verified(by.proof(URL, NOW, { claims: { jti } }));
      return typeof answer === 'string' ? answer : answer.mark.value;
    };
    const [one, other] = [new DpopHolder(), new DpopHolder()];
    expect(markOf(one, 'a')).toBe(markOf(one, 'a'));
    expect(new Set([markOf(one, 'a'), markOf(one, 'b'), markOf(other, 'a')]).size).toBe(3);
  });
});

describe('a proof beside an access token', () => {
  it('must be for it', () => {
    const accessToken = TOKEN;
    expect(changed({ claims: { ath: ath(TOKEN) } }, { accessToken })).toBe('passes');
    for (const wrong of [undefined, null, '', TOKEN, ath('another'), `${ath(TOKEN)}=`, [ath(TOKEN)]]) {
      expect(changed({ claims: { ath: wrong } }, { accessToken })).toBe('dpop_token_mismatch');
    }
  });

  it('must be of the key that the token is bound to', () => {
    const expected = { accessToken: TOKEN, thumbprint: holder.thumbprint };
    const changes = { claims: { ath: ath(TOKEN) } };
    expect(changed(changes, expected)).toBe('passes');
    expect(changed(changes, expected, new DpopHolder())).toBe('dpop_key_mismatch');
  });
});

describe('the verifier', () => {
  it('has the thumbprint of RFC 7638 for every kind of key', () => {
    for (const algorithm of ['ES256', 'PS256', 'EdDSA'] satisfies readonly HolderAlgorithm[]) {
      const by = new DpopHolder(algorithm);
      expect(verified(by.proof(URL, NOW))).toMatchObject({ thumbprint: by.thumbprint });
    }
  });
});
