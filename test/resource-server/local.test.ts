// Tokens verified by the keys of the issuer: which keys count how long, and what costs a fetch (docs/scope.md: 6750-3).

import { beforeEach, describe, expect, it } from 'vitest';
import { AccessDenied, createVerifier, type VerifierOptions } from '../../src/resource-server/index.ts';
import { TestClock } from '../grantry.ts';
import { ALGORITHMS, aKey, sign, type TestKey } from '../oauth/values/signed-tokens.ts';

const SECOND = 1000;
const HOUR = 3_600_000;
const ISSUER = 'https://auth.example';
const AUDIENCE = 'urn:a';
const KEYS = Object.fromEntries(ALGORITHMS.map((algorithm) => [algorithm, aKey(algorithm)]));
const key = KEYS.ES256 as TestKey;

let clock: TestClock;
let published: readonly object[];
/** What the issuer answers instead of its keys. */
let answer: (() => Promise<Response>) | undefined;
let fetches: number;

beforeEach(() => {
  clock = new TestClock();
  published = ALGORITHMS.map((algorithm) => ({ ...KEYS[algorithm]?.jwk, kid: algorithm }));
  answer = undefined;
  fetches = 0;
});

function verifier(options: Partial<VerifierOptions> = {}) {
  const fetch = async (url: string) => {
    fetches += 1;
    expect(url).toBe(`${ISSUER}/.well-known/jwks.json`);
    const headers = { 'cache-control': 'public, max-age=300' };
    return (await answer?.()) ?? Response.json({ keys: published }, { headers });
  };
  return createVerifier(Object.assign({ issuer: ISSUER, audience: AUDIENCE, mode: 'local', clock, fetch }, options));
}

function token(claims: object = {}, header: object = {}, by = key): Promise<string> {
  const now = Math.floor(clock.now() / SECOND);
  const right = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'usr_1',
    client_id: 'shop.app',
    jti: 'a',
    iat: now,
    exp: now + 90_000,
  };
  return sign(by, { ...right, ...claims }, { typ: 'at+jwt', kid: by.algorithm, ...header });
}

/** `passes`, or status and reason. */
async function outcome(of: ReturnType<typeof verifier>, presented: string): Promise<string> {
  try {
    await of.verify(new Request('https://api.example/', { headers: { authorization: `Bearer ${presented}` } }));
    return 'passes';
  } catch (error) {
    if (!(error instanceof AccessDenied)) throw error;
    return `${error.status} ${error.reason}`;
  }
}

describe('a token', () => {
  it.each(ALGORITHMS)('signed by jose with %s → passes', async (algorithm) => {
    expect(await outcome(verifier(), await token({}, {}, KEYS[algorithm]))).toBe('passes');
  });

  it('→ an access with all that the claims say', async () => {
    const claims = {
      scope: 'a b',
      grant_id: 'g',
      auth_time: 1000,
      authorization_details: [{ type: 't' }],
      more: { x: 1 },
    };
    const request = new Request('https://api.example/', {
      headers: { authorization: `Bearer ${await token(claims)}` },
    });
    const access = await verifier().verify(request, { scope: 'a' });
    expect(access).toMatchObject({
      subject: 'usr_1',
      clientId: 'shop.app',
      scope: ['a', 'b'],
      tokenId: 'a',
      expiresAt: clock.now() + 90_000 * SECOND,
      grantId: 'g',
      authTime: 1_000_000,
      authorizationDetails: [{ type: 't' }],
    });
    expect(() => Object.assign(access.claims.more as object, { x: 2 })).toThrow(TypeError);
  });

  it('of another key under a published kid, or of an algorithm that the key is not for → 401', async () => {
    const api = verifier();
    expect(await outcome(api, await token({}, {}, aKey('ES256')))).toBe('401 signature_invalid');
    expect(await outcome(api, await token({}, { kid: 'ES384' }))).toBe('401 key_unknown');
  });

  it('that is wrong without its signature → 401, and nothing is fetched', async () => {
    const api = verifier();
    expect(await outcome(api, 'garbage')).toBe('401 token_malformed');
    expect(await outcome(api, await token({ aud: 'urn:b' }))).toBe('401 audience_mismatch');
    expect(await outcome(api, await token({}, { typ: 'JWT' }))).toBe('401 token_type_wrong');
    expect(await outcome(api, 'a'.repeat(9000))).toBe('401 token_too_large');
    expect(fetches).toBe(0);
  });

  it('that has passed → passes until it expires', async () => {
    const api = verifier();
    const presented = await token({ exp: clock.now() / SECOND + 60 });
    expect(await outcome(api, presented)).toBe('passes');
    expect(await outcome(api, presented)).toBe('passes');
    clock.advance(64 * SECOND);
    expect(await outcome(api, presented)).toBe('passes');
    clock.advance(SECOND);
    expect(await outcome(api, presented)).toBe('401 token_expired');
  });
});

describe('the keys of the issuer', () => {
  it('are fetched at the first token, and again when they are stale, beside the request', async () => {
    const api = verifier();
    const presented = await token();
    expect(fetches).toBe(0);
    await Promise.all([outcome(api, presented), outcome(api, presented)]);
    clock.advance(300 * SECOND);
    await outcome(api, presented);
    expect(fetches).toBe(1);
    clock.advance(1);
    const never = new Promise<Response>(() => {});
    answer = () => never;
    expect(await outcome(api, presented)).toBe('passes');
    expect(fetches).toBe(2);
  });

  it.each([
    ['max-age=1000000', 900],
    ['public, max-age=120', 120],
    ['max-age=1', 60],
    ['no-store', 60],
  ])('with Cache-Control %s → are fetched again after %i seconds', async (cacheControl, seconds) => {
    answer = async () => Response.json({ keys: published }, { headers: { 'cache-control': cacheControl } });
    const api = verifier();
    const presented = await token();
    await outcome(api, presented);
    clock.advance(seconds * SECOND);
    await outcome(api, presented);
    expect(fetches).toBe(1);
    clock.advance(1);
    await outcome(api, presented);
    expect(fetches).toBe(2);
  });

  it('one of them revoked → its tokens pass no longer than two max-ages', async () => {
    const api = verifier();
    const presented = await token();
    expect(await outcome(api, presented)).toBe('passes');
    const arrived = Promise.withResolvers<Response>();
    answer = () => arrived.promise;
    clock.advance(600 * SECOND);
    expect(await outcome(api, presented)).toBe('passes');
    clock.advance(1);
    const waiting = outcome(api, presented);
    arrived.resolve(Response.json({ keys: published.filter((jwk) => !('kid' in jwk && jwk.kid === 'ES256')) }));
    expect(await waiting).toBe('401 key_unknown');
  });

  it('one of them revoked → after an idle hour its tokens pass not once', async () => {
    const api = verifier();
    const presented = await token();
    expect(await outcome(api, presented)).toBe('passes');
    published = published.filter((jwk) => !('kid' in jwk && jwk.kid === 'ES256'));
    clock.advance(HOUR);
    expect(await outcome(api, presented)).toBe('401 key_unknown');
  });

  it('unavailable → those at hand serve for a day, then 503', async () => {
    const api = verifier();
    const presented = await token();
    await outcome(api, presented);
    answer = () => Promise.reject(new Error('unavailable'));
    clock.advance(24 * HOUR);
    expect(await outcome(api, presented)).toBe('passes');
    clock.advance(6 * SECOND);
    expect(await outcome(api, presented)).toBe('503 keys_unavailable');
    answer = undefined;
    clock.advance(6 * SECOND);
    expect(await outcome(api, presented)).toBe('passes');
  });

  it('a new one → is fetched at its first token; a flood of unknown ones → one fetch per 30 seconds', async () => {
    const api = verifier();
    await outcome(api, await token());
    clock.advance(1);
    const added = aKey('ES256');
    published = [...published, { ...added.jwk, kid: 'new' }];
    expect(await outcome(api, await token({}, { kid: 'new' }, added))).toBe('passes');
    expect(fetches).toBe(2);
    for (let index = 0; index < 50; index += 1) {
      expect(await outcome(api, await token({}, { kid: `unknown-${index}` }))).toBe('401 key_unknown');
    }
    expect(fetches).toBe(2);
    clock.advance(30 * SECOND);
    await outcome(api, await token({}, { kid: 'unknown' }));
    expect(fetches).toBe(3);
  });

  it.each([
    ['an error', () => new Response('{"keys":[]}', { status: 500 })],
    ['no JSON', () => new Response('<html>')],
    ['no key set', () => Response.json([])],
    ['more than 256 KiB', () => Response.json({ keys: [], padding: 'x'.repeat(256 * 1024) })],
  ])('answered by %s → 503', async (_, made) => {
    answer = async () => made();
    expect(await outcome(verifier(), await token())).toBe('503 keys_unavailable');
  });
});

describe('options', () => {
  it.each([
    ['an issuer with a slash', { issuer: 'https://auth.example/' }],
    ['an audience with a quote', { audience: 'a"b' }],
    ['a mode that there is not', { mode: 'jwks' }],
    ['no mode', { mode: undefined }],
    ['a binding that there is not', { requireBinding: 'dpop' }],
    ['a misspelt name', { requiredBinding: 'Any' }],
    ['an origin with a path', { origins: ['https://a.example/b'] }],
    ['DPoP without an origin', { requireBinding: 'DPoP' }],
    ['certificates from nowhere', { requireBinding: 'MutualTLS' }],
    ['a tolerance of an hour', { toleranceSeconds: 3600 }],
    ['a short secret', { dpopNonce: { secrets: [new Uint8Array(8)] } }],
    ['introspection without a client', { mode: 'introspection', introspection: {} }],
    [
      'introspection kept for an hour',
      { mode: 'introspection', introspection: { clientId: 'a', clientSecret: 'b', cacheSeconds: 3600 } },
    ],
  ])('with %s → TypeError at the start', (_, options) => {
    expect(() => verifier(options as Partial<VerifierOptions>)).toThrow(TypeError);
  });

  it('toleranceSeconds → how late a token may be', async () => {
    const api = verifier({ toleranceSeconds: 60 });
    const presented = await token({ exp: clock.now() / SECOND + 60 });
    clock.advance(120 * SECOND - 1);
    expect(await outcome(api, presented)).toBe('passes');
    clock.advance(1);
    expect(await outcome(api, presented)).toBe('401 token_expired');
  });

  it('metadataUrl → the address in the challenges', async () => {
    const metadataUrl = `${ISSUER}/resources/team/notes`;
    const refused = await verifier({ metadataUrl })
      .verify(new Request('https://api.example/'))
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({
      headers: { 'www-authenticate': `Bearer realm="${AUDIENCE}", resource_metadata="${metadataUrl}"` },
    });
  });
});
