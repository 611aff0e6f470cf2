import { describe, expect, it } from 'vitest';
import { authorizationServerMetadata, metadataPaths } from '../../../src/oauth/endpoints/metadata.ts';

const ISSUER = 'https://auth.example/tenant';

describe('authorization server metadata (RFC 8414)', () => {
  it('says what this server offers', () => {
    const document = authorizationServerMetadata({
      issuer: ISSUER,
      grantTypes: ['authorization_code', 'client_credentials', 'refresh_token'],
      authMethods: new Map([
        ['client_secret_basic', { confidential: true, signingAlgorithms: [] }],
        ['private_key_jwt', { confidential: true, signingAlgorithms: ['ES256', 'PS256'] }],
        ['kubernetes_service_account', { confidential: true, signingAlgorithms: ['ES256'] }],
        ['none', { confidential: false, signingAlgorithms: [] }],
      ]),
    });
    const confidential = ['client_secret_basic', 'private_key_jwt', 'kubernetes_service_account'];
    expect(document).toEqual({
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/token`,
      jwks_uri: `${ISSUER}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
      token_endpoint_auth_methods_supported: [...confidential, 'none'],
      token_endpoint_auth_signing_alg_values_supported: ['ES256', 'PS256'],
      revocation_endpoint: `${ISSUER}/revoke`,
      revocation_endpoint_auth_methods_supported: [...confidential, 'none'],
      revocation_endpoint_auth_signing_alg_values_supported: ['ES256', 'PS256'],
      introspection_endpoint: `${ISSUER}/introspect`,
      introspection_endpoint_auth_methods_supported: confidential,
      introspection_endpoint_auth_signing_alg_values_supported: ['ES256', 'PS256'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      dpop_signing_alg_values_supported: ['ES256', 'PS256', 'EdDSA', 'Ed25519'],
    });
  });

  it('leaves empty arrays out', () => {
    const document = authorizationServerMetadata({
      issuer: ISSUER,
      grantTypes: [],
      authMethods: new Map([['none', { confidential: false, signingAlgorithms: [] }]]),
    });
    expect(document).not.toHaveProperty('grant_types_supported');
    expect(document).not.toHaveProperty('introspection_endpoint_auth_methods_supported');
    expect(document).not.toHaveProperty('token_endpoint_auth_signing_alg_values_supported');
    expect(document).toHaveProperty('token_endpoint_auth_methods_supported', ['none']);
  });
});

describe('the paths of the metadata', () => {
  it('are one for an issuer without a path', () => {
    expect(metadataPaths('http://localhost:9400')).toEqual(['/.well-known/oauth-authorization-server']);
  });

  it('have the well-known path inserted before the path of the issuer (RFC 8414 §3.1)', () => {
    expect(metadataPaths('https://auth.example/a/b')).toEqual([
      '/.well-known/oauth-authorization-server/a/b',
      '/a/b/.well-known/oauth-authorization-server',
    ]);
  });
});
