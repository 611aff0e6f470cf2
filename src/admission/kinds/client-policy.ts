// The ClientPolicy resource: shape, bounds, and the built-in policies. policy.ts decides what they permit.

import { z } from 'zod';
import { conditions, type KindDefinition, readyColumns, type StatusOf, statusOf } from './crd.ts';
import { NAMESPACE_VARIABLE } from './glob.ts';
import {
  cel,
  className,
  duration,
  fieldsOf,
  listOf,
  type MakeObject,
  manifestOf,
  mapOf,
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

const NO_GLOB = `holds more than visible ASCII, or a variable other than ${NAMESPACE_VARIABLE}`;

const VARIABLE = '\\$\\{namespace\\}';
const HOST_ENTRY = entry(
  `([a-z0-9._*-]|${VARIABLE})+|[[*][0-9a-f:.*[\\]]*[\\]*]`,
  'can match no host: a lower-case name such as app.example.com or *.example.com, without scheme, port and path',
);
const URI_ENTRY = entry(
  `(\\*|${VARIABLE}|[A-Za-z][A-Za-z0-9+.-]*(:|\\*|${VARIABLE}))([A-Za-z0-9._~:/?[\\]@!$&'()*+,;=%-]|${VARIABLE})*`,
  'can match no absolute URI without fragment, such as https://api.example.com/* or urn:example:*',
);

/** How an entry of each list is written: any other can match nothing. */
const ENTRIES = {
  clientIds: entry(
    `([A-Za-z0-9*]|${VARIABLE})([A-Za-z0-9_~*-]|${VARIABLE})*|[A-Za-z0-9][A-Za-z0-9._~-]*`,
    `can match no client id: letters, digits and _ ~ - with * and ${NAMESPACE_VARIABLE}, or one with dots letter by letter`,
  ),
  grantTypes: entry('[a-z0-9_.:/*-]+', 'can match no grant type: a name such as authorization_code, or *'),
  authMethods: entry('[a-z0-9_*]+', 'can match no method: a name such as private_key_jwt, or *'),
  scopes: entry(
    `(\\{|\\$*[!#%-[\\]-z|}~]|\\$+\\{namespace\\})*\\$*`,
    `can match no scope: visible ASCII without " and \\, and no variable other than ${NAMESPACE_VARIABLE}`,
  ),
  audiences: URI_ENTRY,
  resources: URI_ENTRY,
  redirectHosts: HOST_ENTRY,
  jwksHosts: HOST_ENTRY,
  logoutHosts: HOST_ENTRY,
  groups: { form: GLOB, fault: NO_GLOB },
  redirectSchemes: entry(
    `([a-z]|${VARIABLE})([a-z0-9-]|${VARIABLE})*[.*]([a-z0-9.*-]|${VARIABLE})*|\\*([a-z0-9.*-]|${VARIABLE})*`,
    'can match no scheme: what stands before the colon, in lower case and with a dot, such as com.example.app',
  ),
  corsOrigins: entry(
    `(https?|[a-z]*\\*[a-z]*)://([a-z0-9.:*[\\]-]|${VARIABLE})+|([a-z0-9.:/*[\\]-]|${VARIABLE})*\\*\\*([a-z0-9.:/*[\\]-]|${VARIABLE})*`,
    'can match no origin: such as https://app.example.com or https://*.example.com, in lower case and without path',
  ),
  secretMetadata: entry(
    `([a-z0-9.*-]|${VARIABLE})+/([A-Za-z0-9._*-]|${VARIABLE})+|([a-z0-9.*-]|${VARIABLE})*\\*\\*([A-Za-z0-9._*-]|${VARIABLE})*`,
    'can match no key that needs permission: one with a prefix, such as example.com/team or example.com/*',
  ),
} as const;

function entry(form: string, fault: string) {
  return { form: new RegExp(`^(${form})?$`), fault };
}

const globs = (form: RegExp, fault: string) =>
  setOf(
    text(512, form, fault)
      .refine((pattern) => pattern !== '', { error: 'is empty' })
      .meta({ minLength: 1 }),
    PATTERNS_MAX,
  ).optional();

const labelValue = () => text(63);

const requirement = (object: MakeObject) =>
  object({
    key: text(317).describe('The label.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
    values: setOf(labelValue(), 64).default([]).describe('For In and NotIn, and only for them.'),
  })
    .refine(({ operator, values }) => (operator === 'In' || operator === 'NotIn') === values.length > 0, {
      error: 'needs values for In and NotIn, and none for Exists and DoesNotExist',
    })
    .meta(
      cel(
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        'needs values for In and NotIn, and none for Exists and DoesNotExist',
      ),
    )
    .describe('One requirement, as in Kubernetes.');

/** A metav1.LabelSelector of namespaces. */
export const namespaceSelector = (object: MakeObject) =>
  object({
    matchLabels: mapOf(labelValue(), 32).default({}).describe('Labels and the values they must have.'),
    matchExpressions: listOf(requirement(object), 32).default([]).describe('Further requirements.'),
  }).describe(
    'The namespaces, by their labels; kubernetes.io/metadata.name is the name. {} selects all. Everything given must hold.',
  );

function allow(unknownFields: UnknownFields) {
  // A server reads the others as well: a policy in a cluster does not become void for an entry that permits nothing.
  const entries = (field: keyof typeof ENTRIES) =>
    unknownFields === 'refuse' ? globs(ENTRIES[field].form, ENTRIES[field].fault) : globs(GLOB, NO_GLOB);
  return objectsWith(unknownFields)({
    clientIds: entries('clientIds').describe(
      `Client ids other than the derived one. One with a dot must be listed letter by letter, and is then taken from a client that it is derived for. In a policy for several namespaces write ${NAMESPACE_VARIABLE}_*: see AmbiguousClientIds. Baseline: none.`,
    ),
    grantTypes: entries('grantTypes').describe(
      'Grants. Baseline: authorization_code, client_credentials, refresh_token.',
    ),
    authMethods: entries('authMethods').describe('Client authentication methods. Baseline: all.'),
    scopes: entries('scopes').describe(
      `Scopes of clients, and those that ProtectedResources may declare. Baseline: ${NAMESPACE_VARIABLE}/*, openid, profile, email, offline_access.`,
    ),
    audiences: entries('audiences').describe(
      `Audiences of tokens and of resource servers. Baseline: urn:grantry:ns:${NAMESPACE_VARIABLE}:*.`,
    ),
    resources: entries('resources').describe(
      `Identifiers of ProtectedResources. One that is listed letter by letter belongs to these namespaces, whatever resource of another one is older: list those that matter. Baseline: urn:grantry:ns:${NAMESPACE_VARIABLE}:*.`,
    ),
    redirectHosts: entries('redirectHosts').describe(
      'Hosts of https redirects; segments end at dots as well. Baseline: all.',
    ),
    jwksHosts: entries('jwksHosts').describe(
      'Hosts from which the keys of clients may be fetched (jwksUri); segments end at dots as well. Baseline: none.',
    ),
    logoutHosts: entries('logoutHosts').describe(
      'Hosts of backchannelLogoutUri, which the token servers call. In a host, * is within one label. Baseline: none.',
    ),
    groups: entries('groups').describe(
      'Which groups of people are disclosed to clients with the scope groups: each glob of spec.groups must match one of these as text. * is any text here. Baseline: all.',
    ),
    redirectSchemes: entries('redirectSchemes').describe(
      'Private-use schemes, such as com.example.shop. Baseline: none.',
    ),
    corsOrigins: entries('corsOrigins').describe('Origins; segments end at dots as well. Baseline: none.'),
    secretMetadata: entries('secretMetadata').describe(
      'Keys of labels and annotations for generated Secrets (secretTemplate), which other operators may act on. Those without a prefix and under app.kubernetes.io/ need no permission; those of Kubernetes, Helm, Argo and grantry are refused all the same. Baseline: none.',
    ),
    loopbackRedirects: z.boolean().default(false).describe('Redirects to 127.0.0.1, [::1] and localhost.'),
    consentSkip: z.boolean().default(false).describe('Clients that need no consent of a person (consent: Skip).'),
  });
}

const count = () => z.int().min(0, { error: 'is negative' }).max(100_000, { error: 'is above 100000' }).optional();

const limits = (object: MakeObject) =>
  object({
    maxAccessTokenLifetime: duration().optional().describe('The most for tokens.accessTokenLifetime. Baseline: 1h.'),
    maxRefreshTokenLifetime: duration()
      .optional()
      .describe('The most for tokens.refreshTokenLifetime. Baseline: 2160h.'),
    maxIdTokenLifetime: duration()
      .optional()
      .describe(
        'The most for tokens.idTokenLifetime of clients with the scope openid. Baseline: 1h. No server can revoke an ID token.',
      ),
    maxClientsPerNamespace: count().describe(
      'How many clients a namespace may have; the oldest have the places. Of several permitting policies the greatest applies. Baseline: 200.',
    ),
    maxResourcesPerNamespace: count().describe(
      'How many ProtectedResources a namespace may have; the oldest have the places. Of several permitting policies the greatest applies. Baseline: 50.',
    ),
    maxState: quantity()
      .optional()
      .describe(
        'How many bytes a namespace may have in the store without a person, counted by each replica: opaque tokens of client_credentials, and marks of used assertions and proofs. Of several permitting policies the greatest applies. Baseline: 64Mi.',
      ),
    requireSenderConstraint: z
      .boolean()
      .default(false)
      .describe(
        'Whether tokens must be bound to the sender that received them: with true a client needs a senderConstraint other than None.',
      ),
  });

function clientPolicy(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  const spec = object({
    className: className(),
    namespaceSelector: namespaceSelector(object),
    allow: allow(unknownFields)
      .prefault({})
      .describe(
        `What clients may have. A list that is left out is the baseline's; one that is given replaces it; [] permits nothing. In a glob, * is any text inside one segment, ** any text, and ${NAMESPACE_VARIABLE} the client's namespace.`,
      ),
    limits: limits(object).prefault({}).describe("Bounds for each client. A limit that is left out is the baseline's."),
  }).describe('Which namespaces, and what their clients may ask for.');
  return manifestOf(object, 'ClientPolicy', spec);
}

/** One schema for each treatment of unknown fields. */
export const CLIENT_POLICY = { refuse: clientPolicy('refuse'), ignore: clientPolicy('ignore') } as const;

/** A well-shaped ClientPolicy. Durations are seconds, quantities bytes; an absent list or limit is the baseline's. */
export type ClientPolicyManifest = z.output<(typeof CLIENT_POLICY)['ignore']>;
export type ClientPolicySpec = ClientPolicyManifest['spec'];

/** What crds/clientpolicies.yaml is made of. */
export const CLIENT_POLICY_CRD = {
  names: { kind: 'ClientPolicy', plural: 'clientpolicies', shortName: 'oacp' },
  scope: 'Cluster',
  description:
    'What the clients of some namespaces may ask for. The administrators of the cluster write it, not the teams. One of the policies that select a namespace must permit all of a client; the baseline applies to a namespace that none selects.',
  columns: [
    ...readyColumns('Whether the policy applies.', 'Why it does not.'),
    {
      name: 'Namespaces',
      type: 'integer',
      jsonPath: '.status.matchedNamespaces',
      description: 'How many namespaces it selects.',
    },
    {
      name: 'Clients',
      type: 'integer',
      jsonPath: '.status.matchedClients',
      description: 'How many clients are in them.',
    },
  ],
  manifest: CLIENT_POLICY.refuse,
  status: () =>
    statusOf('policy', {
      matchedNamespaces: z.int().min(0).meta({ format: 'int32' }).describe('How many namespaces the policy selects.'),
      matchedClients: z.int().min(0).meta({ format: 'int32' }).describe('How many clients of its class are in them.'),
      conditions: conditions(
        'Accepted and, computed from it, Ready. AmbiguousClientIds is there, and True, while two of the selected namespaces could claim the same id by one entry of allow.clientIds; the policy applies all the same.',
      ),
    }),
  pending: ['Accepted', 'Ready'],
} as const satisfies KindDefinition;

/** What the controller reports of a policy. */
export type ClientPolicyStatus = StatusOf<typeof CLIENT_POLICY_CRD>;

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
