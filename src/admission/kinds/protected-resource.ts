// The ProtectedResource resource: fields, bounds and defaults. admission/resources/ validates the values: identifier, scopes
// and languages are therefore plain bounded strings here, so that each fault has a reason of its own.

import { z } from 'zod';
import { namespaceSelector } from './client-policy.ts';
import { conditions, type KindDefinition, readyColumns, type StatusOf, statusOf } from './crd.ts';
import {
  cel,
  className,
  duration,
  listOf,
  type MakeObject,
  manifestOf,
  mapListOf,
  mapOf,
  objectsWith,
  ownName,
  setOf,
  text,
  type UnknownFields,
  within,
} from './manifest.ts';
import { label, webAddress } from './shown-fields.ts';
import { isOversized, OVERSIZED } from './spec-size.ts';

const SCOPES_MAX = 100;
const NAMESPACE_OR_ALL = /^(\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)$/;

const translations = (max: number) => mapOf(label(max), 16).default({});

const scope = (object: MakeObject) =>
  object({
    name: text(128).describe('The scope token.'),
    description: label(200).optional().describe('What people are shown.'),
    descriptions: translations(200).describe('The same in other languages, by tags such as de or pt-BR.'),
  }).describe('One scope.');

const allowedClients = (object: MakeObject) =>
  object({
    namespaces: setOf(text(63, NAMESPACE_OR_ALL, 'is neither a namespace nor *'), 64)
      .optional()
      .describe('The namespaces of the clients; * is every namespace.'),
    namespaceSelector: namespaceSelector(object).optional(),
    clients: setOf(ownName(), 64)
      .optional()
      .describe('The names of the OAuthClients. Unset, all of these namespaces; [] lets in none.'),
    scopes: setOf(text(128), SCOPES_MAX)
      .optional()
      .describe('The scopes that are granted, each one of spec.scopes. Unset, all; [] grants none.'),
  })
    .refine(({ namespaces, namespaceSelector }) => (namespaces === undefined) !== (namespaceSelector === undefined), {
      error: 'needs exactly one of namespaces and namespaceSelector',
    })
    .meta(
      cel(
        'has(self.namespaces) != has(self.namespaceSelector)',
        'needs exactly one of namespaces and namespaceSelector',
      ),
    )
    .describe('Some clients and what is granted to them.');

const tokens = (object: MakeObject) =>
  object({
    maxLifetime: duration()
      .meta(within({ least: '1m' }))
      .optional()
      .describe('How long a token for this resource lives at most, 1m at least. Unset, as long as the client says.'),
    senderConstraint: z
      .enum(['None', 'DPoP', 'MutualTLS', 'Any'])
      .default('None')
      .describe('What a token must be bound to: a DPoP key, a client certificate, either of both (Any), or nothing.'),
  });

const spec = (object: MakeObject) =>
  object({
    className: className(),
    resource: text(512)
      .optional()
      .describe(
        'The identifier, which is the audience of the tokens: an https address (http on loopback) as browsers write it, without user name, query, fragment and escapes, or a URN. Unset, urn:grantry:ns:<namespace>:<name>. One of two resources with the same identifier has it: the one where a policy lists it letter by letter, else the older one; a slash at the end makes no difference. It cannot be changed.',
      ),
    displayName: label(100).optional().describe('What people are shown beside the identifier.'),
    displayNames: translations(100).describe('The name in other languages, by tags such as de or pt-BR.'),
    documentationUri: webAddress().optional().describe('The documentation for developers.'),
    policyUri: webAddress().optional().describe('How the API uses data.'),
    tosUri: webAddress().optional().describe('The terms of service.'),
    discovery: z
      .enum(['Public', 'None'])
      .default('Public')
      .describe('Whether the metadata of the resource (RFC 9728) is public, at status.metadataUrl.'),
    scopes: mapListOf('name', scope(object), SCOPES_MAX)
      .default([])
      .describe(
        'The scopes that the API knows. Which names a namespace may declare, allow.scopes of a policy says; those of OpenID Connect belong to the issuer.',
      ),
    allowedClients: listOf(allowedClients(object), 64)
      .default([])
      .describe(
        'Which clients of other namespaces may refer to the resource; those of its own namespace always may. A client has the scopes of every entry that names it.',
      ),
    tokens: tokens(object).prefault({}).meta({ noDefault: true }).describe('What the API demands of its tokens.'),
  })
    .meta(
      cel(
        'has(self.resource) == has(oldSelf.resource) && (!has(self.resource) || self.resource == oldSelf.resource)',
        'resource cannot be changed',
      ),
    )
    .describe('What the API is and which clients it lets in. At most 64 KiB as JSON.');

function protectedResource(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  return manifestOf(object, 'ProtectedResource', spec(object), (value) => (isOversized(value) ? OVERSIZED : undefined));
}

/** One schema for each treatment of unknown fields. */
export const PROTECTED_RESOURCE = {
  refuse: protectedResource('refuse'),
  ignore: protectedResource('ignore'),
} as const;

/** A well-shaped ProtectedResource, with all defaults. Durations are seconds. */
export type ProtectedResourceManifest = z.output<(typeof PROTECTED_RESOURCE)['ignore']>;
export type ProtectedResourceSpec = ProtectedResourceManifest['spec'];

/** What crds/protectedresources.yaml is made of. */
export const PROTECTED_RESOURCE_CRD = {
  names: { kind: 'ProtectedResource', plural: 'protectedresources', shortName: 'opr' },
  scope: 'Namespaced',
  description:
    'An API: the identifier and the scopes of its tokens, and which clients of other namespaces its owner lets in. A client refers to it in spec.resources. What a namespace may declare is said by ClientPolicies.',
  columns: [
    {
      name: 'Resource',
      jsonPath: '.status.resource',
      description: 'The identifier that the resource has or would have.',
    },
    ...readyColumns('Whether the resource is served.', 'Why it is not.'),
    { name: 'Discovery', priority: 1, jsonPath: '.spec.discovery', description: 'Whether its metadata is public.' },
    {
      name: 'Sender-Constraint',
      priority: 1,
      jsonPath: '.spec.tokens.senderConstraint',
      description: 'What its tokens must be bound to.',
    },
  ],
  manifest: PROTECTED_RESOURCE.refuse,
  status: () =>
    statusOf('resource', {
      resource: text(512).describe('The identifier that the resource has or would have, in printable ASCII.'),
      metadataUrl: text(2048)
        .optional()
        .describe(
          'The address of the metadata of the resource (RFC 9728). Unset while the resource is not accepted, with discovery None, and for a URN.',
        ),
      conditions: conditions(
        'Accepted, Programmed and, computed from them, Ready; Reconciling or Stalled while it is not ready. While Accepted is False, the resource grants nothing and its metadata is not served. One that may have its identifier keeps it until it is deleted, and with it the limits that the manifest sets there - the scopes, tokens, and introspection by no other namespace. A manifest that cannot be read limits nothing.',
      ),
    }),
  pending: ['Accepted', 'Programmed', 'Ready'],
} as const satisfies KindDefinition;

/** What the controller reports of a resource. */
export type ProtectedResourceStatus = StatusOf<typeof PROTECTED_RESOURCE_CRD>;
