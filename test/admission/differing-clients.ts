// A client that is permitted and breaks no rule, a policy for it, and clients that differ from it in one field only, for
// which each is refused: one for each rule of the protocol and each permission of a policy. Admission shares
// results between clients that are alike, so these are admitted beside the permitted one.

import { NAMESPACE_VARIABLE } from '../../src/admission/kinds/glob.ts';

type Fields = Readonly<Record<string, unknown>>;

/** `spec` of the permitted client. It has every grant and each field of which a rule speaks. */
export const PERMITTED: Fields = {
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
  redirectUris: ['https://app.example.com/callback'],
  postLogoutRedirectUris: ['https://app.example.com/'],
  allowedCorsOrigins: ['https://app.example.com'],
  scopes: ['team/read'],
  defaultScopes: ['team/read'],
  audiences: ['urn:api'],
};

/** `spec` of a ClientPolicy that permits it, without a selector. The ids of people are permitted, to no avail. */
export const PERMITTING: Fields = {
  allow: {
    clientIds: [`${NAMESPACE_VARIABLE}_*`, 'usr_*'],
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    authMethods: ['client_secret_*', 'none'],
    scopes: ['team/*', 'openid', 'groups'],
    groups: ['team-*'],
    logoutHosts: ['app.example.com'],
    audiences: ['urn:api'],
    redirectHosts: ['app.example.com'],
    redirectSchemes: ['com.example.app'],
    corsOrigins: ['https://app.example.com'],
  },
  limits: { maxAccessTokenLifetime: '1h', maxRefreshTokenLifetime: '2160h', maxIdTokenLifetime: '1h' },
};

/** One rule: the reason of the refusal, and the field by which a client breaks it. */
export type Difference = readonly [rule: string, reason: string, spec: Fields];

const PUBLIC = { auth: { method: 'none' }, grantTypes: ['authorization_code', 'refresh_token'] };

/** Fields of one client alone, which are validated each time. */
const OWN: readonly Difference[] = [
  ['an id of a person', 'ClientIdNotPermitted', { clientId: 'usr_alice' }],
  ['an id of another tenant', 'ClientIdNotPermitted', { clientId: 'other_app' }],
  ['an id with a dot', 'ClientIdNotPermitted', { clientId: 'other.app' }],
  ['no redirect URI', 'MissingRedirectUri', { redirectUris: [] }],
  ['a redirect URI with a fragment', 'InvalidRedirectUri', { redirectUris: ['https://app.example.com/#here'] }],
  ['a redirect URI with a wildcard', 'InvalidRedirectUri', { redirectUris: ['https://*.example.com/'] }],
  ['a redirect URI of plain http', 'InvalidRedirectUri', { redirectUris: ['http://app.example.com/'] }],
  [
    'a post-logout redirect URI with a fragment',
    'InvalidRedirectUri',
    { postLogoutRedirectUris: ['https://app.example.com/#here'] },
  ],
  ['a foreign redirect host', 'PolicyViolation', { redirectUris: ['https://foreign.example/callback'] }],
  [
    'a foreign redirect host behind a permitted one',
    'PolicyViolation',
    { redirectUris: ['https://app.example.com/callback', 'https://foreign.example/callback'] },
  ],
  ['a foreign post-logout host', 'PolicyViolation', { postLogoutRedirectUris: ['https://foreign.example/'] }],
  ['a foreign redirect scheme', 'PolicyViolation', { redirectUris: ['com.foreign.app:/callback'] }],
  ['a loopback redirect', 'PolicyViolation', { redirectUris: ['http://127.0.0.1/callback'] }],
  [
    'a back-channel address without openid',
    'InvalidManifest',
    { backchannelLogoutUri: 'https://app.example.com/logout' },
  ],
  [
    'a back-channel address of plain http',
    'InvalidManifest',
    { scopes: ['openid'], defaultScopes: [], backchannelLogoutUri: 'http://app.example.com/logout' },
  ],
  [
    'a foreign back-channel host',
    'PolicyViolation',
    { scopes: ['openid'], defaultScopes: [], backchannelLogoutUri: 'https://foreign.example/logout' },
  ],
  ['a foreign CORS origin', 'PolicyViolation', { allowedCorsOrigins: ['https://foreign.example'] }],
];

/** Fields that clients have in common, which are validated once for all that are alike. */
const COMMON: readonly Difference[] = [
  ['an unknown method', 'UnsupportedAuthMethod', { auth: { method: 'magic' } }],
  ['credentials of another method', 'InvalidManifest', { auth: { tls: {} } }],
  ['an unknown preset', 'UnsupportedPreset', { auth: { clientSecret: { preset: 'magic' } } }],
  ['an unknown grant type', 'UnsupportedGrantType', { grantTypes: ['authorization_code', 'magic'] }],
  ['refresh tokens of no grant', 'UnsupportedGrantType', { grantTypes: ['refresh_token'] }],
  ['client_credentials without a secret', 'GrantNotAllowedForMethod', { auth: { method: 'none' } }],
  ['a malformed scope', 'InvalidScope', { scopes: ['team/read', 'team/"'] }],
  ['a default scope of its own', 'InvalidScope', { defaultScopes: ['team/write'] }],
  [
    'a default scope that its reference does not list',
    'InvalidScope',
    { resources: [{ name: 'notes', scopes: ['team/notes'] }], audiences: [], defaultScopes: ['team/other'] },
  ],
  ['no default audience beside a reference', 'InvalidAudience', { resources: [{ name: 'notes' }] }],
  ['a malformed audience', 'InvalidAudience', { audiences: ['api'] }],
  ['a default audience of its own', 'InvalidAudience', { defaultAudience: 'urn:other' }],
  ['an API without a secret', 'InvalidAudience', { ...PUBLIC, resourceServer: { audiences: ['urn:api'] } }],
  ['groups without their scope', 'InvalidManifest', { groups: ['team-*'] }],
  ['ID tokens of no algorithm', 'InvalidTokenSettings', { tokens: { idTokenSigningAlgorithm: 'none' } }],
  ['ID tokens for too short', 'InvalidTokenSettings', { tokens: { idTokenLifetime: '59s' } }],
  ['too long a grace', 'InvalidTokenSettings', { tokens: { refreshTokenReuseGrace: '2m' } }],
  [
    'lasting refresh tokens without a secret',
    'InvalidTokenSettings',
    { ...PUBLIC, tokens: { refreshTokenRotation: 'Never' } },
  ],
  ['a sender constraint', 'InvalidTokenSettings', { senderConstraint: 'MutualTLS' }],
  ['too frequent a rotation', 'InvalidManifest', { auth: { clientSecret: { rotation: { interval: '1h' } } } }],
  [
    'an annotation of another operator',
    'PolicyViolation',
    { auth: { clientSecret: { secretTemplate: { annotations: { 'other.example/a': 'b' } } } } },
  ],
  ['a foreign scope', 'PolicyViolation', { scopes: ['team/read', 'foreign/read'] }],
  ['a foreign audience', 'PolicyViolation', { audiences: ['urn:foreign:api'] }],
  ['a foreign API', 'PolicyViolation', { resourceServer: { audiences: ['urn:foreign:api'] } }],
  ['access tokens for too long', 'PolicyViolation', { tokens: { accessTokenLifetime: '2h' } }],
  ['refresh tokens for too long', 'PolicyViolation', { tokens: { refreshTokenLifetime: '2161h' } }],
  [
    'ID tokens for too long',
    'PolicyViolation',
    { scopes: ['team/read', 'openid'], tokens: { idTokenLifetime: '61m' } },
  ],
  ['foreign groups', 'PolicyViolation', { scopes: ['team/read', 'groups'], groups: ['team-*', 'foreign-*'] }],
  ['every group', 'PolicyViolation', { scopes: ['team/read', 'groups'] }],
  ['no consent', 'PolicyViolation', { consent: 'Skip' }],
];

export const DIFFERENCES: readonly Difference[] = [...OWN, ...COMMON];
