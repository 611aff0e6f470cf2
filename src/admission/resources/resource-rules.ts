// The rules for a well-shaped ProtectedResource which hold for every tenant. What policies permit of it:
// policies/resource-policy.ts.

import { isScopeToken } from '../../oauth/access/scope.ts';
import { OPENID_SCOPES } from '../../oauth/access/scope-claims.ts';
import type { Fault, ResourceFaultReason } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { ProtectedResourceSpec } from '../kinds/protected-resource.ts';
import { quoted } from '../kinds/quoted.ts';
import { identifierFault } from './resource-identifier.ts';

export type ResourceFault = Fault<ResourceFaultReason>;

/** The scopes of OpenID Connect, also those of Core §5.4 that are not served: they are the issuer's own. */
const ISSUER_SCOPES = [...OPENID_SCOPES, 'address', 'phone'];
/** The least that `tokens.maxLifetime` may be. */
export const SHORTEST_LIFETIME_SECONDS = 60;
/** RFC 5646, as far as pages have languages: `de`, `pt-BR`, `zh-Hant-TW`. */
const LANGUAGE = /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/;

/** Every rule the manifest breaks. @param place.identifier given or derived */
export function resourceFaults(
  spec: ProtectedResourceSpec,
  place: { readonly identifier: string; readonly namespace: string; readonly issuer: string | undefined },
): readonly ResourceFault[] {
  const { identifier } = place;
  const broken = identifierFault(identifier, place);
  const { maxLifetime } = spec.tokens;
  return [
    ...(broken === undefined ? [] : [fault('InvalidResource', ['resource'], `${quoted(identifier)} ${broken}.`)]),
    ...scopeFaults(spec),
    ...languageFaults(spec),
    ...(maxLifetime !== undefined && maxLifetime < SHORTEST_LIFETIME_SECONDS
      ? [fault('InvalidManifest', ['tokens', 'maxLifetime'], 'Must be at least 1m.')]
      : []),
  ];
}

function fault(reason: ResourceFaultReason, path: FieldPath, message: string): ResourceFault {
  return { path: ['spec', ...path], reason, message };
}

function scopeFaults({ scopes, allowedClients }: ProtectedResourceSpec): readonly ResourceFault[] {
  const declared = new Set(scopes.map(({ name }) => name));
  const malformed = scopes.flatMap(({ name }, index) => {
    const message = scopeFault(name);
    return message === undefined
      ? []
      : [fault('InvalidScope', ['scopes', index, 'name'], `${quoted(name)} ${message}`)];
  });
  const undeclared = allowedClients.flatMap(({ scopes: granted = [] }, entry) =>
    granted.flatMap((name, index) => {
      if (declared.has(name)) return [];
      const path = ['allowedClients', entry, 'scopes', index];
      return [fault('InvalidScope', path, `${quoted(name)} is not among spec.scopes.`)];
    }),
  );
  return [...malformed, ...undeclared];
}

function scopeFault(name: string): string | undefined {
  if (ISSUER_SCOPES.includes(name)) return 'is a scope of OpenID Connect, which belongs to the issuer.';
  return isScopeToken(name)
    ? undefined
    : 'is not one scope token: visible ASCII without space, " and \\ (RFC 6749 section 3.3).';
}

function languageFaults({ displayNames, scopes }: ProtectedResourceSpec): readonly ResourceFault[] {
  const maps = [
    { path: ['displayNames'], texts: displayNames },
    ...scopes.map(({ descriptions }, index) => ({ path: ['scopes', index, 'descriptions'], texts: descriptions })),
  ];
  return maps.flatMap(({ path, texts }) =>
    Object.keys(texts).flatMap((tag) => {
      if (LANGUAGE.test(tag)) return [];
      return [fault('InvalidManifest', [...path, tag], `${quoted(tag)} is not a language such as de or pt-BR.`)];
    }),
  );
}
