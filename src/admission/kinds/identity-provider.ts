// The IdentityProvider resource: shape, bounds and defaults. admission/identity-providers/ judges it: the type is a plain
// bounded string here, so that a type of a newer version has a reason of its own.

import { z } from 'zod';
import {
  API_VERSION,
  duration,
  listOf,
  type MakeObject,
  metadata,
  objectName,
  objectsWith,
  setOf,
  text,
  time,
  type UnknownFields,
  wholeManifest,
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

const DEFAULT_VERIFY_EVERY_SECONDS = 24 * 3600;
const SHORTEST_VERIFY_EVERY_SECONDS = 5 * 60;
const LONGEST_VERIFY_EVERY_SECONDS = 2160 * 3600;

const claim = () => text(256, CLAIM, 'is neither the name of a claim nor a JSON Pointer such as /realm_access/roles');
const groups = () => setOf(text(256, PRINTED, 'is empty or holds a control character'), 100);

const requiredClaim = (object: MakeObject) =>
  object({
    claim: claim(),
    values: setOf(text(256), 64).refine((values) => values.length > 0, { error: 'is empty: no person could sign in' }),
  });

const oidc = (object: MakeObject) =>
  object({
    issuer: text(512, ISSUER, 'is not an https address without query and fragment, or http on loopback').refine(
      (issuer) => !ALIAS.test(issuer),
      { error: 'stands for many tenants: write the issuer of one, with its id' },
    ),
    scopes: setOf(text(128, SCOPE, 'is not one scope token'), 32)
      .refine((scopes) => scopes.includes('openid'), { error: 'lacks openid, without which there is no ID token' })
      .default(['openid', 'profile', 'email']),
    clientAuth: z.enum(['client_secret_basic', 'client_secret_post', 'none']).default('client_secret_basic'),
    subjectClaim: z.enum(['sub', 'oid']).default('sub'),
    claims: object({
      username: claim().default('preferred_username'),
      displayName: claim().default('name'),
      email: claim().default('email'),
      emailVerified: claim().default('email_verified'),
      groups: claim().default('groups'),
    }).prefault({}),
    assumeEmailVerified: z.boolean().default(false),
    requiredClaims: listOf(requiredClaim(object), 16)
      .refine((claims) => new Set(claims.map((required) => required.claim)).size === claims.length, {
        error: 'names the same claim twice',
      })
      .default([]),
    acrValues: setOf(text(256, VISIBLE_ASCII, 'is not visible ASCII without spaces'), 16).default([]),
  });

const gitHub = (object: MakeObject) =>
  object({
    host: text(259, GITHUB_HOST, 'is not the name of a host in lower case').default('github.com'),
    organizations: setOf(text(39, ORGANIZATION, 'is not the login of an organization'), 64).default([]),
    anyone: z.boolean().default(false),
  }).refine(({ organizations, anyone }) => !anyone || organizations.length === 0, {
    error: 'has organizations and anyone: one of them only',
  });

const verifyEvery = () =>
  duration().refine((seconds) => seconds >= SHORTEST_VERIFY_EVERY_SECONDS && seconds <= LONGEST_VERIFY_EVERY_SECONDS, {
    error: 'must be from 5m to 2160h',
  });

function identityProvider(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const spec = object({
    type: text(32, /^[A-Za-z][A-Za-z0-9]*$/, 'is not a type: letters and digits only'),
    displayName: label(60).optional(),
    suspended: z.boolean().default(false),
    revokeTokensBefore: time().optional(),
    clientSecretRef: object({ name: objectName() }),
    verifyEvery: verifyEvery().default(DEFAULT_VERIFY_EVERY_SECONDS),
    allow: object({
      emailDomains: setOf(text(253, DOMAIN, 'is not a domain in lower case, such as example.com'), 64).default([]),
      groups: groups().default([]),
    }).prefault({}),
    groups: object({
      include: groups().default(['**']),
      prefix: text(64, PREFIX, 'holds more than visible ASCII').optional(),
      allowCommas: z.boolean().default(false),
    }).prefault({}),
    oidc: oidc(object).optional(),
    gitHub: gitHub(object).optional(),
  })
    .refine(({ type, oidc }) => type !== 'OIDC' || oidc !== undefined, { error: 'needs oidc for the type OIDC' })
    .refine(({ type, oidc }) => type !== 'GitHub' || oidc === undefined, {
      error: 'has oidc, which is not for the type GitHub',
    })
    .refine(({ allow, groups }) => groups.allowCommas || !allow.groups.some((group) => group.includes(',')), {
      error: 'has a group with a comma in allow.groups, which no person has without groups.allowCommas',
    })
    .refine(({ type, gitHub }) => type !== 'OIDC' || gitHub === undefined, {
      error: 'has gitHub, which is not for the type OIDC',
    });
  const manifest = object({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('IdentityProvider'),
    metadata: metadata(object),
    spec,
    // Never read: every writer of the object could have set it.
    status: z.unknown().optional(),
  });
  return wholeManifest(manifest, (value) => (isOversized(value) ? OVERSIZED : undefined));
}

/** One schema for each treatment of unknown fields. */
export const IDENTITY_PROVIDER = {
  refuse: identityProvider('refuse'),
  ignore: identityProvider('ignore'),
} as const;

/** A well-shaped IdentityProvider, with all defaults. Durations are seconds, times epoch milliseconds. */
export type IdentityProviderManifest = z.output<(typeof IDENTITY_PROVIDER)['ignore']>;
export type IdentityProviderSpec = IdentityProviderManifest['spec'];
