import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../../../src/oauth/registry/keys.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { aClient } from '../a-client.ts';

const issuer = 'https://id.example';
const random = { bytes: randomBytes };
const endOfTick = setImmediate;
const clock = { now: () => 1_800_000_000_500 };
const handles = new Handles({ issuer, peppers: [Buffer.alloc(32, 1)], random });
const tokens = new AccessTokens({ issuer, clock, random, handles, endOfTick });
const authorization = {
  subject: 'shop.reports',
  scope: ['orders:read'],
  audience: 'https://api.example',
  grantId: undefined,
  authTime: undefined,
  refreshToken: undefined,
};

async function aKey(algorithm: SigningAlgorithm, state: 'Published' | 'Active' | 'Retiring' = 'Active') {
  return importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, state);
}

describe('signing keys', () => {
  it.each(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'] as const)(
    'of %s make tokens that an independent library verifies from the JWKS',
    async (algorithm) => {
      const ring = new KeyRing([await aKey(algorithm)]);
      const jwks = createLocalJWKSet({ keys: [...ring.jwks.keys] });
      // Many, because an ECDSA integer is one byte short or long in one of a few hundred signatures.
      const count = algorithm.startsWith('ES') ? 800 : 5;
      for (let made = 0; made < count; made++) {
        const token = await tokens.prepare(aClient({}), ring).issue(authorization);
        const { protectedHeader } = await jwtVerify(token, jwks, {
          issuer,
          audience: 'https://api.example',
          typ: 'at+jwt',
          currentDate: new Date(clock.now()),
        });
        expect(protectedHeader).toEqual({ typ: 'at+jwt', alg: algorithm, kid: ring.signing?.kid });
      }
    },
  );

  it('are named by their RFC 7638 thumbprint and published without private members', async () => {
    const key = await aKey('ES256');
    expect(key.kid).toBe(await calculateJwkThumbprint(key.publicJwk));
    expect(Object.keys(key.publicJwk).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    expect(Object.keys((await aKey('RS256')).publicJwk).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
  });

  it('sign only while Active, and verify while Published, Active or Retiring', async () => {
    const [published, active, retiring] = [
      await aKey('ES256', 'Published'),
      await aKey('ES256', 'Active'),
      await aKey('ES256', 'Retiring'),
    ];
    const ring = new KeyRing([published, retiring, active]);
    expect(ring.signing?.kid).toBe(active.kid);
    expect(ring.jwks.keys.map((jwk) => jwk.kid)).toEqual([published.kid, retiring.kid, active.kid]);
    const old = await tokens.prepare(aClient({}), new KeyRing([{ ...retiring, state: 'Active' }])).issue(authorization);
    expect((await tokens.verify(old, ring))?.sub).toBe('shop.reports');
    expect(await tokens.verify(old, new KeyRing([active]))).toBeUndefined();
  });

  it('that do not fit their algorithm are refused', async () => {
    const [es256, es384, short] = [
      await generateSigningKeyPem('ES256'),
      await generateSigningKeyPem('ES384'),
      await generateSigningKeyPem('RS256', 1024),
    ];
    await expect(importSigningKey(es256, 'RS256', 'Active')).rejects.toThrow(TypeError);
    await expect(importSigningKey(es384, 'ES256', 'Active')).rejects.toThrow(TypeError);
    await expect(importSigningKey(short, 'RS256', 'Active')).rejects.toThrow(TypeError);
    await expect(importSigningKey('not a key', 'ES256', 'Active')).rejects.toThrow();
  });

  it('of one kid and two algorithms → the ring has the one that signs, and its JWKS entry is of the same algorithm', async () => {
    const [rsa, ec] = [await generateSigningKeyPem('RS256', 2048), await generateSigningKeyPem('ES256')];
    const given: SigningKey[] = [];
    for (const state of ['Published', 'Active', 'Retiring'] as const) {
      for (const algorithm of ['RS256', 'PS256'] as const) given.push(await importSigningKey(rsa, algorithm, state));
      given.push(await importSigningKey(ec, 'ES256', state));
    }
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...given), { maxLength: 6 }), (keys) => {
        const ring = new KeyRing(keys);
        expect(ring.signingFor(['RS256', 'PS256', 'ES256'])).toBe(ring.signing);
        const { signing, jwks } = ring;
        expect(signing?.kid).toBe(keys.find(({ state }) => state === 'Active')?.kid);
        expect(jwks.keys.map(({ kid }) => kid)).toEqual([...new Set(keys.map(({ kid }) => kid))]);
        expect(jwks.keys.find(({ kid }) => kid === signing?.kid)).toBe(signing?.publicJwk);
        expect(ring.find(signing?.kid ?? '')).toBe(signing);
      }),
    );
  });

  it('of several algorithms → the first Active one of those that fit, in the order of the ring', async () => {
    const [published, rs256, es256, eddsa, otherRs256, ps256] = [
      await aKey('RS256', 'Published'),
      await aKey('RS256'),
      await aKey('ES256'),
      await aKey('EdDSA', 'Retiring'),
      await aKey('RS256'),
      await aKey('PS256'),
    ];
    const ring = new KeyRing([published, es256, eddsa, rs256, otherRs256, ps256]);
    const kidFor = (...algorithms: SigningAlgorithm[]) => ring.signingFor(algorithms)?.kid;
    expect(kidFor('RS256')).toBe(rs256.kid);
    expect(kidFor('RS256', 'ES256')).toBe(es256.kid);
    expect(kidFor('PS256')).toBe(ps256.kid);
    expect(kidFor('EdDSA')).toBeUndefined();
    expect(kidFor()).toBeUndefined();
    expect(ring.signing?.kid).toBe(es256.kid);
  });

  it.each(['RS256', 'PS256'] as const)(
    'of %s → each signature is made on the thread pool, and the event loop goes on',
    async (algorithm) => {
      const ring = new KeyRing([await aKey(algorithm)]);
      const { issue } = tokens.prepare(aClient({}), ring);
      let turns = 0;
      let isDone = false;
      const turn = () => {
        turns += 1;
        if (!isDone) setImmediate(turn);
      };
      turn();
      await Promise.all(Array.from({ length: 50 }, () => issue(authorization)));
      isDone = true;
      // Made one after the other on this thread, they would be done in the first turn.
      expect(turns).toBeGreaterThan(1);
    },
  );

  it('are missed before a grant is used up, with 503', async () => {
    const waiting = new KeyRing([await aKey('ES256', 'Published')]);
    expect(() => tokens.prepare(aClient({}), waiting)).toThrow(
      expect.objectContaining({ code: 'temporarily_unavailable', reason: 'no_signing_key', retryAfterSeconds: 5 }),
    );
  });
});

describe('a JWT that is no access token of ours', () => {
  const claims = {
    iss: issuer,
    sub: 'shop.web',
    aud: 'https://api.example',
    client_id: 'shop.web',
    iat: 1_800_000_000,
    exp: 1_800_000_600,
    jti: 'x',
    scope: 'orders:read',
  };
  const sign = (key: SigningKey, header: object, payload: object) =>
    new SignJWT({ ...payload })
      .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: 'at+jwt', ...header })
      .sign(key.privateKey);

  it('is not read though one of our keys signed it: another type, another issuer, a claim too few', async () => {
    const key = await aKey('ES256');
    const ring = new KeyRing([key]);
    expect(await tokens.verify(await sign(key, {}, claims), ring)).toMatchObject({ sub: 'shop.web' });
    expect(await tokens.verify(await sign(key, { typ: 'JWT' }, claims), ring)).toBeUndefined();
    expect(await tokens.verify(await sign(key, { typ: 'logout+jwt' }, claims), ring)).toBeUndefined();
    expect(await tokens.verify(await sign(key, {}, { ...claims, iss: 'https://other.example' }), ring)).toBeUndefined();
    for (const name of ['sub', 'aud', 'client_id', 'iat', 'exp', 'jti', 'scope']) {
      const fewer = Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name));
      expect(await tokens.verify(await sign(key, {}, fewer), ring), name).toBeUndefined();
    }
  });

  it('is not read when the key made it with another algorithm than its own', async () => {
    const key = await aKey('RS256');
    const other = await sign(key, { alg: 'PS256' }, claims);
    expect(await tokens.verify(other, new KeyRing([key]))).toBeUndefined();
  });
});

describe('JWT access tokens', () => {
  it('carry the claims of RFC 9068 and nothing else', async () => {
    const ring = new KeyRing([await aKey('ES256')]);
    const person = { subject: 'usr_1', grantId: '000.g', authTime: 1_799_999_000_999, refreshToken: undefined };
    const token = await tokens.prepare(aClient({ clientId: 'shop.web' }), ring).issue({ ...authorization, ...person });
    const claims = await tokens.verify(token, ring);
    expect(claims).toEqual({
      iss: issuer,
      sub: 'usr_1',
      aud: 'https://api.example',
      client_id: 'shop.web',
      iat: 1_800_000_000,
      exp: 1_800_000_600,
      jti: expect.stringMatching(/^[A-Za-z0-9_-]{11}\.[A-Za-z0-9_-]{27}$/),
      scope: 'orders:read',
      auth_time: 1_799_999_000,
      grant_id: '000.g',
    });
  });

  it('are made together in one tick, each with its own key; a key that cannot sign fails no other signature', async () => {
    const [one, other] = [await aKey('ES256'), await aKey('ES256')];
    const broken: SigningKey = { ...one, privateKey: one.publicKey };
    const rings = [one, other, broken, other].map((key) => new KeyRing([key]));
    const made = await Promise.allSettled(rings.map((ring) => tokens.prepare(aClient({}), ring).issue(authorization)));
    expect(made.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    for (const [index, ring] of rings.entries()) {
      const outcome = made[index];
      if (outcome?.status === 'fulfilled') expect(await tokens.verify(outcome.value, ring)).toBeDefined();
    }
  });

  it('are inactive from the second they expire, without skew', async () => {
    const ring = new KeyRing([await aKey('ES256')]);
    const token = await tokens.prepare(aClient({}), ring).issue(authorization);
    const at = (now: number) => new AccessTokens({ issuer, clock: { now: () => now }, random, handles, endOfTick });
    expect(await at(1_800_000_599_999).verify(token, ring)).toBeDefined();
    expect(await at(1_800_000_600_000).verify(token, ring)).toBeUndefined();
  });

  it('are not read when any byte is changed, or when they are no access token', async () => {
    const key = await aKey('ES256');
    const ring = new KeyRing([key]);
    const token = await tokens.prepare(aClient({}), ring).issue(authorization);
    const positions = Array.from({ length: Math.ceil(token.length / 7) }, (_, step) => step * 7);
    for (const index of [...positions, token.length - 1]) {
      const flipped = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1);
      expect(await tokens.verify(flipped, ring)).toBeUndefined();
    }
    expect(await tokens.verify('', ring)).toBeUndefined();
    expect(await tokens.verify('a.b.c', ring)).toBeUndefined();
    const none = `${Buffer.from(`{"alg":"none","typ":"at+jwt","kid":"${key.kid}"}`).toString('base64url')}.${token.split('.')[1]}.`;
    expect(await tokens.verify(none, ring)).toBeUndefined();
  });
});
