// Metadata (RFC 8414), keys (RFC 7517), metadata of resources (RFC 9728) and the paths of an issuer, also of one with a path
// (docs/scope.md: 8414-1, 9728-1, 9728-2, T2).

import { importJWK, type JWK, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { basic, DEFAULT_AUDIENCE, type Grantry, readJson, startGrantry } from '../../grantry.ts';
import { aResource } from '../../oauth/a-resource.ts';

const MACHINE = { clientId: 'team.machine', secret: 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p' };
const METADATA = '/.well-known/oauth-authorization-server';
const JWKS = '/.well-known/jwks.json';
const RESOURCE = '/resources/shop/notes';

interface Metadata {
  readonly [member: string]: unknown;
  readonly issuer: string;
}

async function metadataAt(address: string): Promise<Metadata> {
  const response = await fetch(address);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return (await response.json()) as Metadata;
}

async function aToken(grantry: Grantry): Promise<string> {
  const headers = { authorization: basic(MACHINE.clientId, MACHINE.secret) };
  return (await readJson(await grantry.post('/token', { grant_type: 'client_credentials' }, { headers }))).access_token;
}

describe('the metadata', () => {
  it('names the issuer, every endpoint below it, and only what is served', async () => {
    const grantry = await startGrantry({ clients: [] });
    const metadata = await metadataAt(grantry.url(METADATA));
    expect(metadata).toMatchObject({
      issuer: grantry.issuer,
      authorization_endpoint: `${grantry.issuer}/authorize`,
      token_endpoint: `${grantry.issuer}/token`,
      revocation_endpoint: `${grantry.issuer}/revoke`,
      introspection_endpoint: `${grantry.issuer}/introspect`,
      jwks_uri: `${grantry.issuer}${JWKS}`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    });
    expect(new Set(metadata.grant_types_supported as string[])).toEqual(
      new Set(['authorization_code', 'client_credentials', 'refresh_token']),
    );
    for (const [member, value] of Object.entries(metadata)) {
      if (Array.isArray(value)) expect([member, value.length > 0]).toEqual([member, true]);
    }
    expect(metadata).not.toHaveProperty('registration_endpoint');
  });

  it('lists the algorithms of assertions, none and symmetric ones not among them', async () => {
    const grantry = await startGrantry({ clients: [] });
    const metadata = await metadataAt(grantry.url(METADATA));
    for (const endpoint of ['token', 'revocation', 'introspection']) {
      expect(metadata[`${endpoint}_endpoint_auth_methods_supported`]).toContain('private_key_jwt');
      const algorithms = metadata[`${endpoint}_endpoint_auth_signing_alg_values_supported`];
      expect(algorithms).toEqual(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519']);
    }
  });

  it('and the keys may be kept for five minutes', async () => {
    const grantry = await startGrantry({ clients: [] });
    for (const path of [METADATA, JWKS]) {
      const response = await fetch(grantry.url(path));
      expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    }
  });
});

describe('the metadata of a resource', () => {
  it('given an issuer with a path → below it, as JSON that may be kept for five minutes', async () => {
    const displayName = { text: 'Notes', translations: { de: 'Notizen' } };
    const resources = [aResource({ displayName })];
    const grantry = await startGrantry({ clients: [], resources, issuerPath: '/auth' });
    const response = await fetch(grantry.url(RESOURCE));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    expect(await response.json()).toMatchObject({
      resource: 'https://notes.example/api',
      authorization_servers: [grantry.issuer],
      'resource_name#de': 'Notizen',
    });
  });

  it('given a resource that changes, and is deleted → the document of now, and none', async () => {
    const grantry = await startGrantry({ clients: [], resources: [aResource()] });
    grantry.setResources([aResource({ scopes: [] })]);
    expect(await (await fetch(grantry.url(RESOURCE))).json()).not.toHaveProperty('scopes_supported');
    grantry.setResources([]);
    expect((await fetch(grantry.url(RESOURCE))).status).toBe(404);
  });

  it('given discovery None, a URN, another name → 404 in the same words', async () => {
    const grantry = await startGrantry({
      clients: [],
      resources: [
        aResource({ name: 'hidden', isDiscoverable: false }),
        aResource({ name: 'urn', identifier: 'urn:grantry:ns:shop:urn' }),
      ],
    });
    for (const name of ['hidden', 'urn', 'other', '..%2fhidden', '%00', 'constructor']) {
      const response = await fetch(grantry.url(`/resources/shop/${name}`));
      expect([name, response.status]).toEqual([name, 404]);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(await response.json()).toEqual({
        error: 'not_found',
        error_description: 'There is nothing at this address.',
      });
    }
  });
});

describe('the keys', () => {
  it('verify an access token by its kid, and have no private member', async () => {
    const keys = await Promise.all(
      (['ES256', 'RS256', 'EdDSA'] as const).map(async (algorithm, index) =>
        importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, index === 0 ? 'Active' : 'Published'),
      ),
    );
    const grantry = await startGrantry({ clients: [MACHINE], keys });
    const jwks = (await (await fetch(grantry.url(JWKS))).json()) as { keys: JWK[] };
    expect(jwks.keys.map(({ alg }) => alg)).toEqual(['ES256', 'RS256', 'EdDSA']);
    for (const jwk of jwks.keys) {
      expect(jwk).toMatchObject({ kid: expect.any(String), use: 'sig' });
      for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']) expect(jwk).not.toHaveProperty(secret);
    }
    const { protectedHeader, payload } = await jwtVerify(
      await aToken(grantry),
      ({ kid, alg }) => importJWK(jwks.keys.find((jwk) => jwk.kid === kid) as JWK, alg),
      { issuer: grantry.issuer, typ: 'at+jwt', currentDate: new Date(grantry.clock.now()) },
    );
    expect(protectedHeader.kid).toBe(jwks.keys[0]?.kid);
    expect(payload).toMatchObject({
      sub: MACHINE.clientId,
      client_id: MACHINE.clientId,
      aud: DEFAULT_AUDIENCE,
      scope: 'read',
    });
  });

  it('without one that signs the token endpoint is unavailable and the rest is there', async () => {
    const grantry = await startGrantry({ clients: [MACHINE], keys: [] });
    const headers = { authorization: basic(MACHINE.clientId, MACHINE.secret) };
    const response = await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
    expect([response.status, (await readJson(response)).error]).toEqual([503, 'temporarily_unavailable']);
    expect(await (await fetch(grantry.url(JWKS))).json()).toEqual({ keys: [] });
    expect((await fetch(grantry.adminUrl('/readyz'))).status).toBe(503);
  });
});

describe('an issuer with a path', () => {
  it('has every route below that path, and the inserted metadata at the root', async () => {
    const grantry = await startGrantry({ clients: [MACHINE], issuerPath: '/auth/one' });
    const root = `http://127.0.0.1:${grantry.port}`;
    const inserted = await metadataAt(`${root}${METADATA}/auth/one`);
    expect(inserted).toEqual(await metadataAt(grantry.url(METADATA)));
    expect(inserted).toMatchObject({
      issuer: `${root}/auth/one`,
      token_endpoint: `${root}/auth/one/token`,
      jwks_uri: `${root}/auth/one${JWKS}`,
    });
    expect((await fetch(String(inserted.jwks_uri))).status).toBe(200);
    expect(await aToken(grantry)).toMatch(/^ey/);
    expect((await fetch(grantry.url('/authorize'))).status).toBe(400);
    for (const path of [
      '/token',
      '/authorize',
      JWKS,
      METADATA,
      `${METADATA}/auth`,
      `${METADATA}/auth/one/`,
      '/auth/one',
      '/auth/one/',
    ]) {
      expect([path, (await fetch(`${root}${path}`)).status]).toEqual([path, 404]);
    }
  });

  it('is compared with case, and not as a pattern', async () => {
    const grantry = await startGrantry({ clients: [], issuerPath: '/a.b' });
    const root = `http://127.0.0.1:${grantry.port}`;
    expect((await fetch(`${root}/a.b${JWKS}`)).status).toBe(200);
    for (const path of ['/aXb', '/A.B', '/a.b/', '/a%2eb'])
      expect((await fetch(`${root}${path}${JWKS}`)).status).toBe(404);
  });
});

describe('an https issuer', () => {
  it('adds HSTS to every answer, whatever the connection is', async () => {
    const grantry = await startGrantry({ clients: [], issuer: 'https://id.example' });
    for (const path of [METADATA, '/token', '/nowhere', '/authorize']) {
      const response = await fetch(grantry.url(path));
      expect(response.headers.get('strict-transport-security')).toMatch(/^max-age=31536000/);
    }
    expect((await metadataAt(grantry.url(METADATA))).issuer).toBe('https://id.example');
  });
});
