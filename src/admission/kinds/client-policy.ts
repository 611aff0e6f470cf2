// The ClientPolicy resource: shape, bounds, and the built-in policies. policy.ts decides what they permit.

import { z } from 'zod';
import { NAMESPACE_VARIABLE } from './glob.ts';
import {
  API_VERSION,
  className,
  duration,
  fieldsOf,
  listOf,
  type MakeObject,
  mapOf,
  metadata,
  objectsWith,
  quantity,
  setOf,
  text,
  type UnknownFields,
  wholeManifest,
} from './manifest.ts';

const PATTERNS_MAX = 100;

// Visible ASCII in which ${ begins nothing but ${namespace}.
const GLOB = /^(\{|\$*[!-#%-z|}~]|\$+\{namespace\})*\$*$/;

const globs = () =>
  setOf(
    text(512, GLOB, `holds more than visible ASCII, or a variable other than ${NAMESPACE_VARIABLE}`).refine(
      (pattern) => pattern !== '',
      { error: 'is empty' },
    ),
    PATTERNS_MAX,
  ).optional();

const labelValue = () => text(63);

const requirement = (object: MakeObject) =>
  object({
    key: text(317),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: setOf(labelValue(), 64).default([]),
  }).refine(({ operator, values }) => (operator === 'In' || operator === 'NotIn') === values.length > 0, {
    error: 'needs values for In and NotIn, and none for Exists and DoesNotExist',
  });

/** A metav1.LabelSelector of namespaces. */
export const namespaceSelector = (object: MakeObject) =>
  object({
    matchLabels: mapOf(labelValue(), 32).default({}),
    matchExpressions: listOf(requirement(object), 32).default([]),
  });

function clientPolicy(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const allow = object({
    clientIds: globs(),
    grantTypes: globs(),
    authMethods: globs(),
    scopes: globs(),
    audiences: globs(),
    resources: globs(),
    redirectHosts: globs(),
    jwksHosts: globs(),
    logoutHosts: globs(),
    groups: globs(),
    redirectSchemes: globs(),
    corsOrigins: globs(),
    secretMetadata: globs(),
    loopbackRedirects: z.boolean().default(false),
    consentSkip: z.boolean().default(false),
  });
  const limits = object({
    maxAccessTokenLifetime: duration().optional(),
    maxRefreshTokenLifetime: duration().optional(),
    maxIdTokenLifetime: duration().optional(),
    maxClientsPerNamespace: z
      .int()
      .min(0, { error: 'is negative' })
      .max(100_000, { error: 'is above 100000' })
      .optional(),
    maxResourcesPerNamespace: z
      .int()
      .min(0, { error: 'is negative' })
      .max(100_000, { error: 'is above 100000' })
      .optional(),
    maxState: quantity().optional(),
    requireSenderConstraint: z.boolean().default(false),
    requirePushedAuthorizationRequests: z.boolean().default(false),
  });
  return wholeManifest(
    object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal('ClientPolicy'),
      metadata: metadata(object),
      spec: object({
        className: className(),
        namespaceSelector: namespaceSelector(object),
        allow: allow.prefault({}),
        limits: limits.prefault({}),
      }),
      status: z.unknown().optional(),
    }),
  );
}

/** One schema for each treatment of unknown fields. */
export const CLIENT_POLICY = { refuse: clientPolicy('refuse'), ignore: clientPolicy('ignore') } as const;

/** A well-shaped ClientPolicy. Durations are seconds, quantities bytes; an absent list or limit is the baseline's. */
export type ClientPolicyManifest = z.output<(typeof CLIENT_POLICY)['ignore']>;
export type ClientPolicySpec = ClientPolicyManifest['spec'];

const READABLE_LABEL = labelValue();
const READABLE_REQUIREMENT = wholeManifest(requirement(objectsWith('ignore')));

/**
 * The readable part of the selector of a manifest that is not well-shaped: each label and each requirement that is. What
 * is left out selects more namespaces, never fewer; without any readable part every namespace is selected.
 */
export function readableSelector(manifest: unknown): ClientPolicySpec['namespaceSelector'] {
  const { matchLabels, matchExpressions } = fieldsOf(fieldsOf(fieldsOf(manifest).spec).namespaceSelector);
  const labels = Array.isArray(matchLabels) ? [] : Object.entries(fieldsOf(matchLabels));
  const requirements: readonly unknown[] = Array.isArray(matchExpressions) ? matchExpressions : [];
  return {
    matchLabels: Object.fromEntries(
      labels.flatMap(([key, value]) => {
        const { data } = READABLE_LABEL.safeParse(value);
        return data === undefined ? [] : [[key, data]];
      }),
    ),
    matchExpressions: requirements.flatMap((each) => READABLE_REQUIREMENT.safeParse(each).data ?? []),
  };
}

/** The built-in policy for a namespace that no policy matches. */
export type DefaultPolicy = 'Baseline' | 'Deny' | 'AllowAll';

/** A ClientPolicy in which every list and limit is set. */
export interface Permissions {
  readonly allow: Required<{
    readonly [Field in keyof ClientPolicySpec['allow']]: NonNullable<ClientPolicySpec['allow'][Field]>;
  }>;
  readonly limits: Required<{
    readonly [Field in keyof ClientPolicySpec['limits']]: NonNullable<ClientPolicySpec['limits'][Field]>;
  }>;
}

/** The built-in baseline: a namespace may register clients for scopes and audiences of its own name. */
export const BASELINE: Permissions = {
  allow: {
    clientIds: [],
    grantTypes: ['authorization_code', 'client_credentials', 'refresh_token'],
    authMethods: ['**'],
    scopes: [`${NAMESPACE_VARIABLE}/*`, 'openid', 'profile', 'email', 'offline_access'],
    audiences: [`urn:grantry:ns:${NAMESPACE_VARIABLE}:*`],
    resources: [`urn:grantry:ns:${NAMESPACE_VARIABLE}:*`],
    redirectHosts: ['**'],
    jwksHosts: [],
    logoutHosts: [],
    groups: ['**'],
    redirectSchemes: [],
    corsOrigins: [],
    secretMetadata: [],
    loopbackRedirects: false,
    consentSkip: false,
  },
  limits: {
    maxAccessTokenLifetime: 3600,
    maxRefreshTokenLifetime: 2160 * 3600,
    maxIdTokenLifetime: 3600,
    maxClientsPerNamespace: 200,
    maxResourcesPerNamespace: 50,
    maxState: 64 * 2 ** 20,
    requireSenderConstraint: false,
    requirePushedAuthorizationRequests: false,
  },
};

const EVERYTHING = ['**'];

/** For a cluster of one tenant: everything that admission itself does not refuse. */
export const ALLOW_ALL: Permissions = {
  allow: {
    clientIds: EVERYTHING,
    grantTypes: EVERYTHING,
    authMethods: EVERYTHING,
    scopes: EVERYTHING,
    audiences: EVERYTHING,
    resources: EVERYTHING,
    redirectHosts: EVERYTHING,
    jwksHosts: EVERYTHING,
    logoutHosts: EVERYTHING,
    groups: EVERYTHING,
    redirectSchemes: EVERYTHING,
    corsOrigins: EVERYTHING,
    secretMetadata: EVERYTHING,
    loopbackRedirects: true,
    consentSkip: true,
  },
  limits: BASELINE.limits,
};

/** The permissions of a policy; the baseline's apply for every list and limit that it omits. `[]` permits nothing. */
export function permissionsOf(spec: ClientPolicySpec): Permissions {
  return {
    allow: { ...BASELINE.allow, ...defined(spec.allow) } as Permissions['allow'],
    limits: { ...BASELINE.limits, ...defined(spec.limits) } as Permissions['limits'],
  };
}

/** Whether a policy omits a list, so that the baseline's applies. Always true for the baseline itself. */
export function isOmitted({ allow }: Permissions, field: keyof Permissions['allow']): boolean {
  return allow[field] === BASELINE.allow[field];
}

function defined<Fields extends object>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
}
