// Mirror of oidcc-config-certification-test-plan of the OpenID Foundation's conformance suite: its one module.

import { calculateJwkThumbprint, importJWK, type JWK } from 'jose';
import { expect, it } from 'vitest';
import { clientManifest, ISSUER, startProvider } from './provider.ts';

const provider = await startProvider(clientManifest('first'), { issuer: ISSUER });
const { metadata } = provider;

it('oidcc-discovery-endpoint-verification → a document with all that Discovery demands, and its keys', async () => {
  const answer = await provider.json(`${metadata.issuer}/.well-known/openid-configuration`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(metadata).toMatchObject({
    issuer: ISSUER,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    claims_parameter_supported: false,
    request_uri_parameter_supported: false,
  });
  const lists = {
    id_token_signing_alg_values_supported: 'RS256',
    grant_types_supported: 'authorization_code',
    scopes_supported: 'openid',
    claims_supported: 'sub',
    code_challenge_methods_supported: 'S256',
  };
  for (const [member, value] of Object.entries(lists)) expect(metadata[member]).toContain(value);
  for (const scope of metadata.scopes_supported as string[]) expect(scope).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]+$/);
  const addresses = Object.entries(metadata).filter(([member]) => /_(endpoint|uri)$/.test(member));
  expect(addresses.map(([member]) => member)).toEqual(
    expect.arrayContaining(['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri']),
  );
  for (const [member, address] of addresses)
    expect([member, new URL(String(address)).protocol]).toEqual([member, 'https:']);
  const { body } = await provider.json(metadata.jwks_uri);
  const keys = body.keys as JWK[];
  expect(keys).toHaveLength(2);
  for (const { kid, use, ...key } of keys) {
    expect([typeof kid, use]).toEqual(['string', 'sig']);
    await importJWK(key, key.alg);
    expect(await calculateJwkThumbprint(key)).toMatch(/^[\w-]{43}$/);
    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']) expect(key).not.toHaveProperty(member);
  }
});
