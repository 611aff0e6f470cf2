// Tokens that the issuer is asked about, by a running grantry: opaque ones, revoked ones, an issuer that is unavailable
// (docs/scope.md: 6750-3).

import { describe, expect, it } from 'vitest';
import {
  AccessDenied,
  createVerifier,
  type IntrospectionOptions,
  type UnsignedRequest,
} from '../../src/resource-server/index.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';
import { basic, DEFAULT_AUDIENCE, type Grantry, PKCE, readJson, startGrantry } from '../grantry.ts';
import { API, WEB } from '../http/protocol/token-calls.ts';

const CLIENT = { clientId: API.clientId, clientSecret: API.secret };
/** Clocks may differ by so many milliseconds, unless the options say otherwise. */
const TOLERANCE = 5000;
const ACCOUNT = { headers: { authorization: basic(WEB.clientId, WEB.secret) } };

async function setUp(accessTokenFormat: 'jwt' | 'opaque', options: Partial<IntrospectionOptions> = {}) {
  const tokens = {
    accessTokenFormat,
    accessTokenLifetimeSeconds: 600,
    refreshTokenIdleLifetimeSeconds: 1_209_600,
    refreshTokenLifetimeSeconds: 7_776_000,
    refreshTokenRotation: 'Always',
    refreshTokenReuseGraceSeconds: 10,
  } as const;
  const clients = [
    { ...WEB, tokens },
    { ...API, resourceServerAudiences: [DEFAULT_AUDIENCE] },
  ];
  const grantry = await startGrantry({ clients });
  const calls = { count: 0 };
  const { issuer, clock } = grantry;
  const verifier = createVerifier({
    issuer,
    audience: DEFAULT_AUDIENCE,
    mode: 'introspection',
    introspection: Object.assign({}, CLIENT, options) as IntrospectionOptions,
    clock,
    fetch: (url, init) => {
      calls.count += 1;
      return fetch(url, init);
    },
  });
  const outcome = async (token: string): Promise<string> => {
    try {
      await verifier.verify(new Request('https://a.example/', { headers: { authorization: `Bearer ${token}` } }));
      return 'passes';
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      return `${error.status} ${error.reason}`;
    }
  };
  return { grantry, calls, outcome };
}

async function tokensOf(grantry: Grantry) {
  const code = await grantry.issueCode(WEB.clientId);
  const form = { grant_type: 'authorization_code', code, redirect_uri: 'https://app.example/cb' };
  const response = await grantry.post('/token', { ...form, code_verifier: PKCE.verifier }, ACCOUNT);
  return await readJson(response);
}

describe.each(['jwt', 'opaque'] as const)('a token of format %s', (format) => {
  it('→ passes, and is refused at once when it is revoked', async () => {
    const { grantry, outcome } = await setUp(format);
    const { access_token: token } = await tokensOf(grantry);
    expect(await outcome(token)).toBe('passes');
    await grantry.post('/revoke', { token }, ACCOUNT);
    expect(await outcome(token)).toBe('401 token_inactive');
  });

  it('with kept answers → is refused when they are as old as may be', async () => {
    const { grantry, calls, outcome } = await setUp(format, { cacheSeconds: 30 });
    const { access_token: token } = await tokensOf(grantry);
    expect([await outcome(token), await outcome(token)]).toEqual(['passes', 'passes']);
    expect(calls.count).toBe(1);
    await grantry.post('/revoke', { token }, ACCOUNT);
    grantry.clock.advance(29_999);
    expect(await outcome(token)).toBe('passes');
    grantry.clock.advance(1);
    expect(await outcome(token)).toBe('401 token_inactive');
  });

  it('with kept answers → is refused from its end on, however new the answer is', async () => {
    const { grantry, calls, outcome } = await setUp(format, { cacheSeconds: 30 });
    const { access_token: token } = await tokensOf(grantry);
    grantry.clock.advance(590_000);
    expect(await outcome(token)).toBe('passes');
    grantry.clock.advance(10_000 + TOLERANCE - 1);
    expect(await outcome(token)).toBe('passes');
    grantry.clock.advance(1);
    expect(await outcome(token)).toBe('401 token_expired');
    expect(calls.count).toBe(1);
  });
});

it('a refresh token is no access token', async () => {
  const { grantry, outcome } = await setUp('jwt');
  const { refresh_token: token } = await tokensOf(grantry);
  expect(await outcome(token)).toBe('401 token_inactive');
});

it('several requests with one token at once → one call', async () => {
  const { grantry, calls, outcome } = await setUp('jwt');
  const { access_token: token } = await tokensOf(grantry);
  expect(new Set(await Promise.all([1, 2, 3, 4].map(() => outcome(token))))).toEqual(new Set(['passes']));
  expect(calls.count).toBe(1);
  await outcome(token);
  expect(calls.count).toBe(2);
});

it('an issuer that is unavailable, or does not know the API → 503', async () => {
  const { grantry, outcome } = await setUp('opaque');
  const { access_token: token } = await tokensOf(grantry);
  const stranger = await setUp('opaque', { clientSecret: 'a-wrong-secret-of-the-same-length' });
  expect(await stranger.outcome(token)).toBe('503 introspection_unavailable');
  await grantry.stop();
  expect(await outcome(token)).toBe('503 introspection_unavailable');
});

it('a function may authenticate the request instead of a secret', async () => {
  const { grantry, outcome } = await setUp('jwt', {
    authenticate: async ({ url, headers, body }) => {
      body.append('client_id', API.clientId);
      return { url, headers: { ...headers, authorization: basic(API.clientId, API.secret) }, body };
    },
  });
  const { access_token: token } = await tokensOf(grantry);
  expect(await outcome(token)).toBe('passes');
});

it('an id and a secret of any characters, and an endpoint of its own → asked there, by the form of RFC 6749 §2.3.1', async () => {
  const endpoint = 'https://auth.example/elsewhere/introspect';
  const { issuer, audience, token, fetch } = createTestIssuer();
  const asked: string[][] = [];
  const verifier = createVerifier({
    issuer,
    audience,
    mode: 'introspection',
    introspection: { clientId: 'a:b', clientSecret: 'ä +%', endpoint },
    fetch: (url, init) => {
      const [, credentials = ''] = new Headers(init.headers).get('authorization')?.split(' ') ?? [];
      asked.push([url, Buffer.from(credentials, 'base64').toString()]);
      return fetch(url, init);
    },
  });
  await verifier.verify(new Request('https://a.example/', { headers: { authorization: `Bearer ${token()}` } }));
  expect(asked).toEqual([[endpoint, 'a%3Ab:%C3%A4+%2B%25']]);
});

describe('an answer of the issuer', () => {
  const ISSUER = 'https://id.example';
  const NOW = 1_800_000_000;
  const RIGHT = {
    active: true,
    iss: ISSUER,
    aud: DEFAULT_AUDIENCE,
    sub: 'usr_a',
    client_id: 'shop.web',
    jti: 'an-id',
    iat: NOW - 10,
    exp: NOW + 600,
  };

  function verifierThat(answers: () => Response, options: Partial<IntrospectionOptions> = {}) {
    const requests: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
    const verifier = createVerifier({
      issuer: ISSUER,
      audience: DEFAULT_AUDIENCE,
      mode: 'introspection',
      introspection: { ...CLIENT, ...options } as IntrospectionOptions,
      clock: { now: () => NOW * 1000 },
      fetch: async (url, init) => {
        requests.push({ url, headers: new Headers(init.headers), body: String(init.body) });
        return answers();
      },
    });
    const outcome = async (token = 'a-token') => {
      const headers = { authorization: `Bearer ${token}` };
      return await verifier.verify(new Request('https://a.example/', { headers })).then(
        () => 'passes',
        (error: AccessDenied) => `${error.status} ${error.reason}`,
      );
    };
    return { requests, outcome };
  }

  it.each<[string, object, string]>([
    ['that is right', {}, 'passes'],
    ['about an inactive token', { active: false }, '401 token_inactive'],
    ['without a word about that', { active: undefined }, '401 token_inactive'],
    ['with a text about that', { active: 'true' }, '401 token_inactive'],
    ['about a token of another issuer', { iss: 'https://other.example' }, '401 issuer_mismatch'],
    ['about a token for another API', { aud: 'urn:other' }, '401 audience_mismatch'],
    ['about a token for two APIs', { aud: [DEFAULT_AUDIENCE, 'urn:other'] }, '401 audience_mismatch'],
    ['about an expired token', { exp: NOW - 5 }, '401 token_expired'],
    ['without its end', { exp: undefined }, '401 time_malformed'],
    ['without its subject', { sub: undefined }, '401 claim_missing'],
  ])('%s → %s', async (_, changes, expected) => {
    const { outcome } = verifierThat(() => Response.json({ ...RIGHT, ...changes }));
    expect(await outcome()).toBe(expected);
  });

  it.each<[string, () => Response]>([
    ['a list', () => Response.json([RIGHT])],
    ['null', () => Response.json(null)],
    ['a text', () => Response.json('active')],
    ['no JSON', () => new Response('active')],
    ['an error with a right body', () => Response.json(RIGHT, { status: 500 })],
  ])('of %s → 503', async (_, answers) => {
    const { outcome } = verifierThat(answers);
    expect(await outcome()).toBe('503 introspection_unavailable');
  });

  it('is asked for as RFC 7662 §2.1 says, by JSON, and each time where none is kept', async () => {
    const { requests, outcome } = verifierThat(() => Response.json(RIGHT));
    expect([await outcome(), await outcome()]).toEqual(['passes', 'passes']);
    expect(requests.map(({ body }) => body)).toEqual(Array(2).fill('token=a-token&token_type_hint=access_token'));
    expect([requests[0]?.url, requests[0]?.headers.get('accept')]).toEqual([
      `${ISSUER}/introspect`,
      'application/json',
    ]);
    expect(requests[0]?.headers.get('authorization')).toMatch(/^Basic /);
  });

  it('with kept answers, about another token → is asked for: none has the answer of another', async () => {
    const { requests, outcome } = verifierThat(() => Response.json(RIGHT), { cacheSeconds: 30 });
    for (const token of ['a-token', 'another', 'a-token']) expect(await outcome(token)).toBe('passes');
    expect(requests).toHaveLength(2);
  });

  it('where a function authenticates → nothing is added to what it made', async () => {
    const introspection = { authenticate: (request: UnsignedRequest) => ({ ...request, headers: { 'x-key': 'k' } }) };
    const { requests, outcome } = verifierThat(() => Response.json(RIGHT), introspection as object);
    expect(await outcome()).toBe('passes');
    expect([...(requests[0]?.headers.keys() ?? [])]).toEqual(['x-key']);
  });

  it('about a token of 8192 characters → is asked for; of one more → refused unasked', async () => {
    const { requests, outcome } = verifierThat(() => Response.json(RIGHT));
    expect(await outcome('a'.repeat(8192))).toBe('passes');
    expect(await outcome('a'.repeat(8193))).toBe('401 token_too_large');
    expect(requests).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['cacheSeconds of -1', { cacheSeconds: -1 }],
    ['cacheSeconds of 31', { cacheSeconds: 31 }],
    ['cacheSeconds that is no number', { cacheSeconds: Number.NaN }],
    ['no secret', { clientSecret: undefined }],
    ['an empty secret', { clientSecret: '' }],
    ['no id', { clientId: undefined }],
    ['an id that is no text', { clientId: 7 }],
  ])('given options with %s → TypeError', (_, options) => {
    expect(() => verifierThat(() => Response.json(RIGHT), options)).toThrow(TypeError);
  });

  it.each([0, 30])('given cacheSeconds of %i → may be', (cacheSeconds) => {
    expect(() => verifierThat(() => Response.json(RIGHT), { cacheSeconds })).not.toThrow();
  });
});
