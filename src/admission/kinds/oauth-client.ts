// The OAuthClient resource: shape, bounds and defaults. admit-client.ts judges the values: grant types and methods are
// therefore plain bounded strings here, so that an unknown one is refused with its own reason and not as a type error.

import { z } from 'zod';
import {
  API_VERSION,
  className,
  dataKey,
  duration,
  fieldsOf,
  listOf,
  type MakeObject,
  mapOf,
  metadata,
  namespaceName,
  objectName,
  objectsWith,
  ownName,
  setOf,
  text,
  time,
  type UnknownFields,
  wholeManifest,
} from './manifest.ts';
import { withPreset } from './secret-presets.ts';
import { IPV4, label, PORT, webAddress } from './shown-fields.ts';
import { isOversized, JWKS_BYTES_MAX, jsonBytes, OVERSIZED } from './spec-size.ts';

const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/;
// It is in crds/ as well, as all patterns are: see shown-fields.ts.
const ORIGIN = new RegExp(
  `^https?://((([a-z0-9-]+\\.)*([a-z-][a-z0-9-]*|[0-9]+[a-wyz-][a-z0-9-]*)|${IPV4})|\\[::1\\])(:${PORT})?$`,
);
const PRINTED = /^[^\p{Cc}]+$/u;
const DEFAULT_PORT = /^(http:\/\/.*:80|https:\/\/.*:443)$/;

const REDIRECT_URIS_MAX = 32;
const SCOPES_MAX = 100;
const AUDIENCES_MAX = 32;
const RESOURCES_MAX = 32;
const GROUPS_MAX = 32;
const SIGN_IN_MAX = 32;
// The longest prefix of an IdentityProvider and its longest group.
const MAPPED_GROUP_MAX = 320;

// A browser's Origin header is lower-case, without path and without the default port: no other form can ever match.
const origin = () =>
  text(255, ORIGIN, 'is not an origin such as https://app.example.com: lower-case scheme and host, no path').refine(
    (value) => !DEFAULT_PORT.test(value),
    { error: 'is not an origin as browsers send it: no default port' },
  );

const uris = () => setOf(text(1024), REDIRECT_URIS_MAX);
const scopes = () => setOf(text(128), SCOPES_MAX).default([]);
const audiences = () => setOf(text(512), AUDIENCES_MAX).default([]);
const groups = () =>
  setOf(
    text(128).refine((glob) => glob !== '', { error: 'is empty' }),
    GROUPS_MAX,
  ).refine((globs) => globs.length > 0, { error: 'is empty: a client without the scope groups receives none' });
const signIn = (object: MakeObject) =>
  object({
    identityProviders: setOf(ownName(), SIGN_IN_MAX).default([]),
    groups: setOf(text(MAPPED_GROUP_MAX, PRINTED, 'is empty or holds a control character'), SIGN_IN_MAX).default([]),
  });
const resources = (object: MakeObject) =>
  listOf(
    object({ namespace: namespaceName().optional(), name: ownName(), scopes: setOf(text(128), SCOPES_MAX).optional() }),
    RESOURCES_MAX,
  ).default([]);
const secretTemplate = (object: MakeObject) =>
  object({ labels: mapOf(text(63), 32).default({}), annotations: mapOf(text(4096), 32).default({}) });

/**
 * The fields that differ from client to client; all others are shared by many. No check of one may depend on another.
 */
export const OWN_FIELDS = {
  clientId: text(
    128,
    CLIENT_ID,
    'is not a client id: letters, digits and . _ ~ - only, beginning with one of the first two',
  ),
  displayName: label(100),
  clientUri: webAddress(),
  policyUri: webAddress(),
  tosUri: webAddress(),
  redirectUris: uris(),
  postLogoutRedirectUris: uris(),
  allowedCorsOrigins: setOf(origin(), 32),
  backchannelLogoutUri: text(512),
} as const;

function clientSecret(object: MakeObject) {
  return object({
    source: z.enum(['Generate', 'Existing']).default('Generate'),
    secretName: objectName().optional(),
    keys: object({
      clientId: dataKey().optional(),
      clientSecret: dataKey().optional(),
      issuer: dataKey().optional(),
      previousClientSecret: dataKey().optional(),
    }).prefault({}),
    extraData: mapOf(text(4096), 32).default({}),
    secretTemplate: secretTemplate(object).prefault({}),
    deletionPolicy: z.enum(['Delete', 'Retain']).default('Delete'),
    preset: text(63).default('none'),
    randomKeys: setOf(dataKey(), 8).default([]),
    rotation: object({ interval: duration().optional(), gracePeriod: duration().default(86_400) }).prefault({}),
  }).transform((settings) => withPreset(settings));
}

/** RFC 7518 §6.2.2, §6.3.2 and §6.4.1. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const LEAKED =
  'is a private member, and a key in a manifest is no secret any more: replace the key by a new one, and give its public members only';

// Public members only: a private key in a manifest would be in the Git history of every checkout. So it is refused even
// where unknown fields are ignored.
function jsonWebKey(object: MakeObject) {
  const member = () => text(1024).optional();
  const publicKey = object({
    kty: text(16),
    use: member(),
    key_ops: setOf(text(32), 8).optional(),
    alg: member(),
    kid: member(),
    crv: member(),
    x: member(),
    y: member(),
    n: text(2048).optional(),
    e: member(),
    x5c: setOf(text(8192), 8).optional(),
  });
  return z.preprocess((value, { addIssue }) => {
    const leaked = PRIVATE_MEMBERS.find((name) => Object.hasOwn(fieldsOf(value), name));
    if (leaked === undefined) return value;
    addIssue({ code: 'custom', path: [leaked], message: LEAKED });
    return z.NEVER;
  }, publicKey);
}

function jsonWebKeySet(object: MakeObject) {
  return object({ keys: listOf(jsonWebKey(object), 16) }).refine((jwks) => jsonBytes(jwks) <= JWKS_BYTES_MAX, {
    error: `is larger than ${JWKS_BYTES_MAX / 1024} KiB as JSON`,
  });
}

function auth(object: MakeObject) {
  return object({
    method: text(64).default('client_secret_basic'),
    clientSecret: clientSecret(object).optional(),
    privateKeyJwt: object({
      jwks: jsonWebKeySet(object).optional(),
      jwksUri: text(512).optional(),
      jwksConfigMapRef: object({ name: objectName(), key: dataKey().default('jwks.json') }).optional(),
      signingAlgorithms: setOf(text(16), 8).default([]),
      acceptTokenEndpointAudience: z.boolean().default(false),
    }).optional(),
    tls: object({
      subjectDn: text(512).optional(),
      sanDns: text(253).optional(),
      sanUri: text(512).optional(),
      sanIp: text(45).optional(),
      sanEmail: text(254).optional(),
      jwks: jsonWebKeySet(object).optional(),
    }).optional(),
    serviceAccounts: listOf(object({ name: objectName() }), 16)
      .refine((accounts) => new Set(accounts.map(({ name }) => name)).size === accounts.length, {
        error: 'names the same account twice',
      })
      .default([]),
  });
}

function tokens(object: MakeObject) {
  return object({
    accessTokenFormat: z.enum(['jwt', 'opaque']).default('jwt'),
    accessTokenLifetime: duration().default(600),
    refreshTokenIdleLifetime: duration().default(336 * 3600),
    refreshTokenLifetime: duration().default(2160 * 3600),
    refreshTokenRotation: z.enum(['Always', 'Never']).default('Always'),
    refreshTokenReuseGrace: duration().default(10),
    idTokenSigningAlgorithm: text(16).default('RS256'),
    idTokenLifetime: duration().default(3600),
  }).transform((settings) => ({
    accessTokenFormat: settings.accessTokenFormat,
    accessTokenLifetimeSeconds: settings.accessTokenLifetime,
    refreshTokenIdleLifetimeSeconds: settings.refreshTokenIdleLifetime,
    refreshTokenLifetimeSeconds: settings.refreshTokenLifetime,
    refreshTokenRotation: settings.refreshTokenRotation,
    refreshTokenReuseGraceSeconds: settings.refreshTokenReuseGrace,
    idTokens: { signingAlgorithm: settings.idTokenSigningAlgorithm, lifetimeSeconds: settings.idTokenLifetime },
  }));
}

function oauthClient(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const spec = object({
    className: className(),
    clientId: OWN_FIELDS.clientId.optional(),
    displayName: OWN_FIELDS.displayName.optional(),
    clientUri: OWN_FIELDS.clientUri.optional(),
    policyUri: OWN_FIELDS.policyUri.optional(),
    tosUri: OWN_FIELDS.tosUri.optional(),
    suspended: z.boolean().default(false),
    revokeTokensBefore: time().optional(),
    auth: auth(object).prefault({}),
    grantTypes: setOf(text(128), 16).default(['authorization_code']),
    redirectUris: OWN_FIELDS.redirectUris.default([]),
    postLogoutRedirectUris: OWN_FIELDS.postLogoutRedirectUris.default([]),
    allowedCorsOrigins: OWN_FIELDS.allowedCorsOrigins.default([]),
    backchannelLogoutUri: OWN_FIELDS.backchannelLogoutUri.optional(),
    scopes: scopes(),
    defaultScopes: scopes(),
    groups: groups().optional(),
    audiences: audiences(),
    defaultAudience: text(512).optional(),
    resources: resources(object),
    resourceServer: object({ audiences: audiences() }).prefault({}),
    consent: z.enum(['Required', 'Skip']).default('Required'),
    signIn: signIn(object).optional(),
    requireState: z.boolean().default(false),
    senderConstraint: z.enum(['None', 'DPoP', 'MutualTLS']).default('None'),
    tokens: tokens(object).prefault({}),
  });
  const manifest = object({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('OAuthClient'),
    metadata: metadata(object),
    spec,
    // Never read: every writer of the object could have set it.
    status: z.unknown().optional(),
  });
  return wholeManifest(manifest, (value) => (isOversized(value) ? OVERSIZED : undefined));
}

/** One schema for each treatment of unknown fields. */
export const OAUTH_CLIENT = { refuse: oauthClient('refuse'), ignore: oauthClient('ignore') } as const;

/**
 * The used part of a well-shaped OAuthClient, with all defaults. Durations are seconds, times epoch milliseconds.
 */
export type OAuthClientManifest = Pick<z.output<(typeof OAUTH_CLIENT)['ignore']>, 'spec'>;
export type OAuthClientSpec = OAuthClientManifest['spec'];

/** The part that many clients have in common. */
export type CommonSpec = Omit<OAuthClientSpec, keyof typeof OWN_FIELDS>;
