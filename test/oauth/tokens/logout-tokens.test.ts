// Logout tokens and ID tokens that come back as hints: each is taken for what it is, and for nothing else.

import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, decodeJwt, jwtVerify, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../../../src/oauth/registry/keys.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { readIdTokenHint } from '../../../src/oauth/tokens/id-token-hint.ts';
import { IdTokens } from '../../../src/oauth/tokens/id-tokens.ts';
import { LogoutTokens } from '../../../src/oauth/tokens/logout-tokens.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { aClient } from '../a-client.ts';

const issuer = 'https://id.example';
const NOW = 1_800_000_000_500;
const options = { issuer, clock: { now: () => NOW }, random: { bytes: randomBytes }, endOfTick: setImmediate };
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const satisfies readonly SigningAlgorithm[];
const LOGIN = { authTime: NOW - 5000, sid: 'the-session', nonce: 'n' };
const PERSON = { subject: 'usr_ada', username: 'ada', displayName: undefined, email: undefined, groups: [] };

let keys: readonly SigningKey[] = [];
let ring = new KeyRing([]);
beforeAll(async () => {
  const made = ALGORITHMS.map(async (algorithm) =>
    importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active'),
  );
  keys = await Promise.all(made);
  ring = new KeyRing(keys);
});

const clientWith = (signingAlgorithm: SigningAlgorithm) =>
  aClient({ clientId: 'shop.web', idTokens: { signingAlgorithm, lifetimeSeconds: 3600 } });

async function idToken(algorithm: SigningAlgorithm = 'ES256'): Promise<string> {
  const prepared = new IdTokens(options).prepare(clientWith(algorithm), ring);
  return (await prepared.issue({ person: PERSON, scope: ['openid'], login: LOGIN, accessToken: 'a.b.c' })).idToken;
}

describe('a logout token', () => {
  const logoutTokens = new LogoutTokens(options);

  it.each(ALGORITHMS)(
    'of a client with %s → jose verifies it, and it has the claims of the specification',
    async (alg) => {
      const ended = { subject: 'usr_ada', sid: 'the-session' };
      const token = await logoutTokens.issue(clientWith(alg), ring, ended);
      const { payload, protectedHeader } = await jwtVerify(
        token ?? '',
        createLocalJWKSet({ keys: [...ring.jwks.keys] }),
        {
          issuer,
          audience: 'shop.web',
          typ: 'logout+jwt',
          algorithms: [alg],
          currentDate: new Date(NOW),
        },
      );
      expect(protectedHeader).toEqual({ typ: 'logout+jwt', alg, kid: ring.signingFor([alg])?.kid });
      expect(payload).toEqual({
        iss: issuer,
        sub: 'usr_ada',
        aud: 'shop.web',
        iat: 1_800_000_000,
        exp: 1_800_000_120,
        jti: expect.stringMatching(/^[\w-]{27}$/),
        sid: 'the-session',
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      });
      const other = await logoutTokens.issue(clientWith(alg), ring, ended);
      expect(decodeJwt(other ?? '').jti).not.toBe(payload.jti);
    },
  );

  it('of an algorithm for which no key signs → none', async () => {
    const others = new KeyRing(keys.filter(({ algorithm }) => algorithm !== 'EdDSA'));
    const ended = { subject: 'usr_ada', sid: 's' };
    expect(await logoutTokens.issue(clientWith('EdDSA'), others, ended)).toBeUndefined();
  });
});

describe('an ID token that comes back as a hint', () => {
  const read = (hint: string, among = ring) => readIdTokenHint(hint, { issuer, keys: among });
  const HINT = { subject: 'usr_ada', clientId: 'shop.web', sid: 'the-session' };

  it.each(ALGORITHMS)(
    'of %s → its person, client and session, also after its end and with a retiring key',
    async (alg) => {
      const retiring = new KeyRing(keys.map((key) => ({ ...key, state: 'Retiring' as const })));
      expect(read(await idToken(alg), retiring)).toEqual(HINT);
    },
  );

  it('given any other token of this issuer → none', async () => {
    const handles = new Handles({ issuer, peppers: [Buffer.alloc(32, 1)], random: options.random });
    const authorization = { subject: 'usr_ada', scope: ['openid'], audience: issuer, grantId: '000.g', authTime: NOW };
    const accessToken = await new AccessTokens({ ...options, handles })
      .prepare(clientWith('ES256'), ring)
      .issue({ ...authorization, refreshToken: undefined });
    const logoutToken = await new LogoutTokens(options).issue(clientWith('ES256'), ring, HINT);
    const { refreshToken, code } = { refreshToken: handles.refreshToken(handles.newCode('usr_ada'), 0), code: 'ac1.x' };
    for (const token of [accessToken, logoutToken ?? '', refreshToken, code, '', 'a.b.c', '..']) {
      expect(read(token)).toBeUndefined();
    }
  });

  it('of a removed key, of another issuer, by another algorithm, unsigned, or with a byte changed → none', async () => {
    const hint = await idToken('RS256');
    expect(read(hint, new KeyRing(keys.filter(({ algorithm }) => algorithm !== 'RS256')))).toBeUndefined();
    expect(readIdTokenHint(hint, { issuer: 'https://other.example', keys: ring })).toBeUndefined();
    const rsa = ring.signingFor(['RS256']) as SigningKey;
    const payload = decodeJwt(hint);
    const signed = (header: object, key = rsa.privateKey) =>
      new SignJWT(payload).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: rsa.kid, ...header }).sign(key);
    expect(read(await signed({}))).toEqual(HINT);
    expect(read(await signed({ alg: 'PS256' }))).toBeUndefined();
    expect(read(await signed({ kid: 'unknown' }))).toBeUndefined();
    expect(read(await signed({ typ: 'at+jwt' }))).toBeUndefined();
    const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    expect(read(`${encoded({ alg: 'none', typ: 'JWT', kid: rsa.kid })}.${encoded(payload)}.`)).toBeUndefined();
    const secret = Buffer.from(rsa.publicKey.export({ format: 'pem', type: 'spki' }) as string);
    const symmetric = new SignJWT(payload).setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: rsa.kid }).sign(secret);
    expect(read(await symmetric)).toBeUndefined();
    for (let index = 0; index < hint.length; index += 11) {
      const flipped = hint.slice(0, index) + (hint[index] === 'A' ? 'B' : 'A') + hint.slice(index + 1);
      expect(read(flipped)).toBeUndefined();
    }
  });
});
