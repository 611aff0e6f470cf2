// Tokens that the issuer is asked about, by a running grantry: opaque ones, revoked ones, an issuer that is away
// (docs/scope.md: 6750-3).

import { describe, expect, it } from 'vitest';
import { AccessDenied, createVerifier, type IntrospectionOptions } from '../../src/resource-server/index.ts';
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

it('an issuer that is away, or does not know the API → 503', async () => {
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
