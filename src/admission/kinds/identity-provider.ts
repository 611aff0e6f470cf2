// The IdentityProvider resource: fields, bounds and defaults. admission/identity-providers/ validates it: the type is a
// plain bounded string here, so that a type of a newer version has a reason of its own.

import { z } from 'zod';
import { conditions, type KindDefinition, readyColumns, type StatusOf, statusOf } from './crd.ts';
import {
  cel,
  duration,
  type MakeObject,
  manifestOf,
  mapListOf,
  objectName,
  objectsWith,
  setOf,
  text,
  time,
  type UnknownFields,
  within,
} from './manifest.ts';
import { IPV4, label, PORT } from './shown-fields.ts';
import { isOversized, OVERSIZED } from './spec-size.ts';

const HOST = `(([A-Za-z0-9-]+\\.)*([A-Za-z-][A-Za-z0-9-]*|[0-9]+[A-WYZa-wyz-][A-Za-z0-9-]*)|${IPV4})`;
const PATH = "(/[A-Za-z0-9._~:/@!$&'()*+,;=%-]*)?";
const ISSUER = new RegExp(
  `^(https://${HOST}(:${PORT})?${PATH}|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:${PORT})?${PATH})$`,
);
// Aliases of many tenants: the issuer of a token is the tenant's, and any account can make a tenant.
const ALIAS = /^https:\/\/login\.microsoftonline\.(com|us)\/(common|organizations|consumers)(\/|$)/;
const GITHUB_HOST = new RegExp(`^(([a-z0-9-]+\\.)*([a-z-][a-z0-9-]*|[0-9]+[a-wyz-][a-z0-9-]*)|${IPV4})(:${PORT})?$`);
const DOMAIN = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const ORGANIZATION = /^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/;
// RFC 6749 §3.3; RFC 6901 for a claim that begins with a slash, else the name of a member at the top.
const SCOPE = /^[!#-[\]-~]+$/;
const CLAIM = /^([^/\p{Cc}][^\p{Cc}]*|(\/([^/~\p{Cc}]|~[01])+)+)$/u;
const VISIBLE_ASCII = /^[!-~]+$/;
const PREFIX = /^[!-~]*$/;
const PRINTED = /^[^\p{Cc}]+$/u;

const SHORTEST_VERIFY_EVERY_SECONDS = 5 * 60;
const LONGEST_VERIFY_EVERY_SECONDS = 2160 * 3600;

const claim = () => text(256, CLAIM, 'is neither the name of a claim nor a JSON Pointer such as /realm_access/roles');
const groupNames = () => setOf(text(256, PRINTED, 'is empty or holds a control character'), 100);

const claims = (object: MakeObject) =>
  object({
    username: claim().default('preferred_username').describe('The name that a person is shown by.'),
    displayName: claim().default('name').describe('The full name.'),
    email: claim().default('email').describe('The email address. It never identifies a person.'),
    emailVerified: claim().default('email_verified').describe('Whether the address is verified.'),
    groups: claim().default('groups').describe('The groups, a list of strings or one string.'),
  });

const requiredClaim = (object: MakeObject) =>
  object({
    claim: claim().describe('The claim, as in claims.'),
    values: setOf(text(256), 64)
      .refine((values) => values.length > 0, { error: 'is empty: no person could sign in' })
      .meta({ minItems: 1 })
      .describe('The values, at least one.'),
  }).describe('One claim and the values of which it must equal one.');

const oidc = (object: MakeObject) =>
  object({
    issuer: text(512, ISSUER, 'is not an https address without query and fragment, or http on loopback')
      .refine((issuer) => !ALIAS.test(issuer), {
        error: 'stands for many tenants: write the issuer of one, with its id',
      })
      .meta(
        cel(
          '!self.matches("^https://login[.]microsoftonline[.](com|us)/(common|organizations|consumers)(/|$)")',
          'stands for many tenants: write the issuer of one, with its id',
        ),
      )
      .describe(
        'The issuer exactly as its ID tokens and its discovery document have it. https, or http on loopback. For Entra that of one tenant.',
      ),
    scopes: setOf(text(128, SCOPE, 'is not one scope token'), 32)
      .refine((scopes) => scopes.includes('openid'), { error: 'lacks openid, without which there is no ID token' })
      .meta(cel("'openid' in self", 'lacks openid, without which there is no ID token'))
      .default(['openid', 'profile', 'email'])
      .describe('What is asked for, with openid.'),
    clientAuth: z
      .enum(['client_secret_basic', 'client_secret_post', 'none'])
      .default('client_secret_basic')
      .describe(
        'How this install authenticates at the token endpoint of the provider. With none the Secret needs no client-secret.',
      ),
    subjectClaim: z
      .enum(['sub', 'oid'])
      .default('sub')
      .describe('What identifies a person. oid for Entra, where sub differs by client.'),
    claims: claims(object)
      .prefault({})
      .meta({ noDefault: true })
      .describe(
        'Where each value is, in the ID token or at the userinfo endpoint - a name at the top, or a JSON Pointer (RFC 6901) such as /realm_access/roles.',
      ),
    assumeEmailVerified: z
      .boolean()
      .default(false)
      .describe(
        'Treats every address as verified, for a provider that verifies all addresses and sends no claim about it.',
      ),
    requiredClaims: mapListOf('claim', requiredClaim(object), 16)
      .default([])
      .describe('What must hold for a person to sign in - hd at Google, tid at Entra, acr where acrValues are sent.'),
    acrValues: setOf(text(256, VISIBLE_ASCII, 'is not visible ASCII without spaces'), 16)
      .default([])
      .describe('The authentication that is asked for (acr_values). The provider may ignore it - see requiredClaims.'),
  }).describe('For the type OIDC, and required for it.');

const gitHub = (object: MakeObject) =>
  object({
    host: text(259, GITHUB_HOST, 'is not the name of a host in lower case')
      .default('github.com')
      .describe(
        'github.com, or the host of a GitHub Enterprise Server, in lower case and with its port unless that is 443.',
      ),
    organizations: setOf(text(39, ORGANIZATION, 'is not the login of an organization'), 64)
      .default([])
      .describe(
        'The logins of organizations, of which one must have the person as a member. Groups are taken over of these alone, <org> and <org>:<team>. Empty only with anyone.',
      ),
    anyone: z
      .boolean()
      .default(false)
      .describe('Lets every account of the host sign in. Then no groups are taken over.'),
  })
    .refine(({ organizations, anyone }) => !anyone || organizations.length === 0, {
      error: 'has organizations and anyone: one of them only',
    })
    .meta(
      cel(
        '!has(self.anyone) || !self.anyone || !has(self.organizations) || size(self.organizations) == 0',
        'has organizations and anyone: one of them only',
      ),
    )
    .describe('For the type GitHub.');

const clientSecretRef = (object: MakeObject) =>
  object({
    name: objectName().describe(
      "The name of a Secret of type grantry.dev/identity-provider with the keys client-id, client-secret and, for a provider behind an authority of one's own, ca.crt (certificates in PEM that are trusted beside the usual ones). One line break at the end of a value is not part of it. A Secret of another type is never read.",
    ),
  }).describe('The Secret with what the provider knows this install by, in the same namespace.');

const verifyEvery = () =>
  duration()
    .refine((seconds) => seconds >= SHORTEST_VERIFY_EVERY_SECONDS && seconds <= LONGEST_VERIFY_EVERY_SECONDS, {
      error: 'must be from 5m to 2160h',
    })
    .meta(within({ least: '5m', most: '2160h' }))
    .prefault('24h')
    .describe(
      'How long after a sign-in the person must sign in at the provider again, 5m to 2160h. No session and no new token lasts longer; no logout is sent for it.',
    );

const allow = (object: MakeObject) =>
  object({
    emailDomains: setOf(text(253, DOMAIN, 'is not a domain in lower case, such as example.com'), 64)
      .default([])
      .describe(
        'Domains, compared whole, of which a person needs a verified address. An address there that another provider asserts is unverified.',
      ),
    groups: groupNames()
      .default([])
      .describe('Groups of which a person needs one, as they are taken over, with the prefix. Compared whole.'),
  });

const groups = (object: MakeObject) =>
  object({
    include: groupNames()
      .default(['**'])
      .describe(
        'Globs over groups as the provider names them; * is any text. A person with more than 500 of these groups is refused.',
      ),
    prefix: text(64, PREFIX, 'holds more than visible ASCII')
      .optional()
      .describe(
        'What is put before each group, so that no provider names a group of another one. Unset, the name of the object and a colon. An empty prefix lets the provider name any group.',
      ),
    allowCommas: z
      .boolean()
      .default(false)
      .describe(
        'Whether groups with a comma in their names are taken over, such as distinguished names. Programs that join groups by commas read several groups in such a one, so that a person of this provider may seem to be in any group.',
      ),
  });

const spec = (object: MakeObject) =>
  object({
    type: text(32, /^[A-Za-z][A-Za-z0-9]*$/, 'is not a type: letters and digits only')
      .meta(cel('self == oldSelf', 'type cannot be changed'))
      .describe('How people sign in by it: OIDC or GitHub. It cannot be changed.'),
    displayName: label(60)
      .optional()
      .describe('What the button of the login page says. Unset, the name of the object.'),
    suspended: z
      .boolean()
      .default(false)
      .describe(
        'Disables sign-in through this provider; the sessions and tokens of its users are rejected while it is true.',
      ),
    revokeTokensBefore: time()
      .optional()
      .describe(
        'Sessions, grants and tokens from sign-ins through this provider before this time are revoked. RFC 3339, such as 2026-01-31T12:00:00Z.',
      ),
    clientSecretRef: clientSecretRef(object),
    verifyEvery: verifyEvery(),
    allow: allow(object)
      .prefault({})
      .describe(
        'Which people of the provider may sign in. Empty lists permit any; what is given in both must hold in both.',
      ),
    groups: groups(object)
      .prefault({})
      .meta({ noDefault: true })
      .describe('Which groups are taken over, and by which names.'),
    oidc: oidc(object).optional(),
    gitHub: gitHub(object).optional(),
  })
    .refine(({ type, oidc }) => type !== 'OIDC' || oidc !== undefined, { error: 'needs oidc for the type OIDC' })
    .meta(cel("self.type != 'OIDC' || has(self.oidc)", 'needs oidc for the type OIDC'))
    .refine(({ type, oidc }) => type !== 'GitHub' || oidc === undefined, {
      error: 'has oidc, which is not for the type GitHub',
    })
    .meta(cel("self.type != 'GitHub' || !has(self.oidc)", 'has oidc, which is not for the type GitHub'))
    .refine(({ allow, groups }) => groups.allowCommas || !allow.groups.some((group) => group.includes(',')), {
      error: 'has a group with a comma in allow.groups, which no person has without groups.allowCommas',
    })
    .meta(
      cel(
        "(has(self.groups) && self.groups.allowCommas) || !has(self.allow) || !has(self.allow.groups) || self.allow.groups.all(group, !group.contains(','))",
        'has a group with a comma in allow.groups, which no person has without groups.allowCommas',
      ),
    )
    .refine(({ type, gitHub }) => type !== 'OIDC' || gitHub === undefined, {
      error: 'has gitHub, which is not for the type OIDC',
    })
    .meta(cel("self.type != 'OIDC' || !has(self.gitHub)", 'has gitHub, which is not for the type OIDC'))
    .describe('The provider, which of its people may sign in, and what is taken over of them.');

function identityProvider(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  return manifestOf(object, 'IdentityProvider', spec(object), (value) => (isOversized(value) ? OVERSIZED : undefined));
}

/** One schema for each treatment of unknown fields. */
export const IDENTITY_PROVIDER = {
  refuse: identityProvider('refuse'),
  ignore: identityProvider('ignore'),
} as const;

/** A well-shaped IdentityProvider, with all defaults. Durations are seconds, times epoch milliseconds. */
export type IdentityProviderManifest = z.output<(typeof IDENTITY_PROVIDER)['ignore']>;
export type IdentityProviderSpec = IdentityProviderManifest['spec'];

/** What crds/identityproviders.yaml is made of. */
export const IDENTITY_PROVIDER_CRD = {
  names: { kind: 'IdentityProvider', plural: 'identityproviders', shortName: 'idp' },
  scope: 'Namespaced',
  description:
    'An OpenID provider, or GitHub, whose people may sign in. It is accepted only in the namespace that grantry runs in; of more than 16 the oldest are accepted, and of one issuer or host the oldest.',
  columns: [
    { name: 'Type', jsonPath: '.spec.type', description: 'How people sign in by it.' },
    ...readyColumns('Whether people can sign in by it.', 'Why they cannot.'),
    {
      name: 'Callback-URL',
      priority: 1,
      jsonPath: '.status.callbackUrl',
      description: 'The address to register at the provider.',
    },
  ],
  manifest: IDENTITY_PROVIDER.refuse,
  status: () =>
    statusOf('provider', {
      callbackUrl: text(2048).describe('The address to register at the provider (redirect_uri).'),
      conditions: conditions(
        'Accepted, ResolvedRefs, Reachable (what the servers found at the issuer; Unknown with NotObserved while none has tried), Programmed and, computed from them, Ready; Reconciling or Stalled while it is not ready. A fault of the manifest or the Secret stops sign-ins and no session; suspended and deletion stop both.',
      ),
    }),
  pending: ['Accepted', 'ResolvedRefs', 'Reachable', 'Programmed', 'Ready'],
} as const satisfies KindDefinition;

/** What the controller reports of a provider. */
export type IdentityProviderStatus = StatusOf<typeof IDENTITY_PROVIDER_CRD>;
