// A revocation that was refused because too few replicas of the store had it is asked for again.

import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { startGrantry, type TestClient } from '../../grantry.ts';
import { TokenCalls } from './token-calls.ts';

const OPAQUE: TestClient & { readonly secret: string } = {
  clientId: 'shop.opaque',
  secret: 'the-secret-of-the-opaque-client',
  audiences: ['https://api.example/'],
  tokens: {
    accessTokenFormat: 'opaque',
    accessTokenLifetimeSeconds: 600,
    refreshTokenIdleLifetimeSeconds: 86_400,
    refreshTokenLifetimeSeconds: 864_000,
    refreshTokenRotation: 'Always',
    refreshTokenReuseGraceSeconds: 10,
  },
};

let isAcknowledged = true;

/** Does everything, and says so only while it is acknowledged. */
function careful(stores: Stores): Stores {
  const { accessTokens } = stores;
  return {
    ...stores,
    accessTokens: {
      write: (token) => accessTokens.write(token),
      read: (tokenId) => accessTokens.read(tokenId),
      async revoke(tokenId) {
        await accessTokens.revoke(tokenId);
        if (!isAcknowledged) throw new StoreUnavailableError('accessTokenRevoke');
      },
    },
  };
}

it('of an opaque token is refused as long as it is not acknowledged, although the token is gone', async () => {
  const grantry = await startGrantry({ clients: [OPAQUE], wrapStores: careful });
  const caller = new TokenCalls(grantry, OPAQUE);
  const { body } = await caller.redeem(await grantry.issueCode(OPAQUE.clientId));
  isAcknowledged = false;
  expect((await caller.revoke(body.access_token)).status).toBe(503);
  expect((await caller.revoke(body.access_token)).status).toBe(503);
  isAcknowledged = true;
  expect((await caller.revoke(body.access_token)).status).toBe(200);
  expect(await caller.isActive(body.access_token)).toBe(false);
});
