// The clients of the ledger, and how each presents its credentials.

import { createHash } from 'node:crypto';
import { DpopHolder } from '../../dpop-holder.ts';
import { basic, DEFAULT_AUDIENCE, type Grantry, type TestClient } from '../../grantry.ts';
import { aResource, declared } from '../../oauth/a-resource.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey, type TestKey } from '../../oauth/values/signed-tokens.ts';

/** A client of the ledger. */
export interface Caller {
  readonly clientId: string;
  /** Absent where it signs assertions. */
  readonly secret?: string;
  readonly key?: TestKey;
  /** Its tokens are bound to a key of this holder. */
  readonly holder?: DpopHolder;
}

const OPAQUE_TOKENS = { accessTokenFormat: 'opaque' } as const;

/** What is asked for by a client that signs a person in. */
export const SIGN_IN_SCOPES = ['openid', 'profile', 'email'] as const;

/** Uses nothing beyond OAuth: a secret, JWTs, one audience. */
export const PLAIN: Caller = { clientId: 'shop.web', secret: 'the-secret-of-the-web-application' };
/** The same, with opaque tokens. */
export const OPAQUE: Caller = { clientId: 'shop.opaque', secret: 'the-secret-of-the-opaque-application' };
/** The same with JWTs, and signs people in. */
export const PORTAL: Caller = { clientId: 'shop.portal', secret: 'the-secret-of-the-portal-of-the-shop' };
/** As the plain one, but a refresh token that comes again is refused at once. */
export const GRACELESS: Caller = { clientId: 'shop.strict', secret: 'the-secret-of-the-one-without-any-grace' };
/** The API behind the tokens: it may introspect them. */
export const API: Caller = { clientId: 'shop.api', secret: 'the-secret-of-the-api-behind-the-shop' };

const ID_TOKENS = { signingAlgorithm: 'ES256', lifetimeSeconds: 3600 } as const;

export const PLAIN_CLIENTS: readonly TestClient[] = [
  PLAIN,
  { ...OPAQUE, tokens: OPAQUE_TOKENS },
  { ...PORTAL, scopes: [...SIGN_IN_SCOPES, 'read'], idTokens: ID_TOKENS },
  { ...GRACELESS, tokens: { refreshTokenReuseGraceSeconds: 0 } },
  { ...API, resourceServerAudiences: [DEFAULT_AUDIENCE] },
];

/** A resource that its owner lets clients of its namespace have. */
export const NOTES = aResource({ identifier: 'https://notes.example/api', scopes: declared('notes.read') });

/** Uses everything: signs assertions, binds tokens to a key, has a resource, signs in people of a provider. */
export const FULL: Caller = { clientId: 'shop.full', key: aKey('ES256'), holder: new DpopHolder() };
/** The same, with opaque tokens. */
export const FULL_OPAQUE: Caller = { clientId: 'shop.fullopaque', key: aKey('ES256'), holder: new DpopHolder() };
/** The API of {@link NOTES}, which signs assertions, too. */
export const NOTES_API: Caller = { clientId: 'shop.notes', key: aKey('ES256') };

/** The provider that the people of {@link FULL} come from. */
export const PROVIDER = 'corp';

export const FULL_CLIENTS: readonly TestClient[] = [
  fullClient(FULL, {}),
  fullClient(FULL_OPAQUE, { tokens: OPAQUE_TOKENS }),
  fullClient(NOTES_API, { resourceServerAudiences: [NOTES.identifier], senderConstraint: 'None' }),
];

function fullClient({ clientId, key }: Caller, different: Partial<TestClient>): TestClient {
  const client: TestClient = {
    clientId,
    authMethod: 'private_key_jwt',
    assertion: assertedBy(key === undefined ? [] : [key]),
    senderConstraint: 'DPoP',
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    scopes: [...SIGN_IN_SCOPES, 'groups', 'offline_access'],
    defaultScopes: [],
    audiences: [],
    resources: [{ namespace: undefined, name: NOTES.name, scopes: undefined }],
    signIn: { identityProviders: [PROVIDER], groups: [] },
    backchannelLogoutUri: 'https://app.example/backchannel-logout',
    requireState: true,
    idTokens: ID_TOKENS,
  };
  return { ...client, ...different };
}

/** What a request carries by which its client authenticates and proves its key. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
}

/** New ones for one POST. @param path of the endpoint that they are for */
export async function credentials(caller: Caller, { issuer, clock }: Grantry, path: string): Promise<Credentials> {
  const { clientId, secret, key, holder } = caller;
  const now = clock.now();
  const headers: Record<string, string> = {};
  if (holder !== undefined && path === '/token') headers.dpop = holder.proof(`${issuer}${path}`, now);
  if (key !== undefined) return { headers, parameters: asserted(await assertionOf(key, { clientId, issuer, now })) };
  headers.authorization = basic(clientId, secret ?? '');
  return { headers, parameters: {} };
}

/** The headers that present an access token at userinfo. */
export function presented({ holder }: Caller, token: string, { issuer, clock }: Grantry): Record<string, string> {
  if (holder === undefined) return { authorization: `Bearer ${token}` };
  const ath = createHash('sha256').update(token).digest('base64url');
  const dpop = holder.proof(`${issuer}/userinfo`, clock.now(), { claims: { htm: 'GET', ath } });
  return { authorization: `DPoP ${token}`, dpop };
}
