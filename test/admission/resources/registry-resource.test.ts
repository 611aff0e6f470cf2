import { describe, expect, it } from 'vitest';
import { registryResource, registryWithheld, selectBy } from '../../../src/admission/resources/registry-resource.ts';
import { resourceDocument, resourcesOf } from '../world.ts';

const labelsOf = (namespace: string) => ({ one: { tier: 'apps' }, three: {} })[namespace];

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
    expect(registryResource(resource, selectBy(labelsOf))).toEqual({
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
        { namespaces: { has: expect.any(Function) }, clients: undefined, scopes: undefined },
      ],
      maxLifetimeSeconds: 300,
      senderConstraint: 'Any',
    });
  });

  it('given none → public, without a cap and a constraint', () => {
    expect(registryResource(accepted({}), selectBy(labelsOf))).toMatchObject({
      displayName: { text: undefined, translations: {} },
      isDiscoverable: true,
      scopes: [],
      allowedClients: [],
      maxLifetimeSeconds: undefined,
      senderConstraint: 'None',
    });
  });

  it('withheld → keeps scopes, cap and constraint, lets nothing in and is not shown', () => {
    const withheld = accepted({
      scopes: [{ name: 'team/read' }],
      allowedClients: [{ namespaces: ['*'] }],
      tokens: { maxLifetime: '5m', senderConstraint: 'DPoP' },
    });
    expect(registryWithheld(withheld)).toMatchObject({
      identifier: 'urn:grantry:ns:team:notes',
      isDiscoverable: false,
      scopes: [{ name: 'team/read' }],
      allowedClients: [],
      maxLifetimeSeconds: 300,
      senderConstraint: 'DPoP',
    });
  });

  it.each([
    ['unset', {}, undefined],
    ['refused as too short', { maxLifetime: '0s' }, 60],
  ])('withheld, with a cap that is %s → %j becomes %j', (_, tokens, cap) => {
    const withheld = resourcesOf([resourceDocument({ scopes: [{ name: 'openid' }], tokens })]).withheld;
    const [resource] = [...withheld.values()].map(registryWithheld);
    expect(resource).toMatchObject({ name: 'notes', maxLifetimeSeconds: cap });
  });

  it.each([
    ['has them', 'one', true],
    ['does not have them', 'three', false],
    ['is not known', 'two', false],
  ])('with a selector of labels: a namespace that %s, %s → let in %s', (_, namespace, isIn) => {
    const select = selectBy(labelsOf);
    expect(select({ matchLabels: { tier: 'apps' }, matchExpressions: [] }).has(namespace)).toBe(isIn);
  });

  it('with a selector → reads labels only when it is asked about a namespace, and then the present ones', () => {
    const asked: string[] = [];
    let labels: Readonly<Record<string, string>> = { tier: 'apps' };
    const select = selectBy((namespace) => {
      asked.push(namespace);
      return labels;
    });
    const selected = select({ matchLabels: { tier: 'apps' }, matchExpressions: [] });
    expect(asked).toEqual([]);
    expect(selected.has('one')).toBe(true);
    labels = {};
    expect(selected.has('one')).toBe(false);
    expect(asked).toEqual(['one', 'one']);
  });
});
