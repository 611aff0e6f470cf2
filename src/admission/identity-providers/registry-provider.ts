// From an IdentityProvider and its Secret to the provider of the protocol core. A manifest that the schema refuses has one
// as well, as far as it can be read: a fault in a manifest stops sign-ins and ends no session.

import { isDeepStrictEqual } from 'node:util';
import type { IdentityProvider, ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import { parseDuration } from '../kinds/duration.ts';
import { IDENTITY_PROVIDER, type IdentityProviderSpec } from '../kinds/identity-provider.ts';
import { API_VERSION, fieldsOf, readManifest, type SourceObject } from '../kinds/manifest.ts';
import { peopleSource } from './people-source.ts';

/** @param credentials undefined where sign-in through the provider is disabled */
export function registryProvider(
  { name, uid, generation }: SourceObject,
  spec: IdentityProviderSpec,
  credentials: ProviderCredentials | undefined,
): IdentityProvider | undefined {
  const source = peopleSource(spec);
  if (source === undefined) return undefined;
  const { displayName = name, suspended, revokeTokensBefore, verifyEvery, allow, groups, oidc, gitHub } = spec;
  const shared = {
    name,
    uid,
    generation,
    displayName,
    isSuspended: suspended,
    revokedBefore: revokeTokensBefore,
    verifyEvery: verifyEvery * 1000,
    allow,
    groups: { ...groups, prefix: groups.prefix ?? `${name}:` },
    credentials,
  };
  if (source.type === 'OIDC') return oidc && { ...shared, ...oidc, type: source.type };
  const organizations = (gitHub?.organizations ?? []).map((login) => login.toLowerCase());
  return { ...shared, ...source, organizations };
}

/** The provider that sessions are validated against, of a malformed manifest; undefined where it names no source. */
export function unreadableProvider(object: SourceObject): IdentityProvider | undefined {
  const { type, suspended, revokeTokensBefore, verifyEvery, allow, oidc, gitHub } = fieldsOf(
    fieldsOf(object.manifest).spec,
  );
  const source =
    type === 'OIDC' ? { oidc: { issuer: fieldsOf(oidc).issuer } } : { gitHub: { host: fieldsOf(gitHub).host } };
  const { manifest } = readManifest(IDENTITY_PROVIDER.ignore, {
    apiVersion: API_VERSION,
    kind: 'IdentityProvider',
    metadata: { name: object.name },
    spec: { type, clientSecretRef: { name: object.name }, ...source },
  });
  if (manifest === undefined) return undefined;
  const { emailDomains } = fieldsOf(allow);
  const before = typeof revokeTokensBefore === 'string' ? Date.parse(revokeTokensBefore) : Number.NaN;
  const seconds = typeof verifyEvery === 'string' ? parseDuration(verifyEvery) : undefined;
  const read: IdentityProviderSpec = {
    ...manifest.spec,
    suspended: suspended === true,
    revokeTokensBefore: Number.isNaN(before) ? undefined : before,
    verifyEvery: seconds ?? manifest.spec.verifyEvery,
    // No other provider may speak for its addresses meanwhile.
    allow: { emailDomains: Array.isArray(emailDomains) ? emailDomains.filter(isText) : [], groups: [] },
  };
  return registryProvider(object, read, undefined);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/**
 * The providers in which each that does not differ from one of `before` is that object.
 * @returns `before` itself where none differs
 */
export function unlessSameProviders(
  before: readonly IdentityProvider[],
  now: readonly IdentityProvider[],
): readonly IdentityProvider[] {
  const kept = now.map((provider) => before.find((known) => isDeepStrictEqual(known, provider)) ?? provider);
  const isSame = kept.length === before.length && kept.every((provider, at) => provider === before[at]);
  return isSame ? before : kept;
}
