// What one ClientPolicy does not permit of one client, field by field. Which policy counts is policy.ts.

import { isLoopback } from '../oauth/redirect-uri.ts';
import { type ClientPolicySpec, isLeftOpen, type Permissions } from './client-policy.ts';
import type { Fault } from './conditions.ts';
import { formatDuration } from './duration.ts';
import type { FieldPath } from './field-path.ts';
import { expandNamespace, globMatches, SEGMENT_ENDS } from './glob.ts';
import type { OAuthClientSpec } from './oauth-client.ts';
import { quoted } from './quoted.ts';

/** A ClientPolicy as admission uses it. */
export interface Policy {
  readonly name: string;
  readonly namespaceSelector: ClientPolicySpec['namespaceSelector'];
  /** Undefined for a policy that cannot be read: it permits nothing, and no wider built-in one takes its place. */
  readonly permissions: Permissions | undefined;
}

/** What a client claims of its policies. */
export interface Claim {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Undefined when the client id is the derived one: that needs nobody's permission. */
  readonly explicitClientId: string | undefined;
  readonly spec: OAuthClientSpec;
}

export type PolicyFault = Fault<'ClientIdNotPermitted' | 'NoMatchingPolicy' | 'PolicyViolation'>;

/** One policy as it reads for one client: `${namespace}` is filled in. */
interface Rules {
  readonly allow: Permissions['allow'];
  readonly limits: Permissions['limits'];
  /** How messages name the policy. */
  readonly subject: string;
  /** Whether the policy says nothing of a list, so that the baseline's stands in for it. */
  readonly leavesOpen: (field: GlobField) => boolean;
  /** Nobody can change it; its lists are no secret. */
  readonly isBuiltIn: boolean;
  /** The sentence that says which policy would permit it; empty where the policy itself can be changed. */
  readonly remedy: (content: string) => string;
}

/** Everything the policy does not permit; empty when it permits the whole claim. */
export function policyViolations(claim: Claim, { name, permissions }: Policy): readonly PolicyFault[] {
  const isBuiltIn = name.startsWith('(');
  const subject = isBuiltIn ? `the built-in policy ${name}` : `the ClientPolicy ${quoted(name)}`;
  if (permissions === undefined) {
    return [{ path: [], reason: 'PolicyViolation', message: `Nothing is permitted: ${subject} is itself invalid.` }];
  }
  const rules: Rules = {
    allow: allowIn(claim.namespace, permissions),
    limits: permissions.limits,
    subject,
    isBuiltIn,
    leavesOpen: (field) => isLeftOpen(permissions, field),
    // Nobody can change a built-in policy; one that matches the namespace takes its place.
    remedy: (content) => (isBuiltIn ? ` The namespace ${claim.namespace} needs a ClientPolicy with ${content}.` : ''),
  };
  return [
    ...clientIdViolation(claim, permissions, rules),
    ...listViolations(claim.spec, rules),
    ...redirectViolations(claim.spec, rules),
    ...settingViolations(claim.spec, rules),
  ];
}

type Allow = Permissions['allow'];

/** What a policy allows in the namespace it was last read for: clients come namespace by namespace. */
const lastRead = new WeakMap<Permissions, { readonly namespace: string; readonly allow: Allow }>();

function allowIn(namespace: string, permissions: Permissions): Allow {
  const known = lastRead.get(permissions);
  if (known?.namespace === namespace) return known.allow;
  const filled = Object.entries(permissions.allow).map(([field, value]) => [
    field,
    typeof value === 'boolean' ? value : value.map((pattern) => expandNamespace(pattern, namespace)),
  ]);
  const allow = Object.fromEntries(filled) as Allow;
  lastRead.set(permissions, { namespace, allow });
  return allow;
}

function violation(path: FieldPath, message: string): PolicyFault {
  return { path, reason: 'PolicyViolation', message };
}

// An id with a dot could be what is derived for another namespace's client: no glob reaches it, and no variable.
function clientIdViolation({ explicitClientId }: Claim, written: Permissions, rules: Rules): readonly PolicyFault[] {
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
  | 'corsOrigins'
  | 'redirectHosts'
  | 'redirectSchemes';

/** What to say when no glob of a list permits a value; undefined when one does. */
function listFault(rules: Rules, field: GlobField, noun: string, value: string): string | undefined {
  const ends = field === 'corsOrigins' || field === 'redirectHosts' ? SEGMENT_ENDS.host : SEGMENT_ENDS.path;
  if (rules.allow[field].some((pattern) => globMatches(pattern, value, ends))) return undefined;
  const fault = `${noun} ${quoted(value)} is not among allow.${field} of ${rules.subject}`;
  return `${fault}${listPermits(rules, field)}.${rules.remedy(`allow.${field} that permit it`)}`;
}

/** What a list permits instead, as far as anybody may know: a policy's own list may name other tenants. */
function listPermits({ allow, leavesOpen, isBuiltIn }: Rules, field: GlobField): string {
  const list = allow[field];
  if (leavesOpen(field) && !isBuiltIn) {
    return list.length === 0 ? ': left out there, so it permits none' : `: left out there, so it is ${list.join(', ')}`;
  }
  if (list.length === 0) return ', which permits none';
  return isBuiltIn ? `, which permits ${list.join(', ')}` : '';
}

function listViolations(spec: OAuthClientSpec, rules: Rules): readonly PolicyFault[] {
  const each = (field: GlobField, noun: string, path: FieldPath, values: readonly string[]) =>
    values.flatMap((value, index) => {
      const message = listFault(rules, field, noun, value);
      return message === undefined ? [] : [violation([...path, index], message)];
    });
  const method = listFault(rules, 'authMethods', 'The method', spec.auth.method);
  return [
    ...(method === undefined ? [] : [violation(['spec', 'auth', 'method'], method)]),
    ...each('grantTypes', 'The grant type', ['spec', 'grantTypes'], spec.grantTypes),
    ...each('scopes', 'The scope', ['spec', 'scopes'], spec.scopes),
    ...each('audiences', 'The audience', ['spec', 'audiences'], spec.audiences),
    ...each('audiences', 'The audience', ['spec', 'resourceServer', 'audiences'], spec.resourceServer.audiences),
    ...each('corsOrigins', 'The CORS origin', ['spec', 'allowedCorsOrigins'], spec.allowedCorsOrigins),
  ];
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
  // What does not parse is named by admission itself (InvalidRedirectUri).
  const url = URL.parse(uri);
  if (url === null) return undefined;
  // No certificate makes the person's own machine a host of somebody.
  if (url.protocol === 'https:' && !isLoopback(uri)) return listFault(rules, 'redirectHosts', 'The host', url.hostname);
  if (!['https:', 'http:'].includes(url.protocol)) {
    return listFault(rules, 'redirectSchemes', 'The scheme', url.protocol.slice(0, -1));
  }
  return rules.allow.loopbackRedirects ? undefined : notAllowed('A loopback address', 'loopbackRedirects', rules);
}

/** What to say when a permission that is on or off is off. */
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

function settingViolations(spec: OAuthClientSpec, rules: Rules): readonly PolicyFault[] {
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
  if (limits.requireSenderConstraint && spec.senderConstraint === 'None') {
    refuse(['spec', 'senderConstraint'], `Tokens must be sender-constrained by ${subject}.`);
  }
  if (limits.requirePushedAuthorizationRequests && !spec.requirePushedAuthorizationRequests) {
    refuse(['spec', 'requirePushedAuthorizationRequests'], `Pushed authorization requests are required by ${subject}.`);
  }
  return faults;
}
