// The document of a protected resource, member by member, and when there is one (docs/scope.md: 9728-1).

import { describe, expect, it } from 'vitest';
import { protectedResourceMetadata, resourceMetadataUrl } from '../../../src/oauth/endpoints/resource-metadata.ts';
import { aResource } from '../a-resource.ts';

const ISSUER = 'https://id.example/tenant';
const ALGORITHMS = ['ES256', 'PS256', 'EdDSA', 'Ed25519'];

describe('protected resource metadata (RFC 9728 §2)', () => {
  it('given all that an owner may say → each member, names in all languages', () => {
    const resource = aResource({
      displayName: { text: 'Notes', translations: { de: 'Notizen', 'pt-BR': 'Notas' } },
      documentationUri: 'https://notes.example/docs',
      policyUri: 'https://notes.example/privacy',
      tosUri: 'https://notes.example/terms',
    });
    expect(protectedResourceMetadata(ISSUER, resource)).toEqual({
      resource: 'https://notes.example/api',
      authorization_servers: [ISSUER],
      scopes_supported: ['notes.read', 'notes.write'],
      bearer_methods_supported: ['header'],
      resource_name: 'Notes',
      'resource_name#de': 'Notizen',
      'resource_name#pt-BR': 'Notas',
      resource_documentation: 'https://notes.example/docs',
      resource_policy_uri: 'https://notes.example/privacy',
      resource_tos_uri: 'https://notes.example/terms',
    });
  });

  it('given nothing but an identifier → no empty member', () => {
    expect(protectedResourceMetadata(ISSUER, aResource({ scopes: [] }))).toEqual({
      resource: 'https://notes.example/api',
      authorization_servers: [ISSUER],
      bearer_methods_supported: ['header'],
    });
  });

  it.each([
    ['DPoP', { dpop_bound_access_tokens_required: true, dpop_signing_alg_values_supported: ALGORITHMS }],
    ['MutualTLS', { tls_client_certificate_bound_access_tokens: true }],
    ['Any', { dpop_signing_alg_values_supported: ALGORITHMS, tls_client_certificate_bound_access_tokens: true }],
    ['None', {}],
  ] as const)('given sender constraint %s → what tokens are bound to', (senderConstraint, members) => {
    expect(protectedResourceMetadata(ISSUER, aResource({ scopes: [], senderConstraint }))).toEqual({
      resource: 'https://notes.example/api',
      authorization_servers: [ISSUER],
      bearer_methods_supported: ['header'],
      ...members,
    });
  });
});

describe('the address of the metadata', () => {
  it.each([
    [{}, `${ISSUER}/resources/shop/notes`],
    [{ identifier: 'http://127.0.0.1:9500/api' }, `${ISSUER}/resources/shop/notes`],
    [{ identifier: 'urn:grantry:ns:team:notes' }, undefined],
    [{ isDiscoverable: false }, undefined],
  ])('given %o → %s', (overrides, url) => {
    expect(resourceMetadataUrl(ISSUER, aResource(overrides))).toBe(url);
  });
});
