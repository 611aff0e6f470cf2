// The clients whose libraries are tried, and the API their tokens are for: one of each way to authenticate and each token
// format. The person is alice.

import type { GrantryOptions } from '../grantry.ts';
import type { Answers } from './person.ts';

export const API = 'https://api.example/';
/** Ids and secrets that need encoding wherever a library puts them. */
export const WEB = { clientId: 'shop.web', secret: 'web: s3cr-t+%/with~signs ö' } as const;
export const PORTAL = { clientId: 'shop.portal', secret: 'p0rtal-s3cret-that-is-long' } as const;
export const NATIVE = { clientId: 'shop.native' } as const;
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
    { ...NATIVE, audiences: [API], redirectUris: ['http://127.0.0.1/callback'] },
    { ...RESOURCE_SERVER, resourceServerAudiences: [API] },
  ],
};
