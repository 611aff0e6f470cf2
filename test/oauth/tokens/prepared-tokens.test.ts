// A prepared token knows when it will end for each audience; what is issued ends then.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import { clientCredentials } from '../../../src/oauth/grants/client-credentials.ts';
import { UNLIMITED_STATE } from '../../../src/oauth/limits/state-limits.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { aClient } from '../a-client.ts';

const [API, FILES, OTHER] = ['https://api.example', 'https://files.example', 'https://other.example'] as const;
const ISSUED_AT = 1_800_000_000;
const clock = { now: () => 1000 * ISSUED_AT + 500 };
const random = { bytes: randomBytes };
const issuer = 'https://id.example';
const handles = new Handles({ issuer, peppers: [Buffer.alloc(32, 1)], random });
const tokens = new AccessTokens({ issuer, clock, random, handles, endOfTick: setImmediate });
const owners = {
  takesPasswords: false,
  lookUp: async () => undefined,
  authenticate: async () => undefined,
  find: async (subject: string) => ({ subject, username: 'ada', displayName: undefined, email: undefined, groups: [] }),
  revokedBefore: () => 0,
};
const client = aClient({ audiences: [API, FILES, OTHER], defaultAudience: API });
const opaque = { ...client, tokens: { ...client.tokens, accessTokenFormat: 'opaque' as const } };
const LIFETIME = client.tokens.accessTokenLifetimeSeconds;
const CAPS: Readonly<Record<string, number>> = { [FILES]: 60, [OTHER]: LIFETIME + 60 };
const maxLifetimeAt = (audience: string) => CAPS[audience];

const ENDS = [
  [API, ISSUED_AT + LIFETIME],
  [FILES, ISSUED_AT + 60],
  [OTHER, ISSUED_AT + LIFETIME],
] as const;

describe('a prepared access token', () => {
  it.each(ENDS)('as a JWT for %s → exp is %d', async (audience, expiresAt) => {
    const key = await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
    const ring = new KeyRing([key]);
    const prepared = tokens.prepare(client, ring, { maxLifetimeAt });
    expect(prepared.expiresAt(audience)).toBe(expiresAt);
    const authorization = { subject: 's', scope: ['read'], audience, grantId: undefined, authTime: undefined };
    const token = await prepared.issue({ ...authorization, refreshToken: undefined });
    expect(await tokens.verify(token, ring)).toMatchObject({ aud: audience, iat: ISSUED_AT, exp: expiresAt });
  });

  it.each(ENDS)('as an opaque one of client_credentials for %s → it ends at %d', async (resource, expiresAt) => {
    const stores = memoryStores({ clock });
    const accessToken = tokens.prepare(opaque, new KeyRing([]), { maxLifetimeAt });
    const parameters = new Parameters(new Map([['resource', [resource]]]));
    const context = { random, stores, handles, owners, audit: { record: () => {} }, limits: UNLIMITED_STATE };
    const access = clientAccess(opaque, { resources: Resources.NONE });
    const request = { client: opaque, access, parameters, address: '192.0.2.1', accessToken };
    const authorization = await clientCredentials.exchange(request, context);
    const tokenId = handles.accessTokenId(await accessToken.issue(authorization)) ?? '';
    expect(accessToken.expiresAt(authorization.audience)).toBe(expiresAt);
    expect(await stores.accessTokens.read(tokenId)).toMatchObject({ audience: resource, expiresAtSeconds: expiresAt });
  });

  it('without caps → it ends with the life that its client says, wherever it is for', () => {
    const prepared = tokens.prepare(opaque, new KeyRing([]));
    expect([API, FILES].map((audience) => prepared.expiresAt(audience))).toEqual([
      ISSUED_AT + LIFETIME,
      ISSUED_AT + LIFETIME,
    ]);
  });
});
