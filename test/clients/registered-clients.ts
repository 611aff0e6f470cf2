// The clients whose libraries are tried, and the API their tokens are for: one of each way to authenticate and each token
// format. The person is alice.

import type { webcrypto } from 'node:crypto';
import type { Grantry, GrantryOptions } from '../grantry.ts';
import { assertedBy } from '../oauth/client-auth/client-assertions.ts';
import { aKey, readKey } from '../oauth/values/signed-tokens.ts';
import type { Answers } from './person.ts';

export const API = 'https://api.example/';
/** Ids and secrets that need encoding wherever a library puts them. */
export const WEB = { clientId: 'shop.web', secret: 'web: s3cr-t+%/with~signs ö' } as const;
export const PORTAL = { clientId: 'shop.portal', secret: 'p0rtal-s3cret-that-is-long' } as const;
export const NATIVE = { clientId: 'shop.native' } as const;
/** Signs assertions; the key goes to the library as what Web Crypto makes of it. */
export const SIGNER = { clientId: 'shop.signer', redirectUri: 'https://signer.example/cb' } as const;
const SIGNER_KEY = { ...aKey('ES256'), kid: 'signer-1' };
export const RESOURCE_SERVER = { clientId: 'shop.api', secret: 'secret-of-the-api-itself' } as const;

export const ALICE: Answers = { username: 'alice', password: 'correct horse battery staple', decision: 'allow' };

const TOKENS = {
  accessTokenFormat: 'jwt',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 86_400,
  refreshTokenLifetimeSeconds: 864_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;

/** The private key of {@link SIGNER} for a library that runs on Web Crypto. */
export async function signerKey(): Promise<{ readonly key: webcrypto.CryptoKey; readonly kid: string }> {
  const jwk = SIGNER_KEY.privateKey.export({ format: 'jwk' });
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  return {
    key: await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']),
    kid: SIGNER_KEY.kid,
  };
}

/** What a library adds to the local time: the clock of the server stands still. */
export function skewTo(grantry: Grantry): number {
  return Math.round((grantry.clock.now() - Date.now()) / 1000);
}

/** A grantry with all of them. */
export const WITH_CLIENTS: GrantryOptions = {
  users: { [ALICE.username]: ALICE.password },
  clients: [
    { ...WEB, audiences: [API], redirectUris: ['https://web.example/cb', 'https://web.example/cb?from=grantry'] },
    {
      ...PORTAL,
      authMethod: 'client_secret_post',
      audiences: [API],
      redirectUris: ['https://portal.example/cb'],
      tokens: { ...TOKENS, accessTokenFormat: 'opaque', refreshTokenRotation: 'Never' },
    },
    {
      clientId: SIGNER.clientId,
      authMethod: 'private_key_jwt',
      assertion: assertedBy([{ ...SIGNER_KEY, key: readKey({ ...SIGNER_KEY.jwk, kid: SIGNER_KEY.kid }) }]),
      grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
      audiences: [API],
      redirectUris: [SIGNER.redirectUri],
    },
    { ...NATIVE, audiences: [API], redirectUris: ['http://127.0.0.1/callback'] },
    { ...RESOURCE_SERVER, resourceServerAudiences: [API] },
  ],
};
