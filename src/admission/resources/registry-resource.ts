// An accepted ProtectedResource as the protocol core reads it (`oauth/registry`): selectors of namespaces become the
// namespaces that match them now.

import type { AllowedClients, Resource, Text } from '../../oauth/registry/resource.ts';
import type { ProtectedResourceSpec } from '../kinds/protected-resource.ts';
import { matchesSelector } from '../policies/label-selector.ts';
import type { AcceptedResource } from './admit-resource.ts';

type Labels = Readonly<Record<string, string>>;
type NamespaceSelector = NonNullable<ProtectedResourceSpec['allowedClients'][number]['namespaceSelector']>;

/** The known namespaces that a selector matches. */
export type SelectNamespaces = (selector: NamespaceSelector) => ReadonlySet<string>;

/**
 * Selects among these namespaces. Equal selectors have one set, which is made once.
 * @param namespaces each with its labels; read at the first selector
 */
export function selectAmong(namespaces: Iterable<readonly [namespace: string, labels: Labels]>): SelectNamespaces {
  const known = new Map<string, ReadonlySet<string>>();
  let all: readonly (readonly [string, Labels])[] | undefined;
  return (selector) => {
    const text = JSON.stringify(selector);
    let selected = known.get(text);
    if (selected === undefined) {
      all ??= [...namespaces];
      selected = new Set(all.flatMap(([name, labels]) => (matchesSelector(selector, labels) ? [name] : [])));
      known.set(text, selected);
    }
    return selected;
  };
}

/**
 * Whether a selector of a resource matches a namespace by its present labels and did not when the resource was made, or
 * the reverse.
 */
export function isRelabelledFor(
  { allowedClients }: Resource,
  { allowedClients: entries }: ProtectedResourceSpec,
  [namespace, labels]: readonly [namespace: string, labels: Labels],
): boolean {
  return entries.some(({ namespaceSelector }, index) => {
    const selected = allowedClients[index]?.namespaces;
    if (namespaceSelector === undefined || selected === undefined || selected === 'all') return false;
    return selected.has(namespace) !== matchesSelector(namespaceSelector, labels);
  });
}

/** The resource of the registry. */
export function registryResource(
  { namespace, name, identifier, spec }: AcceptedResource,
  select: SelectNamespaces,
): Resource {
  const { tokens } = spec;
  return {
    namespace,
    name,
    identifier,
    displayName: textOf(spec.displayName, spec.displayNames),
    documentationUri: spec.documentationUri,
    policyUri: spec.policyUri,
    tosUri: spec.tosUri,
    isDiscoverable: spec.discovery === 'Public',
    scopes: spec.scopes.map((scope) => ({
      name: scope.name,
      description: textOf(scope.description, scope.descriptions),
    })),
    allowedClients: allowedClientsOf(spec, select),
    maxLifetimeSeconds: tokens.maxLifetime,
    senderConstraint: tokens.senderConstraint,
  };
}

/** The clients that its owner lets in. */
export function allowedClientsOf(
  { allowedClients }: ProtectedResourceSpec,
  select: SelectNamespaces,
): readonly AllowedClients[] {
  return allowedClients.map(({ namespaces = [], namespaceSelector, clients, scopes }) => ({
    namespaces: namespaceSelector ? select(namespaceSelector) : namespaces.includes('*') ? 'all' : new Set(namespaces),
    clients,
    scopes,
  }));
}

function textOf(text: string | undefined, translations: Readonly<Record<string, string>>): Text {
  return { text, translations };
}
