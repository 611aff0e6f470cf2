// The protocol's own rules for a well-shaped OAuthClient, which hold for every tenant. What policies permit of it:
// policy-violations.ts.

import { isResourceIndicator } from '../../oauth/access/resource-indicator.ts';
import { isScopeToken } from '../../oauth/access/scope.ts';
import { CERTIFICATE_METHODS, isPublic, SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import { type RedirectUriFault, redirectUriFault } from '../../oauth/values/redirect-uri.ts';
import type { Fault, FaultReason } from '../kinds/conditions.ts';
import { formatDuration } from '../kinds/duration.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { CommonSpec, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { PRESET_NAMES } from '../kinds/secret-presets.ts';
import { algorithmFaults } from './assertion-keys.ts';
import { certificateKeyFaults, certificateNameFaults } from './certificate-rules.ts';
import { logoutUriFaults, openIdFaults } from './openid-rules.ts';
import { accountRuleFaults } from './service-accounts.ts';

/** The grant types and authentication methods of the protocol's tables, and the issuer. */
export interface SupportedProtocol {
  /** Undefined where it is not known: then no audience is compared with it. */
  readonly issuer: string | undefined;
  readonly supportedGrantTypes: readonly string[];
  /** Without the methods that need mutual TLS where that is off. */
  readonly supportedAuthMethods: readonly string[];
}

/** The prefix of the subject of a person (login); a client id must differ from every such subject (RFC 9068 §5). */
const SUBJECT_PREFIX = 'usr_';
const MAX_ACCESS_TOKEN_SECONDS = 24 * 3600;
const MAX_REFRESH_TOKEN_SECONDS = 366 * 24 * 3600;
const MAX_REUSE_GRACE_SECONDS = 60;

/** Every rule the manifest breaks; empty when it breaks none. */
export function clientFaults(spec: OAuthClientSpec, supported: SupportedProtocol): readonly Fault[] {
  return [
    ...clientIdFaults(spec),
    ...methodFaults(spec, supported),
    ...credentialFaults(spec),
    ...grantFaults(spec, supported),
    ...redirectFaults(spec),
    ...logoutUriFaults(spec, supported.issuer),
    ...scopeFaults(spec),
    ...audienceFaults(spec, supported),
    ...lifetimeFaults(spec),
    ...openIdFaults(spec),
    ...settingFaults(spec, supported),
  ];
}

function fault(reason: FaultReason, path: FieldPath, message: string): Fault {
  return { path: ['spec', ...path], reason, message };
}

function clientIdFaults({ clientId }: OAuthClientSpec): readonly Fault[] {
  if (clientId === undefined || !clientId.startsWith(SUBJECT_PREFIX)) return [];
  return [fault('ClientIdNotPermitted', ['clientId'], `Ids beginning with ${SUBJECT_PREFIX} are kept for people.`)];
}

function methodFaults({ auth }: CommonSpec, { supportedAuthMethods }: SupportedProtocol): readonly Fault[] {
  const faults: Fault[] = [];
  if (!supportedAuthMethods.includes(auth.method)) {
    const message = CERTIFICATE_METHODS.includes(auth.method)
      ? `The method ${auth.method} needs mutual TLS: GRANTRY_MTLS_URL turns it on, and --mtls-port of grantry dev.`
      : `The method ${quoted(auth.method)} is not available in this version; there are ${supportedAuthMethods.join(', ')}.`;
    faults.push(fault('UnsupportedAuthMethod', ['auth', 'method'], message));
  }
  // A block for another method is a mistake about which credential applies.
  const blocks = [
    { field: 'clientSecret', isGiven: auth.clientSecret !== undefined, methods: SECRET_METHODS },
    { field: 'privateKeyJwt', isGiven: auth.privateKeyJwt !== undefined, methods: ['private_key_jwt'] },
    { field: 'tls', isGiven: auth.tls !== undefined, methods: CERTIFICATE_METHODS },
    { field: 'serviceAccounts', isGiven: auth.serviceAccounts.length > 0, methods: ['kubernetes_service_account'] },
  ];
  for (const { field, isGiven, methods } of blocks) {
    if (!isGiven || methods.includes(auth.method)) continue;
    const message = `This counts only with the method ${methods.join(' or ')}, and the method is ${quoted(auth.method)}.`;
    faults.push(fault('InvalidManifest', ['auth', field], message));
  }
  const { preset } = auth.clientSecret ?? {};
  if (preset !== undefined && !PRESET_NAMES.includes(preset)) {
    const message = `The preset ${quoted(preset)} is not available in this version; there are ${PRESET_NAMES.join(', ')}.`;
    faults.push(fault('UnsupportedPreset', ['auth', 'clientSecret', 'preset'], message));
  }
  return faults;
}

/** The rules of each method about its own block. */
function credentialFaults(spec: CommonSpec): readonly Fault[] {
  const rules: Readonly<Record<string, (spec: CommonSpec) => readonly Fault[]>> = {
    tls_client_auth: certificateNameFaults,
    self_signed_tls_client_auth: certificateKeyFaults,
    private_key_jwt: algorithmFaults,
    kubernetes_service_account: accountRuleFaults,
  };
  return Object.hasOwn(rules, spec.auth.method) ? (rules[spec.auth.method]?.(spec) ?? []) : [];
}

function grantFaults({ auth, grantTypes }: CommonSpec, { supportedGrantTypes }: SupportedProtocol): readonly Fault[] {
  const faults = grantTypes.flatMap((grantType, index) => {
    if (supportedGrantTypes.includes(grantType)) return [];
    const message = `The grant type ${quoted(grantType)} is not available; there are ${supportedGrantTypes.join(', ')}.`;
    return [fault('UnsupportedGrantType', ['grantTypes', index], message)];
  });
  if (isPublic({ authMethod: auth.method }) && grantTypes.includes('client_credentials')) {
    const message =
      'client_credentials needs a client that can prove who it is (RFC 6749 section 4.4), and the method is none.';
    faults.push(fault('GrantNotAllowedForMethod', ['grantTypes', grantTypes.indexOf('client_credentials')], message));
  }
  if (grantTypes.includes('refresh_token') && !grantTypes.includes('authorization_code')) {
    const message = 'refresh_token needs authorization_code beside it: no other grant ever issues a refresh token.';
    faults.push(fault('UnsupportedGrantType', ['grantTypes', grantTypes.indexOf('refresh_token')], message));
  }
  return faults;
}

const REDIRECT_URI_SENTENCES: Readonly<Record<RedirectUriFault, string>> = {
  not_absolute: 'is not an absolute address',
  invalid_character: 'holds a character that no address may hold unescaped',
  fragment: 'has a fragment',
  wildcard: 'holds a wildcard; addresses are compared letter by letter',
  userinfo: 'holds a user name',
  invalid_host: 'does not have its host in the form browsers show',
  invalid_port: 'has no port from 1 to 65535 without leading zeros',
  http_not_loopback: 'is http; only 127.0.0.1, [::1] and localhost may be',
  unsupported_scheme: 'is neither https nor of a private-use scheme with a dot (RFC 8252 section 7.1)',
  response_parameter: 'already has a query parameter that answers are given in',
};

function redirectFaults(spec: OAuthClientSpec): readonly Fault[] {
  const faults = (['redirectUris', 'postLogoutRedirectUris'] as const).flatMap((field) =>
    spec[field].flatMap((uri, index) => {
      const name = redirectUriFault(uri);
      if (name === undefined) return [];
      return [fault('InvalidRedirectUri', [field, index], `${quoted(uri)} ${REDIRECT_URI_SENTENCES[name]}.`)];
    }),
  );
  if (spec.grantTypes.includes('authorization_code') && spec.redirectUris.length === 0) {
    const message =
      'authorization_code, which grantTypes defaults to, needs at least one redirect address; an API that only checks tokens sets grantTypes: [].';
    faults.push(fault('MissingRedirectUri', ['redirectUris'], message));
  }
  return faults;
}

function scopeFaults({ scopes, defaultScopes, resources }: CommonSpec): readonly Fault[] {
  const malformed = scopes.flatMap((scope, index) => {
    if (isScopeToken(scope)) return [];
    const message = `${quoted(scope)} is not one scope token: visible ASCII without space, " and \\ (RFC 6749 section 3.3).`;
    return [fault('InvalidScope', ['scopes', index], message)];
  });
  const listed = new Set([...scopes, ...resources.flatMap((reference) => reference.scopes ?? [])]);
  // Which scopes a reference without a list gives is its owner's word, which may change at any time.
  const mayBeGranted = resources.some((reference) => reference.scopes === undefined);
  const where = resources.length === 0 ? 'not among spec.scopes' : 'neither among spec.scopes nor in spec.resources';
  const foreign = defaultScopes.flatMap((scope, index) => {
    if (listed.has(scope) || (mayBeGranted && isScopeToken(scope))) return [];
    return [fault('InvalidScope', ['defaultScopes', index], `${quoted(scope)} is ${where}.`)];
  });
  return [...malformed, ...foreign];
}

function audienceFaults(
  { audiences, defaultAudience, resources, resourceServer, auth, scopes }: CommonSpec,
  { issuer }: SupportedProtocol,
): readonly Fault[] {
  const faults: Fault[] = [];
  const lists = [
    { path: ['audiences'], values: audiences },
    { path: ['resourceServer', 'audiences'], values: resourceServer.audiences },
  ];
  for (const { path, values } of lists) {
    for (const [index, value] of values.entries()) {
      const message = audienceFault(value, issuer);
      if (message !== undefined)
        faults.push(fault('InvalidAudience', [...path, index], `${quoted(value)} ${message}.`));
    }
  }
  const broken = defaultAudienceFault({ audiences, defaultAudience, resources, scopes }, issuer);
  if (broken !== undefined) faults.push(fault('InvalidAudience', ['defaultAudience'], broken));
  if (resourceServer.audiences.length > 0 && isPublic({ authMethod: auth.method })) {
    const message =
      'A resource server must be able to prove who it is before it may introspect, and the method is none.';
    faults.push(fault('InvalidAudience', ['resourceServer', 'audiences'], message));
  }
  return faults;
}

function defaultAudienceFault(
  {
    audiences,
    defaultAudience,
    resources,
    scopes,
  }: Pick<CommonSpec, 'audiences' | 'defaultAudience' | 'resources' | 'scopes'>,
  issuer: string | undefined,
): string | undefined {
  if (defaultAudience === undefined) {
    return audiences.length + resources.length > 1
      ? 'With more than one audience or resource, the audience that counts when a request names none must be given.'
      : undefined;
  }
  if (audiences.includes(defaultAudience)) return undefined;
  if (scopes.includes('openid') && mayBeIssuer(defaultAudience, issuer)) return undefined;
  if (resources.length === 0) return `${quoted(defaultAudience)} is not among spec.audiences.`;
  // It may be the identifier of a resource that is not there yet.
  const message = audienceFault(defaultAudience, issuer);
  return message === undefined ? undefined : `${quoted(defaultAudience)} ${message}.`;
}

/** Grants with OpenID Connect cover the issuer. Where it is not known (`check`), any web address may be it. */
function mayBeIssuer(value: string, issuer: string | undefined): boolean {
  return issuer === undefined ? /^https?:/.test(value) && isResourceIndicator(value) : value === issuer;
}

function audienceFault(value: string, issuer: string | undefined): string | undefined {
  if (!isResourceIndicator(value)) return 'is not an absolute URI without fragment (RFC 8707 section 2)';
  // The endpoints of the issuer would accept a token of any tenant.
  return value === issuer ? 'is the issuer, which is the audience of its own endpoints only' : undefined;
}

function lifetimeFaults({ tokens, auth }: CommonSpec): readonly Fault[] {
  const limits = [
    {
      field: 'accessTokenLifetime',
      seconds: tokens.accessTokenLifetimeSeconds,
      least: 1,
      most: MAX_ACCESS_TOKEN_SECONDS,
    },
    {
      field: 'refreshTokenIdleLifetime',
      seconds: tokens.refreshTokenIdleLifetimeSeconds,
      least: 1,
      most: MAX_REFRESH_TOKEN_SECONDS,
    },
    {
      field: 'refreshTokenLifetime',
      seconds: tokens.refreshTokenLifetimeSeconds,
      least: 1,
      most: MAX_REFRESH_TOKEN_SECONDS,
    },
    {
      field: 'refreshTokenReuseGrace',
      seconds: tokens.refreshTokenReuseGraceSeconds,
      least: 0,
      most: MAX_REUSE_GRACE_SECONDS,
    },
  ];
  const faults = limits.flatMap(({ field, seconds, least, most }) => {
    if (seconds >= least && seconds <= most) return [];
    const message = `Must be from ${formatDuration(least)} to ${formatDuration(most)}.`;
    return [fault('InvalidTokenSettings', ['tokens', field], message)];
  });
  const interval = auth.clientSecret?.rotation.interval;
  if (interval !== undefined && interval < 24 * 3600) {
    faults.push(fault('InvalidManifest', ['auth', 'clientSecret', 'rotation', 'interval'], 'Must be at least 24h.'));
  }
  return faults;
}

function settingFaults(spec: CommonSpec, { supportedAuthMethods }: SupportedProtocol): readonly Fault[] {
  const faults: Fault[] = [];
  const refuse = (path: FieldPath, message: string) => faults.push(fault('InvalidTokenSettings', path, message));
  // RFC 9700 §4.14.2: what a public client holds must change with every use, or be bound to a key.
  const isBearerOnly = isPublic({ authMethod: spec.auth.method }) && spec.senderConstraint === 'None';
  if (isBearerOnly && spec.tokens.refreshTokenRotation === 'Never') {
    refuse(
      ['tokens', 'refreshTokenRotation'],
      'Never is for confidential or sender-constrained clients, and this one is neither.',
    );
  }
  // Accepting these without their mechanism would promise a protection that is not there.
  const hasMutualTls = CERTIFICATE_METHODS.every((method) => supportedAuthMethods.includes(method));
  if (spec.senderConstraint === 'MutualTLS' && !hasMutualTls) {
    refuse(
      ['senderConstraint'],
      'MutualTLS needs mutual TLS: GRANTRY_MTLS_URL turns it on, and --mtls-port of grantry dev.',
    );
  }
  return faults;
}
