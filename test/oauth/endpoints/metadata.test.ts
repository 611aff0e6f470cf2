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
      idTokenAlgorithms: ['EdDSA', 'RS256'],
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
      userinfo_endpoint: `${ISSUER}/userinfo`,
      end_session_endpoint: `${ISSUER}/logout`,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      scopes_supported: ['openid', 'profile', 'email', 'groups', 'offline_access'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['EdDSA', 'RS256'],
      claims_supported: [
        ...['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash', 'sid', 'jti'],
        ...['name', 'preferred_username', 'email', 'email_verified', 'groups'],
      ],
      prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
      claims_parameter_supported: false,
      request_uri_parameter_supported: false,
    });
  });

  it('leaves empty arrays out', () => {
    const document = authorizationServerMetadata({
      issuer: ISSUER,
      grantTypes: [],
      authMethods: new Map([['none', { confidential: false, signingAlgorithms: [] }]]),
      idTokenAlgorithms: [],
    });
    expect(document).not.toHaveProperty('grant_types_supported');
    expect(document).not.toHaveProperty('introspection_endpoint_auth_methods_supported');
    expect(document).not.toHaveProperty('token_endpoint_auth_signing_alg_values_supported');
    expect(document).toHaveProperty('token_endpoint_auth_methods_supported', ['none']);
  });
});

describe('the paths of the metadata', () => {
  it('given an issuer without a path → one for each well-known name', () => {
    expect(metadataPaths('http://localhost:9400')).toEqual([
      '/.well-known/oauth-authorization-server',
      '/.well-known/openid-configuration',
    ]);
  });

  it('given an issuer with a path → each name inserted before it (RFC 8414 §3.1), and appended (Discovery §4)', () => {
    expect(metadataPaths('https://auth.example/a/b')).toEqual([
      '/.well-known/oauth-authorization-server/a/b',
      '/a/b/.well-known/oauth-authorization-server',
      '/.well-known/openid-configuration/a/b',
      '/a/b/.well-known/openid-configuration',
    ]);
  });
});
