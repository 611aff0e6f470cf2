// Sign-in by an OpenID provider, over HTTP: what is sent, what is believed, and what every fault becomes.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OidcProviderClient } from '../../../src/login/upstream/oidc.ts';
import type { ProviderAnswer, SignInRequest, StartedSignIn } from '../../../src/oauth/ports/upstream-provider.ts';
import type { OidcProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { anOidcProvider, SIGN_IN_REQUEST } from './providers.ts';
import { json, ScriptedProvider } from './scripted-provider.ts';

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
});
afterAll(() => upstream.stop());
beforeEach(() => {
  upstream.metadata = {};
  upstream.claims = {};
  upstream.userinfo = { sub: 'ada-1' };
  upstream.algorithm = 'ES256';
  upstream.answers.clear();
  upstream.asked.clear();
  upstream.redeemed.length = 0;
});

function clientWith(changes: Partial<OidcProvider> = {}, isClaimedElsewhere = (_domain: string) => false) {
  const provider = anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes));
  const { credentials } = provider;
  if (credentials === undefined) throw new Error('a provider of these tests has credentials');
  return new OidcProviderClient(provider, { credentials, isClaimedElsewhere });
}

async function departed(client: OidcProviderClient, request: Partial<SignInRequest> = {}): Promise<StartedSignIn> {
  expect((await client.discover()).reach).toBe('Reachable');
  const started = await client.begin(Object.assign({}, SIGN_IN_REQUEST, request));
  if (started === 'unavailable') throw new Error('the provider was discovered');
  upstream.nonce = started.nonce;
  return started;
}

/** The callback of a browser. */
function returning(started: StartedSignIn, parameters: Record<string, string> = { code: 'c1' }) {
  const answer = new URLSearchParams(Object.assign({ state: started.state }, parameters));
  return { pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters: answer };
}

async function answerTo(
  parameters?: Record<string, string>,
  changes: Partial<OidcProvider> = {},
): Promise<ProviderAnswer> {
  const client = clientWith(changes);
  const started = await departed(client);
  return await client.finish(returning(started, parameters));
}

describe('the request', () => {
  it('has PKCE, state, nonce, and what the manifest and the client ask for', async () => {
    const client = clientWith({ acrValues: ['mfa', 'phr'], scopes: ['openid', 'groups'] });
    const started = await departed(client, {
      prompt: 'login',
      maxAge: 60,
      loginHint: 'ada',
      uiLocales: 'de',
    });
    const url = new URL(started.location);
    expect(`${url.origin}${url.pathname}`).toBe(`${upstream.issuer}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'grantry',
      response_type: 'code',
      redirect_uri: SIGN_IN_REQUEST.callbackUrl,
      scope: 'openid groups',
      state: started.state,
      nonce: started.nonce,
      code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      code_challenge_method: 'S256',
      acr_values: 'mfa phr',
      prompt: 'login',
      max_age: '60',
      login_hint: 'ada',
      ui_locales: 'de',
    });
    const again = await departed(client);
    expect([again.state, again.nonce, again.codeVerifier]).not.toEqual([
      started.state,
      started.nonce,
      started.codeVerifier,
    ]);
  });

  it('before anything is known of the provider → unavailable', async () => {
    expect(await clientWith().begin(SIGN_IN_REQUEST)).toBe('unavailable');
  });
});

describe('a good answer', () => {
  it('→ the person; the code is redeemed once, with the verifier and the secret', async () => {
    upstream.userinfo = {};
    upstream.claims = {
      preferred_username: 'ada',
      name: 'Ada',
      email: 'a@b.example',
      email_verified: true,
      groups: ['x'],
    };
    const client = clientWith();
    const started = await departed(client);
    expect(await client.finish(returning(started))).toEqual({
      outcome: 'asserted',
      person: {
        subject: expect.stringMatching(/^usr_/),
        username: 'ada',
        displayName: 'Ada',
        email: 'a@b.example',
        groups: ['corp:x'],
        authTime: undefined,
      },
      isOverage: false,
      groupsLeftOut: 0,
    });
    expect(upstream.redeemed).toHaveLength(1);
    const { form, authorization } = upstream.redeemed[0] ?? {};
    expect(form?.get('code_verifier')).toBe(started.codeVerifier);
    expect(form?.get('redirect_uri')).toBe(SIGN_IN_REQUEST.callbackUrl);
    expect(authorization).toMatch(/^Basic /);
    expect(upstream.asked.get('/userinfo')).toBeUndefined();
  });

  it.each(['client_secret_post', 'none'] as const)('with %s → no Authorization header', async (clientAuth) => {
    expect((await answerTo(undefined, { clientAuth })).outcome).toBe('asserted');
    const [{ form, authorization } = { form: undefined, authorization: '' }] = upstream.redeemed;
    expect(authorization).toBeUndefined();
    expect(form?.has('client_secret')).toBe(clientAuth === 'client_secret_post');
  });

  it('without a mapped claim → that of userinfo, which overrides nothing', async () => {
    upstream.claims = { preferred_username: 'ada' };
    upstream.userinfo = { sub: 'ada-1', preferred_username: 'root', groups: ['ops'] };
    expect(await answerTo()).toMatchObject({ person: { username: 'ada', groups: ['corp:ops'] } });
  });

  it('with the issuer of RFC 9207 → the same', async () => {
    upstream.metadata = { authorization_response_iss_parameter_supported: true };
    expect((await answerTo({ code: 'c1', iss: upstream.issuer })).outcome).toBe('asserted');
  });

  it('with a required claim → let in; without → refused', async () => {
    const requiredClaims = [{ claim: 'hd', values: ['corp.example.com'] }];
    upstream.claims = { hd: 'corp.example.com' };
    expect((await answerTo(undefined, { requiredClaims })).outcome).toBe('asserted');
    upstream.claims = { hd: 'evil.example' };
    expect(await answerTo(undefined, { requiredClaims })).toMatchObject({ reason: 'person_not_permitted' });
  });

  it('in a domain that another provider lists → the address is left out', async () => {
    upstream.claims = { email: 'a@b.example', email_verified: true };
    const client = clientWith({}, (domain) => domain === 'b.example');
    const started = await departed(client);
    expect(await client.finish(returning(started))).toMatchObject({ person: { email: undefined } });
  });
});

describe('what is not believed → invalid', () => {
  it.each<[string, Record<string, unknown>]>([
    ['another issuer', { iss: 'https://evil.example' }],
    ['another audience', { aud: 'somebody' }],
    ['another authorized party', { aud: ['grantry', 'other'], azp: 'other' }],
    ['another nonce', { nonce: 'n' }],
    ['no nonce', { nonce: null }],
    ['an end two minutes ago', { exp: Math.floor(Date.now() / 1000) - 120 }],
    ['no end', { exp: null }],
    ['no subject', { sub: null }],
    ['a subject of 256 characters', { sub: 'a'.repeat(256) }],
    ['a subject with NUL', { sub: 'a\0' }],
    ['a subject that is a number', { sub: 17 }],
  ])('an ID token with %s', async (_case, claims) => {
    upstream.claims = claims;
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
  });

  it('an ID token that is signed with the secret, or with a key that is not published', async () => {
    upstream.algorithm = 'HS256';
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
    upstream.algorithm = 'ES256';
    upstream.answers.set('/keys', (_request, response) => json(response, { keys: [] }));
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
  });

  it('an ID token with a changed payload', async () => {
    upstream.answers.set('/token', async (_request, response) => {
      const [head, payload = '', signature] = (await upstream.idToken()).split('.');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
      claims.sub = 'root';
      const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
      json(response, { access_token: 'at', token_type: 'Bearer', id_token: `${head}.${forged}.${signature}` });
    });
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
  });

  it('no ID token; userinfo of another subject; a refused code; a redirect; 1 MiB', async () => {
    upstream.answers.set('/token', (_request, response) =>
      json(response, { access_token: 'at', token_type: 'Bearer' }),
    );
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
    upstream.answers.set('/token', (_request, response) => json(response, { error: 'invalid_grant' }, 400));
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
    upstream.answers.set('/token', (_request, response) => {
      response.writeHead(307, { location: `${upstream.issuer}/other` }).end();
    });
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
    expect(upstream.asked.get('/other')).toBeUndefined();
    upstream.answers.set('/token', (_request, response) => json(response, { padding: 'x'.repeat(1024 * 1024) }));
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
    upstream.answers.clear();
    upstream.userinfo = { sub: 'root' };
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
  });

  it.each<[string, Record<string, string>]>([
    ['another state', { code: 'c1', state: 'other' }],
    ['the issuer of another provider', { code: 'c1', iss: 'https://evil.example' }],
    ['no code', {}],
    ['an unknown error', { error: 'invalid_scope' }],
    ['the error of another issuer', { error: 'access_denied', iss: 'https://evil.example' }],
  ])('a callback with %s: nothing is redeemed', async (_case, parameters) => {
    expect(await answerTo(parameters)).toMatchObject({ outcome: 'invalid' });
    expect(upstream.redeemed).toEqual([]);
  });

  it('a callback without the issuer that the metadata promises', async () => {
    upstream.metadata = { authorization_response_iss_parameter_supported: true };
    expect(await answerTo()).toMatchObject({ outcome: 'invalid' });
  });
});

describe('errors of the provider', () => {
  it.each([
    ['access_denied', 'cancelled'],
    ['login_required', 'cancelled'],
    ['interaction_required', 'cancelled'],
    ['temporarily_unavailable', 'unavailable'],
    ['server_error', 'unavailable'],
  ])('%s → %s', async (error, outcome) => {
    expect(await answerTo({ error })).toMatchObject({ outcome });
  });

  it.each([429, 500, 503])('status %i → unavailable', async (status) => {
    upstream.answers.set('/token', (_request, response) => json(response, {}, status));
    expect(await answerTo()).toMatchObject({ outcome: 'unavailable' });
  });

  it('a connection that breaks, unavailable keys, and a body that breaks → unavailable', async () => {
    upstream.answers.set('/token', (_request, response) => response.destroy());
    expect(await answerTo()).toMatchObject({ outcome: 'unavailable' });
    upstream.answers.set('/token', (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' }).write('{"a');
      response.socket?.end();
    });
    expect(await answerTo()).toMatchObject({ outcome: 'unavailable' });
    upstream.answers.clear();
    upstream.answers.set('/keys', (_request, response) => json(response, {}, 503));
    expect(await answerTo()).toMatchObject({ outcome: 'unavailable' });
  });
});

describe('discovery', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['another issuer', { issuer: 'https://evil.example' }, 'IssuerMismatch'],
    ['the issuer with a slash', { issuer: 'SLASH' }, 'IssuerMismatch'],
    ['no token endpoint', { token_endpoint: null }, 'DiscoveryFailed'],
    ['no keys', { jwks_uri: null }, 'DiscoveryFailed'],
    ['an http endpoint that is not loopback', { token_endpoint: 'http://corp.example.com/token' }, 'DiscoveryFailed'],
    ['an endpoint of another scheme', { authorization_endpoint: 'javascript:alert(1)' }, 'DiscoveryFailed'],
  ])('of a document with %s → %s', async (_case, metadata, reach) => {
    upstream.metadata = metadata.issuer === 'SLASH' ? { issuer: `${upstream.issuer}/` } : metadata;
    const client = clientWith();
    expect((await client.discover()).reach).toBe(reach);
    expect(await client.begin(SIGN_IN_REQUEST)).toBe('unavailable');
  });

  it('of 1 MiB, of a redirect, of another status, of no JSON → failed, and what was known stands', async () => {
    const client = clientWith();
    await departed(client);
    const path = '/.well-known/openid-configuration';
    const faults = [
      (_request: unknown, response: Parameters<typeof json>[0]) => json(response, { padding: 'x'.repeat(1024 * 1024) }),
      (_request: unknown, response: Parameters<typeof json>[0]) =>
        response.writeHead(302, { location: '/other' }).end(),
      (_request: unknown, response: Parameters<typeof json>[0]) => json(response, {}, 404),
      (_request: unknown, response: Parameters<typeof json>[0]) => response.end('<html>'),
      (_request: unknown, response: Parameters<typeof json>[0]) => response.destroy(),
    ];
    for (const fault of faults) {
      upstream.answers.set(path, fault);
      expect((await client.discover()).reach).toBe('DiscoveryFailed');
    }
    expect(await client.begin(SIGN_IN_REQUEST)).not.toBe('unavailable');
    client.forget();
    expect(await client.begin(SIGN_IN_REQUEST)).toBe('unavailable');
  });

  it('again, of the same document → the keys that were fetched stay', async () => {
    const client = clientWith();
    for (let round = 0; round < 2; round += 1) {
      const started = await departed(client);
      expect((await client.finish(returning(started))).outcome).toBe('asserted');
    }
    expect(upstream.asked.get('/keys')).toBe(1);
  });
});

describe('a provider behind an authority of its own', () => {
  it('with ca.crt → reached; without → not; an http endpoint → not', async () => {
    const maker = new CertificateMaker();
    const authority = maker.authority();
    const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
    const secure = await ScriptedProvider.start(certificate);
    try {
      const { credentials } = anOidcProvider();
      const trusting = Object.assign({}, credentials, { authorities: authority.certificate });
      const reach = async (using: typeof trusting) => {
        const client = clientWith({ issuer: secure.issuer, credentials: using });
        const { reach: reached } = await client.discover();
        client.close();
        return reached;
      };
      expect(await reach(trusting)).toBe('Reachable');
      expect(await reach(Object.assign({}, trusting, { authorities: undefined }))).toBe('DiscoveryFailed');
      secure.metadata = { token_endpoint: 'http://127.0.0.1:1/token' };
      expect(await reach(trusting)).toBe('DiscoveryFailed');
    } finally {
      secure.stop();
    }
  });
});

it('33 sign-ins at once → the last one is refused, the others go on', async () => {
  const client = clientWith();
  const started = await departed(client);
  const held: (() => void)[] = [];
  upstream.answers.set('/token', (_request, response) => {
    held.push(() => json(response, { error: 'invalid_grant' }, 400));
    if (held.length === 32) full.resolve();
  });
  const full = Promise.withResolvers<void>();
  const running = Array.from({ length: 32 }, () => client.finish(returning(started)));
  await full.promise;
  expect(await client.finish(returning(started))).toMatchObject({ outcome: 'unavailable' });
  for (const answer of held) answer();
  expect(await Promise.all(running)).toMatchObject(Array.from({ length: 32 }, () => ({ outcome: 'invalid' })));
});
