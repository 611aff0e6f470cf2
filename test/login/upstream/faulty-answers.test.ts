// Faults of an OpenID provider that no honest one has: ID tokens by another key, of another time, with claims of other types, and
// userinfo that contradicts them.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { OidcProviderClient } from '../../../src/login/upstream/oidc.ts';
import { anOidcProvider, SIGN_IN_REQUEST } from './providers.ts';
import { json, ScriptedProvider } from './scripted-provider.ts';

/** All that the mapping reads, so userinfo is not asked. */
const ADA = { preferred_username: 'ada', name: 'Ada', email: 'a@corp.example', email_verified: true, groups: [] };

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
});
afterAll(() => upstream.stop());
beforeEach(() => {
  upstream.metadata = {};
  upstream.claims = ADA;
  upstream.userinfo = { sub: 'ada-1' };
  upstream.algorithm = 'ES256';
  upstream.answers.clear();
  upstream.asked.clear();
});

async function outcome(): Promise<string> {
  const provider = anOidcProvider({ issuer: upstream.issuer });
  const { credentials } = provider;
  if (credentials === undefined) throw new Error('a provider of these tests has credentials');
  const client = new OidcProviderClient(provider, { credentials, isClaimedElsewhere: () => false });
  await client.discover();
  const started = await client.begin(SIGN_IN_REQUEST);
  if (started === 'unavailable') throw new Error('the provider was discovered');
  upstream.nonce = started.nonce;
  const parameters = new URLSearchParams({ state: started.state, code: 'c1' });
  const answer = await client.finish({ pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
  client.close();
  return answer.outcome === 'asserted' ? String(answer.person.username) : answer.outcome;
}

describe('an ID token', () => {
  it.each(['HS256', 'none', 'other key'] as const)('signed by %s → invalid', async (algorithm) => {
    upstream.algorithm = algorithm;
    expect(await outcome()).toBe('invalid');
  });

  it('without a signature, where the metadata offers that → invalid', async () => {
    upstream.metadata = { id_token_signing_alg_values_supported: ['none'] };
    upstream.algorithm = 'none';
    expect(await outcome()).toBe('invalid');
  });

  it('signed with the secret, where the metadata offers that alone → invalid', async () => {
    upstream.metadata = { id_token_signing_alg_values_supported: ['HS256'] };
    upstream.algorithm = 'HS256';
    expect(await outcome()).toBe('invalid');
  });

  it('signed with the secret, which is published as a key → invalid', async () => {
    const k = Buffer.from('the secret of grantry!!!!!!!!!!!').toString('base64url');
    upstream.answers.set('/keys', (_request, response) => json(response, { keys: [{ kty: 'oct', k, alg: 'HS256' }] }));
    upstream.algorithm = 'HS256';
    expect(await outcome()).toBe('invalid');
  });

  it.each<[string, Record<string, unknown>]>([
    ['an issuer in a list', { iss: ['ISSUER'] }],
    ['an audience that begins like ours', { aud: 'grantry2' }],
    ['no audience', { aud: null }],
    ['no issuer', { iss: null }],
    ['an end in text', { exp: '9999999999' }],
    ['no begin', { iat: null }],
    ['a nonce in a list', { nonce: ['NONCE'] }],
    ['two audiences and no authorized party', { aud: ['grantry', 'other'] }],
  ])('with %s → invalid', async (_case, claims) => {
    upstream.claims = Object.assign({}, ADA, claims);
    expect(await outcome()).toBe('invalid');
  });

  it('that is no JWT, or has five parts → invalid', async () => {
    for (const id_token of ['', 'x', 'a.b.c', 'a.b.c.d.e', 7, null, { a: 1 }]) {
      upstream.answers.set('/token', (_request, response) =>
        json(response, { access_token: 'at', token_type: 'Bearer', id_token }),
      );
      expect(await outcome(), JSON.stringify(id_token)).toBe('invalid');
    }
  });
});

describe('a provider whose clock differs', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  it.each([
    ['exp', -59, 'ada'],
    ['exp', -61, 'invalid'],
    ['nbf', 59, 'ada'],
    ['nbf', 61, 'invalid'],
  ])('%s %i s from now → %s', async (name, seconds, expected) => {
    upstream.claims = Object.assign({}, ADA, { [name]: Math.floor(Date.now() / 1000) + seconds });
    expect(await outcome()).toBe(expected);
  });
});

describe('userinfo of a thin ID token', () => {
  beforeEach(() => {
    upstream.claims = {};
    upstream.userinfo = Object.assign({ sub: 'ada-1' }, ADA);
  });

  it('of the same subject → the person', async () => expect(await outcome()).toBe('ada'));

  it.each<[string, Record<string, unknown>]>([
    ['without a subject', ADA],
    ['of another one', Object.assign({}, ADA, { sub: 'root' })],
    ['of one in another case', Object.assign({}, ADA, { sub: 'Ada-1' })],
    ['of one that is a number', Object.assign({}, ADA, { sub: 1 })],
  ])('%s → invalid', async (_case, userinfo) => {
    upstream.userinfo = userinfo;
    expect(await outcome()).toBe('invalid');
  });

  it.each([
    [500, 'unavailable'],
    [429, 'unavailable'],
    [401, 'invalid'],
    [302, 'invalid'],
  ])('with status %i → %s', async (status, expected) => {
    upstream.answers.set('/userinfo', (_request, response) => {
      response.writeHead(status, { location: '/elsewhere', 'content-type': 'application/json' }).end('{}');
    });
    expect(await outcome()).toBe(expected);
    expect(upstream.asked.get('/elsewhere')).toBeUndefined();
  });

  it.each(['[]', 'null', '"ada-1"', '<html>', ''])('with the body %s → invalid', async (body) => {
    upstream.answers.set('/userinfo', (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    expect(await outcome()).toBe('invalid');
  });

  it('that is signed, which grantry did not ask for → invalid', async () => {
    upstream.answers.set('/userinfo', async (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/jwt' }).end(await upstream.idToken());
    });
    expect(await outcome()).toBe('invalid');
  });
});
