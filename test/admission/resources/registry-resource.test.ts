import { describe, expect, it } from 'vitest';
import { isRelabelledFor, registryResource, selectAmong } from '../../../src/admission/resources/registry-resource.ts';
import { resourceDocument, resourcesOf } from '../world.ts';

const NAMESPACES = [
  ['one', { tier: 'apps' }],
  ['two', { tier: 'apps', zone: 'b' }],
  ['three', {}],
] as const;

function accepted(spec: Readonly<Record<string, unknown>>) {
  const resource = resourcesOf([resourceDocument(spec)]).accepted.get('team/notes');
  if (resource === undefined) throw new Error('it is not accepted');
  return resource;
}

describe('a resource of the registry', () => {
  it('given every field → has each', () => {
    const resource = accepted({
      displayName: 'Notes',
      displayNames: { de: 'Notizen' },
      documentationUri: 'https://notes.example.com/docs',
      policyUri: 'https://notes.example.com/privacy',
      tosUri: 'https://notes.example.com/terms',
      discovery: 'None',
      scopes: [{ name: 'team/read', description: 'Read', descriptions: { de: 'Lesen' } }, { name: 'team/write' }],
      allowedClients: [
        { namespaces: ['one', 'two'], clients: ['app'], scopes: ['team/read'] },
        { namespaces: ['*'] },
        { namespaceSelector: { matchLabels: { tier: 'apps' } } },
      ],
      tokens: { maxLifetime: '5m', senderConstraint: 'Any' },
    });
    expect(registryResource(resource, selectAmong(NAMESPACES))).toEqual({
      namespace: 'team',
      name: 'notes',
      identifier: 'urn:grantry:ns:team:notes',
      displayName: { text: 'Notes', translations: { de: 'Notizen' } },
      documentationUri: 'https://notes.example.com/docs',
      policyUri: 'https://notes.example.com/privacy',
      tosUri: 'https://notes.example.com/terms',
      isDiscoverable: false,
      scopes: [
        { name: 'team/read', description: { text: 'Read', translations: { de: 'Lesen' } } },
        { name: 'team/write', description: { text: undefined, translations: {} } },
      ],
      allowedClients: [
        { namespaces: new Set(['one', 'two']), clients: ['app'], scopes: ['team/read'] },
        { namespaces: 'all', clients: undefined, scopes: undefined },
        { namespaces: new Set(['one', 'two']), clients: undefined, scopes: undefined },
      ],
      maxLifetimeSeconds: 300,
      senderConstraint: 'Any',
    });
  });

  it('given none → public, without a cap and a constraint', () => {
    expect(registryResource(accepted({}), selectAmong([]))).toMatchObject({
      displayName: { text: undefined, translations: {} },
      isDiscoverable: true,
      scopes: [],
      allowedClients: [],
      maxLifetimeSeconds: undefined,
      senderConstraint: 'None',
    });
  });

  it('given equal selectors → one set, and the namespaces are read once', () => {
    let reads = 0;
    function* namespaces() {
      reads++;
      yield* NAMESPACES;
    }
    const select = selectAmong(namespaces());
    expect(reads).toBe(0);
    const [first, second] = [{ matchLabels: { tier: 'apps' } }, { matchLabels: { zone: 'b' } }].map((selector) => ({
      ...selector,
      matchExpressions: [],
    }));
    if (first === undefined || second === undefined) throw new Error('no selectors');
    expect(select(first)).toBe(select({ ...first }));
    expect([...select(second)]).toEqual(['two']);
    expect(reads).toBe(1);
  });

  it.each([
    ['matches now', 'three', { tier: 'apps' }, true],
    ['matches no more', 'one', {}, true],
    ['matches as before', 'two', { tier: 'apps' }, false],
    ['never matched', 'three', { zone: 'b' }, false],
  ])('is another one by a namespace that %s: %s %o → %s', (_, name, labels, isOther) => {
    const { spec, ...rest } = accepted({
      allowedClients: [{ namespaces: ['three'] }, { namespaceSelector: { matchLabels: { tier: 'apps' } } }],
    });
    const made = registryResource({ spec, ...rest }, selectAmong(NAMESPACES));
    expect(isRelabelledFor(made, spec, [name, labels])).toBe(isOther);
  });
});
