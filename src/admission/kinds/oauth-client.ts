// The OAuthClient resource: shape, bounds and defaults. What one may ask for is judged in admit-client.ts; grant types and
// methods are therefore plain bounded strings here, so that an unknown one is refused with a reason and not as a typing error.

import { z } from 'zod';
import {
  API_VERSION,
  className,
  dataKey,
  duration,
  listOf,
  type MakeObject,
  mapOf,
  metadata,
  objectName,
  objectsWith,
  setOf,
  text,
  time,
  type UnknownFields,
  wholeManifest,
} from './manifest.ts';
import { withPreset } from './secret-presets.ts';

const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/;
// Every pattern here stands in crds/ as well, where it must mean the same: no look-around, and the text is judged as it is
// written. Hosts are names or dotted IPv4; a last label of digits, or of a number as C writes it, would be an IPv4 address
// in disguise.
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `(${OCTET}\\.){3}${OCTET}`;
const WEB_ADDRESS = new RegExp(
  `^https?://(([A-Za-z0-9-]+\\.)*([A-Za-z-][A-Za-z0-9-]*|[0-9]+[A-WYZa-wyz-][A-Za-z0-9-]*)|${IPV4})(:${PORT})?([/?#][A-Za-z0-9._~:/?#[\\]@!$&'()*+,;=%-]*)?$`,
);
const ORIGIN = new RegExp(
  `^https?://((([a-z0-9-]+\\.)*([a-z-][a-z0-9-]*|[0-9]+[a-wyz-][a-z0-9-]*)|${IPV4})|\\[::1\\])(:${PORT})?$`,
);
const DEFAULT_PORT = /^(http:\/\/.*:80|https:\/\/.*:443)$/;

// What a person sees is what is there: no control characters, no line breaks, nothing that turns the direction of text or
// has no width. Joiners stay between letters of the scripts that spell with them, U+FE0F behind a pictogram.
const SEEN = '[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]';
const PICTOGRAM = '[\\p{So}\\u203C\\u2049\\u2194\\u25FB-\\u25FE\\u3030]';
const JOINED = ['L', 'M']
  .map((kind) => `[^\\P{${kind}}\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}\\p{Default_Ignorable_Code_Point}]`)
  .join('|');
const VISIBLE = new RegExp(`^(?:${SEEN}|${PICTOGRAM}\\uFE0F|(?:${JOINED})(?:[\\u200C\\u200D](?:${JOINED}))+)+$`, 'u');

const REDIRECT_URIS_MAX = 32;
const SCOPES_MAX = 100;
const AUDIENCES_MAX = 32;

/** What text on the consent page and in the metadata of a client may be. */
const label = (max: number) =>
  text(max, VISIBLE, 'is empty or holds a character that cannot be seen or turns the direction of text');
const webAddress = () => text(512, WEB_ADDRESS, 'is not an http or https address');

// A browser's Origin header is lower-case, without path, without the scheme's own port: nothing else can ever match.
const origin = () =>
  text(255, ORIGIN, 'is not an origin such as https://app.example.com: lower-case scheme and host, no path').refine(
    (value) => !DEFAULT_PORT.test(value),
    { error: 'is not an origin as browsers send it: no default port' },
  );

const uris = () => setOf(text(1024), REDIRECT_URIS_MAX);
const scopes = () => setOf(text(128), SCOPES_MAX).default([]);
const audiences = () => setOf(text(512), AUDIENCES_MAX).default([]);
const secretTemplate = (object: MakeObject) =>
  object({ labels: mapOf(text(63), 32).default({}), annotations: mapOf(text(4096), 32).default({}) });

/** The fields that are each client's own; all others many clients have in common. None may be told by what another says. */
export const OWN_FIELDS = {
  clientId: text(
    128,
    CLIENT_ID,
    'is not a client id: letters, digits and . _ ~ - only, beginning with one of the first two',
  ),
  displayName: label(100),
  clientUri: webAddress(),
  logoUri: webAddress(),
  policyUri: webAddress(),
  tosUri: webAddress(),
  contacts: setOf(label(254), 10),
  redirectUris: uris(),
  postLogoutRedirectUris: uris(),
  allowedCorsOrigins: setOf(origin(), 32),
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

// Public members only: a private key in a manifest would be in everybody's Git history.
function jsonWebKeySet(object: MakeObject) {
  const member = () => text(1024).optional();
  return object({
    keys: listOf(
      object({
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
      }),
      16,
    ),
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
  }).transform((settings) => ({
    accessTokenFormat: settings.accessTokenFormat,
    accessTokenLifetimeSeconds: settings.accessTokenLifetime,
    refreshTokenIdleLifetimeSeconds: settings.refreshTokenIdleLifetime,
    refreshTokenLifetimeSeconds: settings.refreshTokenLifetime,
    refreshTokenRotation: settings.refreshTokenRotation,
    refreshTokenReuseGraceSeconds: settings.refreshTokenReuseGrace,
  }));
}

function oauthClient(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const spec = object({
    className: className(),
    clientId: OWN_FIELDS.clientId.optional(),
    displayName: OWN_FIELDS.displayName.optional(),
    clientUri: OWN_FIELDS.clientUri.optional(),
    logoUri: OWN_FIELDS.logoUri.optional(),
    policyUri: OWN_FIELDS.policyUri.optional(),
    tosUri: OWN_FIELDS.tosUri.optional(),
    contacts: OWN_FIELDS.contacts.default([]),
    suspended: z.boolean().default(false),
    revokeTokensBefore: time().optional(),
    auth: auth(object).prefault({}),
    grantTypes: setOf(text(128), 16).default(['authorization_code']),
    redirectUris: OWN_FIELDS.redirectUris.default([]),
    postLogoutRedirectUris: OWN_FIELDS.postLogoutRedirectUris.default([]),
    allowedCorsOrigins: OWN_FIELDS.allowedCorsOrigins.default([]),
    scopes: scopes(),
    defaultScopes: scopes(),
    audiences: audiences(),
    defaultAudience: text(512).optional(),
    resourceServer: object({ audiences: audiences() }).prefault({}),
    consent: z.enum(['Required', 'Skip']).default('Required'),
    requireState: z.boolean().default(false),
    requirePushedAuthorizationRequests: z.boolean().default(false),
    senderConstraint: z.enum(['None', 'DPoP', 'MutualTLS']).default('None'),
    tokens: tokens(object).prefault({}),
  });
  return wholeManifest(
    object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal('OAuthClient'),
      metadata: metadata(object),
      spec,
      // Whoever may write the object could have written it: never read.
      status: z.unknown().optional(),
    }),
  );
}

/** One schema for each treatment of unknown fields. */
export const OAUTH_CLIENT = { refuse: oauthClient('refuse'), ignore: oauthClient('ignore') } as const;

/**
 * What counts of a well-shaped OAuthClient, with all defaults filled in. Durations are seconds, times epoch milliseconds.
 */
export type OAuthClientManifest = Pick<z.output<(typeof OAUTH_CLIENT)['ignore']>, 'spec'>;
export type OAuthClientSpec = OAuthClientManifest['spec'];

/** What of it many clients have in common. */
export type CommonSpec = Omit<OAuthClientSpec, keyof typeof OWN_FIELDS>;
