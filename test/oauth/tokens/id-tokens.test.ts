// ID tokens, verified by two independent libraries: jose, and openid-client as an application uses it.

import { randomBytes, webcrypto } from 'node:crypto';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import * as library from 'openid-client';
import { beforeAll, describe, expect, it } from 'vitest';
import { OAuthError } from '../../../src/oauth/ports/error.ts';
import type { Person } from '../../../src/oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../../../src/oauth/registry/keys.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { type IdTokenContent, IdTokens } from '../../../src/oauth/tokens/id-tokens.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { aClient } from '../a-client.ts';

const ISSUER = 'https://id.example';
const NOW = 1_800_000_000_500;
const options = { issuer: ISSUER, clock: { now: () => NOW }, random: { bytes: randomBytes }, endOfTick: setImmediate };
const idTokens = new IdTokens(options);

const ADA: Person = {
  subject: 'usr_ada',
  username: 'ada',
  displayName: 'Ada Lovelace',
  email: 'ada@example.com',
  groups: ['editors', 'team-a'],
};
const CONTENT: IdTokenContent = {
  person: ADA,
  scope: ['openid'],
  login: { authTime: 1_799_999_000_999, sid: 'the-session', nonce: 'n-0S6_WzA2Mj' },
  accessToken: 'an.access.token',
};

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const satisfies readonly SigningAlgorithm[];
let keys: readonly SigningKey[] = [];
let ring = new KeyRing([]);
beforeAll(async () => {
  const pems = ALGORITHMS.map(async (algorithm) => [await generateSigningKeyPem(algorithm, 2048), algorithm] as const);
  const made = pems.map(async (pem) => importSigningKey(...(await pem), 'Active'));
  keys = await Promise.all(made);
  ring = new KeyRing(keys);
});

const clientWith = (signingAlgorithm: SigningAlgorithm, lifetimeSeconds = 3600) =>
  aClient({ clientId: 'shop.web', idTokens: { signingAlgorithm, lifetimeSeconds } });

async function issued(content: Partial<IdTokenContent>, client = clientWith('RS256')): Promise<string> {
  return (await idTokens.prepare(client, ring).issue({ ...CONTENT, ...content })).idToken;
}

describe('an ID token', () => {
  it.each(ALGORITHMS)('of a client with %s → jose verifies it from the JWKS, and its claims are these', async (alg) => {
    const token = await issued({}, clientWith(alg, 900));
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet({ keys: [...ring.jwks.keys] }), {
      issuer: ISSUER,
      audience: 'shop.web',
      typ: 'JWT',
      algorithms: [alg],
      currentDate: new Date(NOW),
    });
    expect(protectedHeader).toEqual({ typ: 'JWT', alg, kid: ring.signingFor([alg])?.kid });
    expect(payload).toEqual({
      iss: ISSUER,
      sub: 'usr_ada',
      aud: 'shop.web',
      iat: 1_800_000_000,
      exp: 1_800_000_900,
      auth_time: 1_799_999_000,
      at_hash: expect.any(String),
      sid: 'the-session',
      jti: expect.stringMatching(/^[\w-]{27}$/),
      nonce: 'n-0S6_WzA2Mj',
    });
  });

  it('has the hash of the access token in Core A.4 → at_hash as it stands there', async () => {
    const token = await issued({ accessToken: 'jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y' });
    expect(decodeJwt(token).at_hash).toBe('77QmUPtjPfzWtF2AnpK9RQ');
  });

  it.each([
    ['PS256', 'SHA-256'],
    ['ES256', 'SHA-256'],
    ['ES384', 'SHA-384'],
    ['EdDSA', 'SHA-512'],
  ] as const)(
    'of a client with %s → at_hash is the left half of %s, for opaque access tokens too',
    async (alg, digest) => {
      for (const accessToken of ['a.jwt.token', 'at1.007.opaque']) {
        const whole = Buffer.from(await webcrypto.subtle.digest(digest, Buffer.from(accessToken)));
        const half = whole.subarray(0, whole.length / 2).toString('base64url');
        expect(decodeJwt(await issued({ accessToken }, clientWith(alg))).at_hash).toBe(half);
      }
    },
  );

  it('without a nonce in the request, or at a refresh → has none, and never the same jti', async () => {
    const login = { ...CONTENT.login, nonce: undefined };
    const [one, other] = [decodeJwt(await issued({ login })), decodeJwt(await issued({ login }))];
    expect(one).not.toHaveProperty('nonce');
    expect(one.jti).not.toBe(other.jti);
  });

  it('has the claims of its scope about the person, filtered by the client, and none replaces one of the protocol', async () => {
    const scope = ['openid', 'profile', 'email', 'groups'];
    const client = { ...clientWith('ES256'), groups: ['team-*'] };
    expect(decodeJwt(await issued({ scope }, client))).toMatchObject({
      sub: 'usr_ada',
      name: 'Ada Lovelace',
      preferred_username: 'ada',
      email: 'ada@example.com',
      email_verified: true,
      groups: ['team-a'],
    });
  });

  it('given groups of 4 KiB as JSON → has them; of a byte more → leaves them out and says how many', async () => {
    // `["…"]` with one name of this length.
    const groupOf = (bytes: number) => 'é'.repeat(Math.floor((bytes - 4) / 2)) + 'a'.repeat((bytes - 4) % 2);
    for (const [bytes, omittedGroups] of [
      [4096, 0],
      [4097, 1],
    ] as const) {
      const person = { ...ADA, groups: [groupOf(bytes)] };
      const made = await idTokens
        .prepare(clientWith('ES256'), ring)
        .issue({ ...CONTENT, person, scope: ['openid', 'email', 'groups'] });
      expect(made.omittedGroups).toBe(omittedGroups);
      const claims = decodeJwt(made.idToken);
      expect('groups' in claims).toBe(omittedGroups === 0);
      expect(claims.email).toBe('ada@example.com');
    }
  });

  it('of an algorithm for which no key is Active → 503 before anything is exchanged', () => {
    const others = new KeyRing(keys.filter(({ algorithm }) => algorithm !== 'ES384'));
    expect(idTokens.prepare(clientWith('RS256'), others)).toBeDefined();
    const refusal = { code: 'temporarily_unavailable', reason: 'no_signing_key', retryAfterSeconds: 5 };
    const prepare = () => idTokens.prepare(clientWith('ES384'), others);
    expect(prepare).toThrow(OAuthError);
    expect(prepare).toThrow(expect.objectContaining(refusal));
  });

  it('is no access token of ours, though one of our keys signed it', async () => {
    const handles = new Handles({ issuer: ISSUER, peppers: [Buffer.alloc(32, 1)], random: options.random });
    const accessTokens = new AccessTokens({ ...options, handles });
    expect(await accessTokens.verify(await issued({}), ring)).toBeUndefined();
  });
});

describe('openid-client, to which a token endpoint answers with an ID token', () => {
  const REDIRECT = 'https://shop.example/callback';

  /** The answer to a code, with a clock of the application that is that of the issuer. */
  async function redeemed(alg: SigningAlgorithm, idToken: string, checks: library.AuthorizationCodeGrantChecks) {
    const server = { issuer: ISSUER, token_endpoint: `${ISSUER}/token`, jwks_uri: `${ISSUER}/jwks` };
    const metadata = { id_token_signed_response_alg: alg, [library.clockTolerance]: 5 };
    const config = new library.Configuration(server, 'shop.web', metadata, library.None());
    config[library.customFetch] = async (url) =>
      Response.json(
        url === server.jwks_uri
          ? ring.jwks
          : { access_token: CONTENT.accessToken, token_type: 'Bearer', expires_in: 600, id_token: idToken },
      );
    library.enableNonRepudiationChecks(config);
    return await library.authorizationCodeGrant(config, new URL(`${REDIRECT}?code=c`), checks);
  }

  it.each(ALGORITHMS)(
    'of a client with %s → the person, and nothing for another nonce or another client',
    async (alg) => {
      const now = { now: () => Date.now() };
      const current = new IdTokens({ ...options, clock: now });
      const login = { ...CONTENT.login, authTime: Date.now() - 1000 };
      const { idToken } = await current.prepare(clientWith(alg), ring).issue({ ...CONTENT, login });
      const checks = { pkceCodeVerifier: 'v'.repeat(43), idTokenExpected: true, maxAge: 60 };
      const answer = await redeemed(alg, idToken, { ...checks, expectedNonce: 'n-0S6_WzA2Mj' });
      expect(answer.claims()).toMatchObject({ sub: 'usr_ada', sid: 'the-session' });
      await expect(redeemed(alg, idToken, { ...checks, expectedNonce: 'another' })).rejects.toThrow();
      const foreign = await current
        .prepare({ ...clientWith(alg), clientId: 'other' }, ring)
        .issue({ ...CONTENT, login });
      await expect(redeemed(alg, foreign.idToken, { ...checks, expectedNonce: 'n-0S6_WzA2Mj' })).rejects.toThrow();
    },
  );
});
