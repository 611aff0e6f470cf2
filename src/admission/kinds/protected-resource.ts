// The ProtectedResource resource: shape, bounds and defaults. admission/resources/ judges the values: identifier, scopes
// and languages are therefore plain bounded strings here, so that each fault has a reason of its own.

import { z } from 'zod';
import { namespaceSelector } from './client-policy.ts';
import {
  API_VERSION,
  className,
  duration,
  listOf,
  type MakeObject,
  mapOf,
  metadata,
  objectsWith,
  ownName,
  setOf,
  text,
  type UnknownFields,
  wholeManifest,
} from './manifest.ts';
import { label, webAddress } from './shown-fields.ts';
import { isOversized, OVERSIZED } from './spec-size.ts';

const SCOPES_MAX = 100;
const NAMESPACE_OR_ALL = /^(\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)$/;

const translations = (max: number) => mapOf(label(max), 16).default({});

const scope = (object: MakeObject) =>
  object({ name: text(128), description: label(200).optional(), descriptions: translations(200) });

const allowedClients = (object: MakeObject) =>
  object({
    namespaces: setOf(text(63, NAMESPACE_OR_ALL, 'is neither a namespace nor *'), 64).optional(),
    namespaceSelector: namespaceSelector(object).optional(),
    clients: setOf(ownName(), 64).optional(),
    scopes: setOf(text(128), SCOPES_MAX).optional(),
  }).refine(({ namespaces, namespaceSelector }) => (namespaces === undefined) !== (namespaceSelector === undefined), {
    error: 'needs exactly one of namespaces and namespaceSelector',
  });

function protectedResource(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const spec = object({
    className: className(),
    resource: text(512).optional(),
    displayName: label(100).optional(),
    displayNames: translations(100),
    documentationUri: webAddress().optional(),
    policyUri: webAddress().optional(),
    tosUri: webAddress().optional(),
    discovery: z.enum(['Public', 'None']).default('Public'),
    scopes: listOf(scope(object), SCOPES_MAX)
      .refine((scopes) => new Set(scopes.map(({ name }) => name)).size === scopes.length, {
        error: 'names the same scope twice',
      })
      .default([]),
    allowedClients: listOf(allowedClients(object), 64).default([]),
    tokens: object({
      maxLifetime: duration().optional(),
      senderConstraint: z.enum(['None', 'DPoP', 'MutualTLS', 'Any']).default('None'),
    }).prefault({}),
  });
  const manifest = object({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('ProtectedResource'),
    metadata: metadata(object),
    spec,
    // Never read: every writer of the object could have set it.
    status: z.unknown().optional(),
  });
  return wholeManifest(manifest, (value) => (isOversized(value) ? OVERSIZED : undefined));
}

/** One schema for each treatment of unknown fields. */
export const PROTECTED_RESOURCE = {
  refuse: protectedResource('refuse'),
  ignore: protectedResource('ignore'),
} as const;

/** A well-shaped ProtectedResource, with all defaults. Durations are seconds. */
export type ProtectedResourceManifest = z.output<(typeof PROTECTED_RESOURCE)['ignore']>;
export type ProtectedResourceSpec = ProtectedResourceManifest['spec'];
