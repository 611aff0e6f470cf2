// The OAuthClient resource: fields, bounds and defaults. admit-client.ts validates the values: grant types and methods
// are therefore plain bounded strings here, so that an unknown one is refused with its own reason and not as a type error.

import { z } from 'zod';
import { auth } from './client-auth.ts';
import {
  conditions,
  counter,
  type KindDefinition,
  lastHandledRotateAt,
  readyColumns,
  type StatusOf,
  statusOf,
  timeOfStatus,
} from './crd.ts';
import {
  cel,
  className,
  duration,
  listOf,
  type MakeObject,
  manifestOf,
  namespaceName,
  objectsWith,
  ownName,
  setOf,
  text,
  time,
  type UnknownFields,
  within,
} from './manifest.ts';
import { IPV4, label, PORT, webAddress } from './shown-fields.ts';
import { isOversized, OVERSIZED } from './spec-size.ts';

const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/;
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
  text(255, ORIGIN, 'is not an origin such as https://app.example.com: lower-case scheme and host, no path')
    .refine((value) => !DEFAULT_PORT.test(value), { error: 'is not an origin as browsers send it: no default port' })
    .meta(cel("!self.matches('^(http://.*:80|https://.*:443)$')", 'browsers send no default port'));

const uris = () => setOf(text(1024), REDIRECT_URIS_MAX);
const scopes = () => setOf(text(128), SCOPES_MAX).default([]);
const audiences = () => setOf(text(512), AUDIENCES_MAX).default([]);

const groups = () =>
  setOf(
    text(128)
      .refine((glob) => glob !== '', { error: 'is empty' })
      .meta({ minLength: 1 }),
    GROUPS_MAX,
  )
    .refine((globs) => globs.length > 0, { error: 'is empty: a client without the scope groups receives none' })
    .meta({ minItems: 1 })
    .optional();

const signIn = (object: MakeObject) =>
  object({
    identityProviders: setOf(ownName(), SIGN_IN_MAX)
      .default([])
      .describe(
        'Names of IdentityProviders; the person must sign in through one of them; local stands for local users. Empty, every one of them. A name that no IdentityProvider has yet is no fault: no person signs in by it.',
      ),
    groups: setOf(text(MAPPED_GROUP_MAX, PRINTED, 'is empty or holds a control character'), SIGN_IN_MAX)
      .default([])
      .describe(
        'Groups of which the person must have one, letter by letter, as applications see them, with the prefix of the provider. Empty, people with any groups and with none.',
      ),
  });

const resource = (object: MakeObject) =>
  object({
    namespace: namespaceName().optional().describe('Its namespace. Unset, that of the client.'),
    name: ownName().describe('Its name.'),
    scopes: setOf(text(128), SCOPES_MAX)
      .optional()
      .describe('The scopes that the client may ask for there. Unset, all that are granted.'),
  }).describe('One resource.');

const resourceServer = (object: MakeObject) =>
  object({
    audiences: audiences().describe(
      'Whose tokens this client may ask about: absolute URIs, never the issuer. The identifier of a ProtectedResource applies only in its namespace, and needs no policy there.',
    ),
  });

/**
 * The fields that differ from client to client; all others are shared by many. No check of one may depend on another.
 */
export const OWN_FIELDS = {
  clientId: text(
    128,
    CLIENT_ID,
    'is not a client id: letters, digits and . _ ~ - only, beginning with one of the first two',
  )
    .meta(cel("!self.matches('^usr_')", 'ids beginning with usr_ are kept for people'))
    .describe(
      'The id. Unset, it is the namespace and the name with a dot between them, as in shop.web. Any other needs allow.clientIds of a policy; one with a dot must be listed there letter by letter. It cannot be changed.',
    ),
  displayName: label(100).describe('What people are shown. Unset, the client id.'),
  clientUri: webAddress().describe('The website of the client, shown when people are asked.'),
  policyUri: webAddress().describe('The privacy policy, shown when people are asked.'),
  tosUri: webAddress().describe('The terms of service, shown when people are asked.'),
  redirectUris: uris().describe(
    'Where people may be sent back to: https, http on loopback, or a private-use scheme with a dot. Compared as strings; a loopback literal matches on any port. authorization_code needs one.',
  ),
  postLogoutRedirectUris: uris().describe(
    'Where people may be sent after signing out, by exactly this address. The rules of redirectUris apply.',
  ),
  allowedCorsOrigins: setOf(origin(), 32).describe(
    'Origins whose pages may call the JSON endpoints. Each needs allow.corsOrigins of a policy.',
  ),
  backchannelLogoutUri: text(512).describe(
    'Where the client is notified when a person signs out: an https address. Needs the scope openid, and allow.logoutHosts of a policy.',
  ),
} as const;

const tokens = (object: MakeObject) =>
  object({
    accessTokenFormat: z
      .enum(['jwt', 'opaque'])
      .default('jwt')
      .describe('An opaque token is checked by introspection only.'),
    accessTokenLifetime: duration()
      .prefault('10m')
      .meta(within({ least: '1s', most: '24h' }))
      .describe('How long an access token lives, 24h at most. Over 1h needs a policy.'),
    refreshTokenIdleLifetime: duration()
      .prefault('336h')
      .meta(within({ least: '1s', most: '8784h' }))
      .describe('How long a refresh token lives unused, 8784h at most.'),
    refreshTokenLifetime: duration()
      .prefault('2160h')
      .meta(within({ least: '1s', most: '8784h' }))
      .describe(
        'When a person must sign in again, however busy the client is: 8784h at most. Over 2160h needs a policy.',
      ),
    refreshTokenRotation: z
      .enum(['Always', 'Never'])
      .default('Always')
      .describe('Whether each use of a refresh token returns a new one. Never is not for public clients.'),
    refreshTokenReuseGrace: duration()
      .prefault('10s')
      .meta(within({ most: '60s' }))
      .describe('How long the same request gets the same answer again, 60s at most.'),
    idTokenSigningAlgorithm: text(16)
      .default('RS256')
      .describe(
        'What ID tokens are signed with: RS256, PS256, ES256, ES384 or EdDSA. Other than RS256 needs a SigningKey of that algorithm.',
      ),
    idTokenLifetime: duration()
      .prefault('1h')
      .meta(within({ least: '1m', most: '24h' }))
      .describe('How long an ID token lives, 24h at most. Over 1h needs a policy.'),
  })
    .transform((settings) => ({
      accessTokenFormat: settings.accessTokenFormat,
      accessTokenLifetimeSeconds: settings.accessTokenLifetime,
      refreshTokenIdleLifetimeSeconds: settings.refreshTokenIdleLifetime,
      refreshTokenLifetimeSeconds: settings.refreshTokenLifetime,
      refreshTokenRotation: settings.refreshTokenRotation,
      refreshTokenReuseGraceSeconds: settings.refreshTokenReuseGrace,
      idTokens: { signingAlgorithm: settings.idTokenSigningAlgorithm, lifetimeSeconds: settings.idTokenLifetime },
    }))
    .prefault({})
    .describe('What tokens are like and how long they live. Durations are written like 90s, 15m or 1h30m.');

const spec = (object: MakeObject) =>
  object({
    className: className(),
    clientId: OWN_FIELDS.clientId.optional(),
    displayName: OWN_FIELDS.displayName.optional(),
    clientUri: OWN_FIELDS.clientUri.optional(),
    policyUri: OWN_FIELDS.policyUri.optional(),
    tosUri: OWN_FIELDS.tosUri.optional(),
    suspended: z
      .boolean()
      .default(false)
      .describe('Nothing works for a suspended client. It keeps its id and its secret.'),
    revokeTokensBefore: time()
      .optional()
      .describe(
        'Grants and tokens issued before this time are revoked. RFC 3339, such as 2026-01-31T12:00:00Z. Until a time in the future the client gets no tokens.',
      ),
    auth: auth(object),
    grantTypes: setOf(text(128), 16)
      .default(['authorization_code'])
      .describe(
        'authorization_code, client_credentials, refresh_token; the last only beside the first. Empty for a client that only asks about tokens. Every other grant is not yet available and not accepted.',
      ),
    redirectUris: OWN_FIELDS.redirectUris.default([]),
    postLogoutRedirectUris: OWN_FIELDS.postLogoutRedirectUris.default([]),
    allowedCorsOrigins: OWN_FIELDS.allowedCorsOrigins.default([]),
    backchannelLogoutUri: OWN_FIELDS.backchannelLogoutUri.optional(),
    scopes: scopes().describe('What the client may ask for at each of its audiences. Resources give theirs besides.'),
    defaultScopes: scopes().describe(
      'What a request gets that names no scope, as far as the audience has it; each is among scopes, or one that a reference in resources lists or, without a list, may give. Empty, such a request is invalid_scope.',
    ),
    groups: groups().describe(
      'Which groups of a person are disclosed to the client, by globs in which * is any text. Unset, every group. Needs the scope groups; each glob must match one of allow.groups of a policy as text.',
    ),
    audiences: audiences().describe(
      'The audiences that tokens may have by leave of a policy: absolute URIs. Empty and without resources, urn:grantry:ns:<namespace>:default alone, which needs no policy. Never the issuer, which is the audience of its own endpoints only. At one that a ProtectedResource has, only the scopes that it declares.',
    ),
    defaultAudience: text(512)
      .optional()
      .describe(
        'The audience of a token when the request names none: one of audiences or the identifier of a resource. Required with more than one of both. With the scope openid it may be the issuer, for requests with that scope.',
      ),
    resources: listOf(resource(object), RESOURCES_MAX)
      .default([])
      .describe(
        'The ProtectedResources that this client asks tokens for, besides its audiences. One is granted in its own namespace, or by its allowedClients, and then needs no policy; one that is not granted harms nothing else: see ResourcesGranted.',
      ),
    resourceServer: resourceServer(object)
      .prefault({})
      .describe('What this client is as an API. Not for the method none.'),
    consent: z
      .enum(['Required', 'Skip'])
      .default('Required')
      .describe('Whether people are asked. Skip needs allow.consentSkip of a policy.'),
    signIn: signIn(object)
      .optional()
      .describe(
        'Which people may use the client. Where both lists have members, both must hold. A change applies to sign-ins at once, and to issued tokens at their next refresh.',
      ),
    requireState: z.boolean().default(false).describe('Whether an authorization request without state is refused.'),
    senderConstraint: z
      .enum(['None', 'DPoP', 'MutualTLS'])
      .default('None')
      .describe(
        'What binds tokens to the sender that received them. DPoP: every token request holds a proof of a key (RFC 9449). MutualTLS: every token request comes with a client certificate (RFC 8705); the administrator turns mutual TLS on. With None a proof binds all the same.',
      ),
    tokens: tokens(object),
  })
    .meta({
      ...cel(
        'has(self.clientId) == has(oldSelf.clientId) && (!has(self.clientId) || self.clientId == oldSelf.clientId)',
        'clientId cannot be changed',
      ),
      ...cel(
        'has(self.defaultAudience) || (has(self.audiences) ? size(self.audiences) : 0) + (has(self.resources) ? size(self.resources) : 0) < 2',
        'defaultAudience is required with more than one audience or resource',
      ),
      ...cel(
        '!has(self.defaultAudience) || (has(self.audiences) && self.defaultAudience in self.audiences) || (has(self.resources) && size(self.resources) > 0) || (has(self.scopes) && "openid" in self.scopes)',
        'defaultAudience is not one of audiences',
      ),
    })
    .describe('What the client is and what it may ask for. At most 64 KiB as JSON.');

function oauthClient(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  return manifestOf(object, 'OAuthClient', spec(object), (value) => (isOversized(value) ? OVERSIZED : undefined));
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

const secretStatus = () =>
  z
    .object({
      name: text(253).optional().describe('The name of the Secret.'),
      revision: counter().optional().describe('How often the secret has been made, beginning with 1.'),
      fingerprint: text(64).optional().describe('Distinguishes two secrets without disclosing either.'),
      lastRotationTime: timeOfStatus().optional().describe('When the present secret was made.'),
      nextRotationTime: timeOfStatus().optional().describe('When it is replaced.'),
      previousExpiresAt: timeOfStatus().optional().describe('Until when the one before it works as well.'),
    })
    .describe('The Secret with the id and the secret of the client.');

/** What crds/oauthclients.yaml is made of. */
export const OAUTH_CLIENT_CRD = {
  names: { kind: 'OAuthClient', plural: 'oauthclients', shortName: 'oac' },
  scope: 'Namespaced',
  description:
    'A client of the authorization server: an application that gets tokens, a resource server that asks about them, or both. A namespace is a tenant; what its clients may ask for is said by ClientPolicies.',
  columns: [
    { name: 'Client-ID', jsonPath: '.status.clientId', description: 'The id that the client has or would have.' },
    { name: 'Auth', jsonPath: '.spec.auth.method', description: 'How the client proves who it is.' },
    ...readyColumns('Whether the client is served.', 'Why it is not.'),
    {
      name: 'Secret',
      priority: 1,
      jsonPath: '.status.secret.name',
      description: 'The Secret with the id and the secret.',
    },
    {
      name: 'Next-Rotation',
      priority: 1,
      jsonPath: '.status.secret.nextRotationTime',
      description: 'When the secret is replaced.',
    },
    { name: 'Grants', priority: 1, jsonPath: '.status.grants', description: 'The grants that the client may use.' },
    {
      name: 'Policy',
      priority: 1,
      jsonPath: '.status.policy',
      description: 'The policy that the client was validated by.',
    },
    {
      name: 'Last-Used',
      type: 'date',
      priority: 1,
      jsonPath: '.status.lastUsedTime',
      description: 'When it last got a token, to the day.',
    },
  ],
  manifest: OAUTH_CLIENT.refuse,
  status: () =>
    statusOf('client', {
      clientId: text(128).describe('The id that the client has or would have.'),
      policy: text(253).optional().describe('The policy that the client was validated by.'),
      grants: text(2200).optional().describe('The grant types of the spec, with commas between them.'),
      conditions: conditions(
        'Accepted, ResolvedRefs, CredentialsReady, Programmed and, computed from them, Ready; Reconciling or Stalled while it is not ready; Denied (never of a public client, whose id any caller can send) and Alert when the servers had to refuse something; RevokedUntil while revokeTokensBefore is in the future; ResourcesGranted where the client refers to resources, False with ResourceNotGranted, which is not part of Ready.',
      ),
      lastHandledRotateAt: lastHandledRotateAt().optional(),
      lastUsedTime: timeOfStatus().optional().describe('When the client last got a token, to the day.'),
      secret: secretStatus().optional(),
      binding: z
        .object({ name: text(253).optional().describe('The name of the Secret.') })
        .optional()
        .describe('The Secret as a provisioned service of servicebinding.io.'),
    }),
  pending: ['Accepted', 'ResolvedRefs', 'CredentialsReady', 'Programmed', 'Ready'],
} as const satisfies KindDefinition;

/** What the controller reports of a client. */
export type OAuthClientStatus = StatusOf<typeof OAUTH_CLIENT_CRD>;
