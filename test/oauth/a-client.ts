// A registered client for tests: a confidential web application that may do all three grants by default.

import type { Client } from '../../src/oauth/registry/client.ts';

/** The client with these fields replaced. It has no secret verifiers: add them where a secret is verified. */
export function aClient(overrides: Partial<Client> = {}): Client {
  return {
    uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001',
    clientId: 'shop.web',
    namespace: 'shop',
    name: 'web',
    maxState: 64 * 2 ** 20,
    displayName: 'Shop',
    clientUri: undefined,
    policyUri: undefined,
    tosUri: undefined,
    revokeTokensBefore: 0,
    authMethod: 'client_secret_basic',
    secretVerifiers: [],
    assertion: undefined,
    certificate: undefined,
    serviceAccounts: [],
    senderConstraint: 'None',
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    redirectUris: ['https://shop.example/callback'],
    postLogoutRedirectUris: [],
    allowedCorsOrigins: [],
    scopes: ['shop/read', 'shop/write'],
    defaultScopes: ['shop/read'],
    groups: ['*'],
    backchannelLogoutUri: undefined,
    audiences: ['https://api.shop.example/'],
    resources: [],
    defaultAudience: undefined,
    resourceServerAudiences: [],
    admittedBy: 'policy',
    consent: 'Required',
    signIn: undefined,
    requireState: false,
    tokens: {
      accessTokenFormat: 'jwt',
      accessTokenLifetimeSeconds: 600,
      refreshTokenIdleLifetimeSeconds: 1_209_600,
      refreshTokenLifetimeSeconds: 7_776_000,
      refreshTokenRotation: 'Always',
      refreshTokenReuseGraceSeconds: 10,
    },
    idTokens: { signingAlgorithm: 'RS256', lifetimeSeconds: 3600 },
    ...overrides,
  };
}
