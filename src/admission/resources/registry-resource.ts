// A ProtectedResource as the protocol core reads it (`oauth/registry`): a selector of namespaces becomes a set that
// looks up the labels of the one it is asked about.

import type { AllowedClients, NamespaceSet, Resource, Text } from '../../oauth/registry/resource.ts';
import type { ProtectedResourceSpec } from '../kinds/protected-resource.ts';
import { matchesSelector } from '../policies/label-selector.ts';
import type { AcceptedResource, WithheldResource } from './admit-resource.ts';
import { SHORTEST_LIFETIME_SECONDS } from './resource-rules.ts';

type Labels = Readonly<Record<string, string>>;
type NamespaceSelector = NonNullable<ProtectedResourceSpec['allowedClients'][number]['namespaceSelector']>;

/** The namespaces that a selector matches. */
export type SelectNamespaces = (selector: NamespaceSelector) => NamespaceSet;

/**
 * Selects by the labels that a namespace has when it is asked about. The matching namespaces are not listed: one owner may
 * write thousands of selectors, and each may match every namespace of the cluster.
 * @param labelsOf undefined for a namespace that is not known, which no selector matches
 */
export function selectBy(labelsOf: (namespace: string) => Labels | undefined): SelectNamespaces {
  return (selector) => ({
    has(namespace) {
      const labels = labelsOf(namespace);
      return labels !== undefined && matchesSelector(selector, labels);
    },
  });
}

/** The resource of the registry. */
export function registryResource({ spec, ...place }: AcceptedResource, select: SelectNamespaces): Resource {
  return {
    ...declarationOf({ spec, ...place }),
    isDiscoverable: spec.discovery === 'Public',
    allowedClients: allowedClientsOf(spec, select),
    maxLifetimeSeconds: spec.tokens.maxLifetime,
  };
}

/** The withheld resource of the registry: it lets no client in, and its metadata is not served. */
export function registryWithheld(withheld: WithheldResource): Resource {
  const { maxLifetime } = withheld.spec.tokens;
  return {
    ...declarationOf(withheld),
    isDiscoverable: false,
    allowedClients: [],
    // It may be refused for a shorter one, such as 0s: tokens that end before they are issued help no owner.
    maxLifetimeSeconds: maxLifetime === undefined ? undefined : Math.max(maxLifetime, SHORTEST_LIFETIME_SECONDS),
  };
}

function declarationOf({ namespace, name, identifier, spec }: WithheldResource) {
  return {
    namespace,
    name,
    identifier,
    displayName: textOf(spec.displayName, spec.displayNames),
    documentationUri: spec.documentationUri,
    policyUri: spec.policyUri,
    tosUri: spec.tosUri,
    scopes: spec.scopes.map((scope) => ({
      name: scope.name,
      description: textOf(scope.description, scope.descriptions),
    })),
    senderConstraint: spec.tokens.senderConstraint,
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
