// A resource for tests: the notes API of namespace `shop`, open to its own namespace only.

import type { DeclaredScope, Resource } from '../../src/oauth/registry/resource.ts';

/** Scopes without descriptions. */
export function declared(...names: readonly string[]): readonly DeclaredScope[] {
  return names.map((name) => ({ name, description: { text: undefined, translations: {} } }));
}

/** The resource with these fields replaced. */
export function aResource(overrides: Partial<Resource> = {}): Resource {
  return {
    namespace: 'shop',
    name: 'notes',
    identifier: 'https://notes.example/api',
    displayName: { text: undefined, translations: {} },
    documentationUri: undefined,
    policyUri: undefined,
    tosUri: undefined,
    isDiscoverable: true,
    scopes: declared('notes.read', 'notes.write'),
    allowedClients: [],
    maxLifetimeSeconds: undefined,
    senderConstraint: 'None',
    ...overrides,
  };
}
