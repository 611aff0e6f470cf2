// The requests of a plain client: it has a secret, JWTs or opaque tokens, and one audience.

import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import { DEFAULT_AUDIENCE } from '../../grantry.ts';
import { API, type Caller, OPAQUE, PLAIN, PORTAL, SIGN_IN_SCOPES } from './clients.ts';
import type { Row } from './ledger.ts';
import { type CostWorld, redemption, refreshing } from './world.ts';

/** What a person grants who signs in: the sign-in, and an API beside it. */
export function signIn({ grantry }: CostWorld): Partial<Grant> {
  return {
    scope: [...SIGN_IN_SCOPES, 'read'],
    audiences: [DEFAULT_AUDIENCE, grantry.issuer],
    openid: { sid: 'a-session-of-a-person-at-this-browser-here', nonce: 'a-nonce-of-the-client' },
  };
}

const redeem = async (world: CostWorld, caller: Caller, grant: Partial<Grant> = {}) =>
  world.posting('/token', caller, redemption(await world.code(caller, grant)));

const refresh = async (world: CostWorld, caller: Caller, grant: Partial<Grant> = {}) =>
  world.posting('/token', caller, refreshing((await world.tokens(caller, grant)).refresh_token));

const introspect = async (world: CostWorld, caller: Caller) =>
  world.posting('/introspect', API, { token: (await world.tokens(caller)).access_token });

export const PLAIN_ROWS: readonly Row[] = [
  {
    name: 'client_credentials',
    prepare: (world) => world.posting('/token', PLAIN, { grant_type: 'client_credentials' }),
  },
  { name: 'redemption', prepare: (world) => redeem(world, PLAIN) },
  { name: 'redemption, opaque token', prepare: (world) => redeem(world, OPAQUE) },
  { name: 'redemption with openid', prepare: (world) => redeem(world, PORTAL, signIn(world)) },
  { name: 'refresh', prepare: (world) => refresh(world, PLAIN) },
  { name: 'refresh, opaque token', prepare: (world) => refresh(world, OPAQUE) },
  { name: 'refresh with openid', prepare: (world) => refresh(world, PORTAL, signIn(world)) },
  {
    name: 'userinfo',
    prepare: async (world) => world.callingUserinfo(PORTAL, (await world.tokens(PORTAL, signIn(world))).access_token),
  },
  {
    name: 'userinfo again by the same token',
    async prepare(world) {
      const { access_token: token } = await world.tokens(PORTAL, signIn(world));
      await world.callingUserinfo(PORTAL, token)();
      return world.callingUserinfo(PORTAL, token);
    },
  },
  { name: 'introspection of a JWT', prepare: (world) => introspect(world, PLAIN) },
  { name: 'introspection of an opaque token', prepare: (world) => introspect(world, OPAQUE) },
  {
    name: 'revocation of a JWT',
    prepare: async (world) => world.posting('/revoke', PLAIN, { token: (await world.tokens(PLAIN)).access_token }),
  },
  {
    name: 'revocation of a refresh token',
    prepare: async (world) => world.posting('/revoke', PLAIN, { token: (await world.tokens(PLAIN)).refresh_token }),
  },
];
