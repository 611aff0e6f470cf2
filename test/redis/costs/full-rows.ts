// The same requests by a client that uses everything: it signs assertions, binds its tokens to a key by DPoP, has a resource,
// and signs in people of an identity provider, whose sign-ins end with their sessions.

import { type Caller, FULL, FULL_OPAQUE, NOTES, NOTES_API, SIGN_IN_SCOPES } from './clients.ts';
import type { Row } from './ledger.ts';
import type { ProviderWorld } from './provider-visits.ts';
import { allowing, authorizePath, expecting, newBrowser, returning } from './visits.ts';
import { redemption, refreshing, type Tokens } from './world.ts';

const SIGN_IN = [...SIGN_IN_SCOPES, 'groups'].join(' ');

/** Access to the resource beside a sign-in. */
const wishOf = (caller: Caller) => ({ caller, scope: `${SIGN_IN} notes.read`, resource: NOTES.identifier });
const WISH = wishOf(FULL);

/** The form by which the client asks for a token of its own. */
export const MACHINE = { grant_type: 'client_credentials', resource: NOTES.identifier, scope: 'notes.read' };

const forNotes = async (full: ProviderWorld, caller: Caller) => ({
  ...redemption(await full.code(wishOf(caller))),
  resource: NOTES.identifier,
});

/** The tokens for a code of a person of the provider. */
export const fullTokens = async (full: ProviderWorld, caller: Caller): Promise<Tokens> =>
  await full.world.redeem(caller, await forNotes(full, caller));

const redeem = async (full: ProviderWorld, caller: Caller) =>
  full.world.posting('/token', caller, await forNotes(full, caller));

const refresh = async (full: ProviderWorld, caller: Caller) =>
  full.world.posting('/token', caller, refreshing((await fullTokens(full, caller)).refresh_token));

const introspect = async (full: ProviderWorld, caller: Caller) =>
  full.world.posting('/introspect', NOTES_API, { token: (await fullTokens(full, caller)).access_token });

export const FULL_ROWS: readonly Row<ProviderWorld>[] = [
  {
    name: 'client_credentials, everything',
    prepare: ({ world }) => world.posting('/token', FULL, MACHINE),
  },
  { name: 'redemption, everything', prepare: (full) => redeem(full, FULL) },
  { name: 'redemption, everything and opaque token', prepare: (full) => redeem(full, FULL_OPAQUE) },
  { name: 'refresh, everything', prepare: (full) => refresh(full, FULL) },
  { name: 'refresh, everything and opaque token', prepare: (full) => refresh(full, FULL_OPAQUE) },
  {
    name: 'userinfo, everything',
    async prepare(full) {
      const code = await full.code({ caller: FULL, scope: SIGN_IN });
      const { access_token: token } = await full.world.redeem(FULL, redemption(code));
      return full.world.callingUserinfo(FULL, token);
    },
  },
  { name: 'introspection of a JWT, everything', prepare: (full) => introspect(full, FULL) },
  { name: 'introspection of an opaque token, everything', prepare: (full) => introspect(full, FULL_OPAQUE) },
  {
    name: 'revocation of a JWT, everything',
    prepare: async (full) =>
      full.world.posting('/revoke', FULL, { token: (await fullTokens(full, FULL)).access_token }),
  },
  {
    name: 'revocation of a refresh token, everything',
    prepare: async (full) =>
      full.world.posting('/revoke', FULL, { token: (await fullTokens(full, FULL)).refresh_token }),
  },
  {
    name: '/authorize without a session, everything',
    async prepare({ world }) {
      const browser = newBrowser(world);
      return expecting(302, () => browser.get(authorizePath(WISH)));
    },
  },
  {
    name: 'sign-in by a provider, everything',
    prepare: async (full) => (await full.returning({ ...WISH, username: full.person })).comeBack,
  },
  {
    name: 'consent, everything',
    prepare: async (full) => allowing(await full.atConsent({ ...WISH, username: full.world.newPerson() })),
  },
  {
    name: '/authorize with a session, everything',
    prepare: async (full) => returning(await full.agreed(WISH), authorizePath(WISH)),
  },
];
