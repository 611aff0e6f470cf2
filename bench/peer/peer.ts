// The peer as it is configured for all of its processes: oidc-provider with the same client, grants and tokens as the
// grantry under test.

import { generateKeyPairSync } from 'node:crypto';
import type { Redis } from 'ioredis';
import Provider from 'oidc-provider';
import {
  AUDIENCE,
  CLIENT_ID,
  CLIENT_SECRET,
  OPENID_SCOPES,
  PERSON,
  REDIRECT_URI,
  SCOPE,
  SIGNER_ID,
  SIGNER_JWK,
} from '../load/load-client.ts';
import { peerRedisAdapter } from './peer-redis-adapter.ts';

/** @param redis where its state is; without it, in memory */
export function peerProvider(issuer: string, redis: Redis | undefined): Provider {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const signingKey = { ...privateKey.export({ format: 'jwk' }), kty: 'EC' as const, alg: 'ES256', use: 'sig' as const };
  return new Provider(issuer, {
    ...(redis && { adapter: peerRedisAdapter(redis) }),
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
        redirect_uris: [REDIRECT_URI],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_basic',
        // Its clients verify ID tokens with RS256 unless configured otherwise, and it holds no such key.
        id_token_signed_response_alg: 'ES256',
      },
      {
        client_id: SIGNER_ID,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [SIGNER_JWK] },
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [signingKey] },
    scopes: [SCOPE, ...OPENID_SCOPES],
    claims: { profile: ['name', 'preferred_username'], email: ['email', 'email_verified'] },
    // As ours: the claims of a scope are in the ID token, too.
    conformIdTokenClaims: false,
    findAccount: (_context, accountId) => ({ accountId, claims: () => claimsOf(accountId) }),
    // By default it takes secrets alone.
    clientAuthMethods: ['client_secret_basic', 'private_key_jwt'],
    pkce: { required: () => true },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    ttl: { ClientCredentials: 600, AccessToken: 600, RefreshToken: 14 * 86_400, Grant: 90 * 86_400 },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        // Else a sign-in turns the token of an API into one for userinfo.
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  });
}

function claimsOf(sub: string) {
  const { displayName: name, email } = PERSON;
  return { sub, name, preferred_username: sub, email, email_verified: true };
}
