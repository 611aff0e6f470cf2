// The violations of one ClientPolicy by one client, field by field. policy.ts decides which policy applies.

import { isLoopback, plainHost } from '../../oauth/values/redirect-uri.ts';
import { type ClientPolicySpec, isOmitted, type Permissions } from '../kinds/client-policy.ts';
import type { Fault } from '../kinds/conditions.ts';
import { formatDuration } from '../kinds/duration.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import { expandNamespace, globMatches, SEGMENT_ENDS } from '../kinds/glob.ts';
import type { CommonSpec, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { FREE_DOMAIN, metadataKey } from '../kinds/secret-metadata.ts';

/** A ClientPolicy as admission uses it. */
export interface Policy {
  readonly name: string;
  readonly namespaceSelector: ClientPolicySpec['namespaceSelector'];
  /** Undefined for a policy that cannot be read: it permits nothing, and no wider built-in one replaces it. */
  readonly permissions: Permissions | undefined;
}

/** The namespace of the ProtectedResource that holds an identifier; undefined where none holds it. */
export type OwnerOf = (identifier: string) => string | undefined;

/** The part of a client that policies govern: what the client requests in its namespace. */
export interface PolicyRequest {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Undefined when the client id is the derived one, which needs no permission. */
  readonly explicitClientId: string | undefined;
  readonly spec: OAuthClientSpec;
  /** A client may introspect tokens for the resources of its own namespace without a permission. */
  readonly ownerOf: OwnerOf;
}

export type PolicyFault = Fault<'ClientIdNotPermitted' | 'NoMatchingPolicy' | 'PolicyViolation'>;

/** One policy in one namespace: `${namespace}` is substituted. */
export interface Rules {
  readonly namespace: string;
  readonly allow: Permissions['allow'];
  readonly limits: Permissions['limits'];
  /** How messages name the policy. */
  readonly subject: string;
  /** Whether the policy omits a list, so that the baseline's applies. */
  readonly omits: (field: GlobField) => boolean;
  /** A built-in policy cannot be changed, and its lists are public. */
  readonly isBuiltIn: boolean;
  /** The sentence that names a policy which would permit it; empty where the policy itself can be changed. */
  readonly remedy: (content: string) => string;
}

/** Every violation of the policy; empty when it permits the whole request. */
export function policyViolations(request: PolicyRequest, policy: Policy): readonly PolicyFault[] {
  const { permissions } = policy;
  if (permissions === undefined) return [unreadable(policy)];
  const rules = rulesIn(request.namespace, policy, permissions);
  const { spec } = request;
  const isOwn = (audience: string) => request.ownerOf(audience) === request.namespace;
  return [
    ...clientIdViolation(request, permissions, rules),
    ...listViolations(spec, rules),
    ...introspectionViolations(spec, rules, isOwn),
    ...originViolations(spec, rules),
    ...redirectViolations(spec, rules),
    ...logoutHostViolations(spec, rules),
    ...settingViolations(spec, rules),
  ];
}

/** The violation of a policy that permits nothing because it cannot be read. */
export function unreadable(policy: Policy): PolicyFault {
  return violation([], `Nothing is permitted: ${subjectOf(policy)} is itself invalid.`);
}

function subjectOf({ name }: Policy): string {
  return isBuiltIn(name) ? `the built-in policy ${name}` : `the ClientPolicy ${quoted(name)}`;
}

function isBuiltIn(name: string): boolean {
  return name.startsWith('(');
}

/** The rules of each policy in the namespace they were last needed for: clients come namespace by namespace. */
const lastRead = new WeakMap<Permissions, Rules>();

/** The rules of a policy that can be read, in one namespace. */
export function rulesIn(namespace: string, policy: Policy, permissions: Permissions): Rules {
  const known = lastRead.get(permissions);
  if (known?.namespace === namespace) return known;
  const rules: Rules = {
    namespace,
    allow: allowIn(namespace, permissions),
    limits: permissions.limits,
    subject: subjectOf(policy),
    isBuiltIn: isBuiltIn(policy.name),
    omits: (field) => isOmitted(permissions, field),
    // A built-in policy cannot be changed; a ClientPolicy that matches the namespace replaces it.
    remedy: (content) =>
      isBuiltIn(policy.name) ? ` The namespace ${namespace} needs a ClientPolicy with ${content}.` : '',
  };
  lastRead.set(permissions, rules);
  return rules;
}

function allowIn(namespace: string, { allow }: Permissions): Permissions['allow'] {
  const filled = Object.entries(allow).map(([field, value]) => [
    field,
    typeof value === 'boolean' ? value : value.map((pattern) => expandNamespace(pattern, namespace)),
  ]);
  return Object.fromEntries(filled) as Permissions['allow'];
}

function violation(path: FieldPath, message: string): PolicyFault {
  return { path, reason: 'PolicyViolation', message };
}

// An id with a dot could be the derived id of a client in another namespace: neither a glob nor a variable permits it.
function clientIdViolation(
  { explicitClientId }: PolicyRequest,
  written: Permissions,
  rules: Rules,
): readonly PolicyFault[] {
  if (explicitClientId === undefined) return [];
  const hasDot = explicitClientId.includes('.');
  const permitted = hasDot
    ? written.allow.clientIds.includes(explicitClientId)
    : rules.allow.clientIds.some((pattern) => globMatches(pattern, explicitClientId, ''));
  if (permitted) return [];
  const dotted = hasDot ? ' An id with a dot must be listed letter by letter.' : '';
  const remedy = rules.remedy('allow.clientIds that permit it');
  const message = `The client id ${quoted(explicitClientId)} is not among allow.clientIds of ${rules.subject}.${remedy}${dotted}`;
  return [{ path: ['spec', 'clientId'], reason: 'ClientIdNotPermitted', message }];
}

type GlobField =
  | 'grantTypes'
  | 'authMethods'
  | 'scopes'
  | 'audiences'
  | 'resources'
  | 'corsOrigins'
  | 'redirectHosts'
  | 'jwksHosts'
  | 'logoutHosts'
  | 'groups'
  | 'redirectSchemes'
  | 'secretMetadata';

const HOST_FIELDS: readonly GlobField[] = ['corsOrigins', 'redirectHosts', 'jwksHosts', 'logoutHosts'];

/** The message where no glob of a list permits a value; undefined when one does. */
export function listFault(rules: Rules, field: GlobField, noun: string, value: string): string | undefined {
  if (rules.allow[field].some((pattern) => globMatches(pattern, value, segmentEndsOf(field)))) return undefined;
  const fault = `${noun} ${quoted(value)} is not among allow.${field} of ${rules.subject}`;
  return `${fault}${listPermits(rules, field)}.${rules.remedy(`allow.${field} that permit it`)}`;
}

function segmentEndsOf(field: GlobField): string {
  if (field === 'groups') return SEGMENT_ENDS.none;
  return HOST_FIELDS.includes(field) ? SEGMENT_ENDS.host : SEGMENT_ENDS.path;
}

/** What a list permits instead. The list of a ClientPolicy is not quoted: it may name other tenants. */
function listPermits({ allow, omits, isBuiltIn }: Rules, field: GlobField): string {
  const list = allow[field];
  if (omits(field) && !isBuiltIn) {
    return list.length === 0 ? ': left out there, so it permits none' : `: left out there, so it is ${list.join(', ')}`;
  }
  if (list.length === 0) return ', which permits none';
  return isBuiltIn ? `, which permits ${list.join(', ')}` : '';
}

function listViolations(spec: CommonSpec, rules: Rules): readonly PolicyFault[] {
  const each = (...list: ListedIn) => valueViolations(rules, ...list);
  const method = listFault(rules, 'authMethods', 'The method', spec.auth.method);
  return [
    ...(method === undefined ? [] : [violation(['spec', 'auth', 'method'], method)]),
    ...each('grantTypes', 'The grant type', ['spec', 'grantTypes'], spec.grantTypes),
    ...each('scopes', 'The scope', ['spec', 'scopes'], spec.scopes),
    ...each('audiences', 'The audience', ['spec', 'audiences'], spec.audiences),
    ...groupViolations(spec, rules),
    ...secretMetadataViolations(spec, rules),
    ...jwksHostViolations(spec, rules),
  ];
}

function introspectionViolations(
  { resourceServer: { audiences } }: CommonSpec,
  rules: Rules,
  isOwn: (audience: string) => boolean,
): readonly PolicyFault[] {
  const path = ['spec', 'resourceServer', 'audiences'];
  return valueViolations(rules, 'audiences', 'The audience', path, audiences, isOwn);
}

function jwksHostViolations({ auth }: CommonSpec, rules: Rules): readonly PolicyFault[] {
  const { jwksUri } = auth.privateKeyJwt ?? {};
  // assertion-keys.ts reports an address that does not parse (InvalidJwks).
  const host = jwksUri === undefined ? undefined : URL.parse(jwksUri)?.hostname;
  const message = host === undefined ? undefined : listFault(rules, 'jwksHosts', 'The host', host);
  return message === undefined ? [] : [violation(['spec', 'auth', 'privateKeyJwt', 'jwksUri'], message)];
}

/**
 * A glob of the client is compared as text: a `*` in it can only match a star of the policy, which matches whatever that
 * `*` stands for. So the policy permits every group that a permitted glob matches.
 */
function groupViolations({ scopes, groups }: CommonSpec, rules: Rules): readonly PolicyFault[] {
  if (!scopes.includes('groups')) return [];
  if (groups !== undefined) return valueViolations(rules, 'groups', 'The group', ['spec', 'groups'], groups);
  const message = listFault(rules, 'groups', 'Unset, spec.groups is every group, and', '*');
  return message === undefined ? [] : [violation(['spec', 'groups'], message)];
}

function logoutHostViolations({ backchannelLogoutUri: uri }: OAuthClientSpec, rules: Rules): readonly PolicyFault[] {
  // openid-rules.ts reports an address that does not parse.
  const host = uri === undefined ? undefined : URL.parse(uri)?.hostname;
  const message = host === undefined ? undefined : listFault(rules, 'logoutHosts', 'The host', host);
  return message === undefined ? [] : [violation(['spec', 'backchannelLogoutUri'], message)];
}

function secretMetadataViolations({ auth }: CommonSpec, rules: Rules): readonly PolicyFault[] {
  const { source, secretTemplate } = auth.clientSecret ?? {};
  if (secretTemplate === undefined || source === 'Existing') return [];
  return (['labels', 'annotations'] as const).flatMap((field) =>
    Object.keys(secretTemplate[field]).flatMap((key) => {
      // secret-template.ts refuses malformed and reserved keys (InvalidSecretTemplate).
      if (metadataKey(key) !== 'governed') return [];
      const message = listFault(rules, 'secretMetadata', 'The key', key);
      const path = ['spec', 'auth', 'clientSecret', 'secretTemplate', field, key];
      return message === undefined ? [] : [violation(path, `${message} ${FREE_KEYS}`)];
    }),
  );
}

const FREE_KEYS = `A key without a prefix, or under ${FREE_DOMAIN}/, needs no permission.`;

function originViolations({ allowedCorsOrigins }: OAuthClientSpec, rules: Rules): readonly PolicyFault[] {
  return valueViolations(rules, 'corsOrigins', 'The CORS origin', ['spec', 'allowedCorsOrigins'], allowedCorsOrigins);
}

type ListedIn = readonly [
  field: GlobField,
  noun: string,
  path: FieldPath,
  values: readonly string[],
  isExempt?: (value: string) => boolean,
];

function valueViolations(rules: Rules, ...[field, noun, path, values, isExempt]: ListedIn): readonly PolicyFault[] {
  return values.flatMap((value, index) => {
    if (isExempt?.(value)) return [];
    const message = listFault(rules, field, noun, value);
    return message === undefined ? [] : [violation([...path, index], message)];
  });
}

function redirectViolations(spec: OAuthClientSpec, rules: Rules): readonly PolicyFault[] {
  return (['redirectUris', 'postLogoutRedirectUris'] as const).flatMap((field) =>
    spec[field].flatMap((uri, index) => {
      const message = redirectFault(uri, rules);
      return message === undefined ? [] : [violation(['spec', field, index], message)];
    }),
  );
}

function redirectFault(uri: string, rules: Rules): string | undefined {
  const host = plainHost(uri);
  if (host !== undefined) return listFault(rules, 'redirectHosts', 'The host', host);
  // client-rules.ts reports an address that does not parse (InvalidRedirectUri).
  const url = URL.parse(uri);
  if (url === null) return undefined;
  // A loopback address is no host of an owner, even with a certificate: it refers to the machine of the browser.
  if (url.protocol === 'https:' && !isLoopback(uri)) return listFault(rules, 'redirectHosts', 'The host', url.hostname);
  if (!['https:', 'http:'].includes(url.protocol)) {
    return listFault(rules, 'redirectSchemes', 'The scheme', url.protocol.slice(0, -1));
  }
  return rules.allow.loopbackRedirects ? undefined : notAllowed('A loopback address', 'loopbackRedirects', rules);
}

/** The message where a boolean permission is off. */
function notAllowed(
  noun: string,
  field: 'loopbackRedirects' | 'consentSkip',
  { subject, isBuiltIn, remedy }: Rules,
): string {
  const setting = `allow.${field}: true`;
  return isBuiltIn
    ? `${noun} is nothing that ${subject} permits.${remedy(setting)}`
    : `${noun} needs ${setting} in ${subject}.`;
}

function settingViolations(spec: CommonSpec, rules: Rules): readonly PolicyFault[] {
  const { allow, limits, subject, remedy } = rules;
  const faults: PolicyFault[] = [];
  const refuse = (path: FieldPath, message: string) => faults.push(violation(path, message));
  if (spec.consent === 'Skip' && !allow.consentSkip) {
    refuse(['spec', 'consent'], notAllowed('Skipping consent', 'consentSkip', rules));
  }
  if (spec.tokens.accessTokenLifetimeSeconds > limits.maxAccessTokenLifetime) {
    const most = formatDuration(limits.maxAccessTokenLifetime);
    const message = `Access tokens may live at most ${most} by ${subject}.${remedy('a higher limits.maxAccessTokenLifetime')}`;
    refuse(['spec', 'tokens', 'accessTokenLifetime'], message);
  }
  const hasRefreshTokens = spec.grantTypes.includes('refresh_token');
  if (hasRefreshTokens && spec.tokens.refreshTokenLifetimeSeconds > limits.maxRefreshTokenLifetime) {
    const most = formatDuration(limits.maxRefreshTokenLifetime);
    const message = `Refresh tokens may live at most ${most} by ${subject}.${remedy('a higher limits.maxRefreshTokenLifetime')}`;
    refuse(['spec', 'tokens', 'refreshTokenLifetime'], message);
  }
  const hasIdTokens = spec.scopes.includes('openid');
  if (hasIdTokens && spec.tokens.idTokens.lifetimeSeconds > limits.maxIdTokenLifetime) {
    const most = formatDuration(limits.maxIdTokenLifetime);
    const message = `ID tokens may live at most ${most} by ${subject}.${remedy('a higher limits.maxIdTokenLifetime')}`;
    refuse(['spec', 'tokens', 'idTokenLifetime'], message);
  }
  if (limits.requireSenderConstraint && spec.senderConstraint === 'None') {
    refuse(['spec', 'senderConstraint'], `Tokens must be sender-constrained by ${subject}.`);
  }
  return faults;
}
