// IdentityProviders for tests, as their manifests with defaults become, and a sign-in request for them.

import type { SignInRequest } from '../../../src/oauth/ports/upstream-provider.ts';
import type { GitHubProvider, OidcProvider } from '../../../src/oauth/registry/identity-provider.ts';

const BASE = {
  name: 'corp',
  uid: 'uid-corp',
  generation: 1,
  displayName: 'Corp',
  isSuspended: false,
  revokedBefore: undefined,
  verifyEvery: 86_400_000,
  allow: { emailDomains: [], groups: [] },
  groups: { include: ['**'], prefix: 'corp:', allowCommas: false },
  credentials: { clientId: 'grantry', clientSecret: 'the secret of grantry!!!!!!!!!!!', authorities: undefined },
};

/** A sign-in request without options. */
export const SIGN_IN_REQUEST: SignInRequest = {
  callbackUrl: 'https://login.example.com/login/callback/corp',
  prompt: undefined,
  maxAge: undefined,
  loginHint: undefined,
  uiLocales: undefined,
};

export function anOidcProvider(changes: Partial<OidcProvider> = {}): OidcProvider {
  return Object.assign(
    {},
    BASE,
    {
      type: 'OIDC' as const,
      issuer: 'https://corp.example.com',
      scopes: ['openid', 'profile', 'email'],
      clientAuth: 'client_secret_basic' as const,
      subjectClaim: 'sub' as const,
      claims: {
        username: 'preferred_username',
        displayName: 'name',
        email: 'email',
        emailVerified: 'email_verified',
        groups: 'groups',
      },
      assumeEmailVerified: false,
      requiredClaims: [],
      acrValues: [],
    },
    changes,
  );
}

export function aGitHubProvider(changes: Partial<GitHubProvider> = {}): GitHubProvider {
  return Object.assign({}, BASE, { type: 'GitHub' as const, host: 'github.com', organizations: [] }, changes);
}
