import { describe, expect, it } from 'vitest';
import { registryResource, selectBy } from '../../../src/admission/resources/registry-resource.ts';
import {
  grantsCondition,
  type ReferringClient,
  ungrantedReferences,
} from '../../../src/admission/resources/resource-grants.ts';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../../oauth/a-client.ts';
import { resourceDocument, resourcesOf } from '../world.ts';

type Reference = { readonly namespace?: string; readonly name: string; readonly scopes?: readonly string[] };

const SCOPES = [{ name: 'team/read' }, { name: 'team/write' }];

function admitted(allowedClients: readonly object[], references: readonly Reference[], client: object = {}) {
  const { accepted } = resourcesOf([resourceDocument({ scopes: SCOPES, allowedClients })]);
  const referring = {
    namespace: 'other',
    name: 'app',
    namespaceLabels: { tier: 'apps', 'kubernetes.io/metadata.name': 'other' },
    spec: {
      resources: references.map(({ scopes, ...rest }) => ({ ...rest, ...(scopes && { scopes: [...scopes] }) })),
      scopes: [],
      defaultScopes: [],
    },
    ...client,
  };
  const ungranted = ungrantedReferences(referring, accepted);
  return {
    granted: grantedTo(referring, accepted),
    ungranted: ungranted.map(({ path }) => path.slice(2).join('.')),
    condition: grantsCondition(referring, ungranted, 7),
  };
}

/** What the protocol core grants by the same resources. */
function grantedTo(
  { namespace, name, namespaceLabels, spec }: ReferringClient,
  accepted: ReturnType<typeof resourcesOf>['accepted'],
) {
  const select = selectBy((asked) => (asked === namespace ? namespaceLabels : undefined));
  const resources = new Resources([...accepted.values()].map((resource) => registryResource(resource, select)));
  const references = spec.resources.map((reference) => ({ namespace: undefined, scopes: undefined, ...reference }));
  const access = clientAccess(aClient({ namespace, name, audiences: [], resources: references }), { resources });
  return access.audiences.map((audience) => `${audience}: ${access.scopesAt(audience).join(' ')}`);
}

const NOTES = { namespace: 'team', name: 'notes' };
const ALL = ['urn:grantry:ns:team:notes: team/read team/write'];

describe('a reference to a resource', () => {
  it('in its own namespace → granted whole, without an entry', () => {
    expect(admitted([], [{ name: 'notes' }], { namespace: 'team' })).toMatchObject({ granted: ALL, ungranted: [] });
  });

  it.each([
    ['of its namespace', { namespaces: ['other'] }],
    ['of every namespace', { namespaces: ['*'] }],
    ['of its name', { namespaces: ['other'], clients: ['app'] }],
    ['of its labels', { namespaceSelector: { matchLabels: { tier: 'apps' } } }],
  ])('with an entry %s → granted', (_, entry) => {
    expect(admitted([entry], [NOTES])).toMatchObject({ granted: ALL, ungranted: [] });
  });

  it.each([
    ['no entry', []],
    ['an entry of another namespace', [{ namespaces: ['others', 'team'] }]],
    ['an entry of another client', [{ namespaces: ['*'], clients: ['application'] }]],
    ['an entry of no client', [{ namespaces: ['*'], clients: [] }]],
    ['an entry of other labels', [{ namespaceSelector: { matchLabels: { tier: 'data' } } }]],
  ])('with %s → not granted', (_, entries) => {
    expect(admitted(entries, [NOTES])).toMatchObject({ granted: [], ungranted: ['0'] });
  });

  it('of a namespace that is not observed → no selector matches it, not even the empty one', () => {
    const client = { namespaceLabels: undefined };
    expect(admitted([{ namespaceSelector: {} }], [NOTES], client)).toMatchObject({ granted: [], ungranted: ['0'] });
  });

  it('with several entries → the scopes of all that name it, and no others', () => {
    const entries = [
      { namespaces: ['other'], scopes: ['team/read'] },
      { namespaces: ['*'], clients: ['report'], scopes: ['team/write'] },
    ];
    const narrow = ['urn:grantry:ns:team:notes: team/read'];
    expect(admitted(entries, [NOTES])).toMatchObject({ granted: narrow, ungranted: [] });
    expect(admitted(entries, [{ ...NOTES, scopes: ['team/write', 'team/read'] }])).toMatchObject({
      granted: narrow,
      ungranted: ['0.scopes.0'],
    });
    expect(admitted(entries, [NOTES], { name: 'report' })).toMatchObject({ granted: ALL });
  });

  it('that is missing reads as one that is not allowed', () => {
    const [missing, notAllowed] = [admitted([], [{ namespace: 'team', name: 'gone' }]), admitted([], [NOTES])];
    expect(missing.condition).toEqual(notAllowed.condition);
    expect(missing.condition).toMatchObject({
      type: 'ResourcesGranted',
      status: 'False',
      reason: 'ResourceNotGranted',
      observedGeneration: 7,
    });
  });

  it('to one that is not accepted → not granted', () => {
    const { accepted } = resourcesOf([resourceDocument({ resource: 'urn:example:not-permitted' })]);
    const spec = { resources: [{ name: 'notes' }], scopes: [], defaultScopes: [] };
    const client = { namespace: 'team', name: 'app', namespaceLabels: {}, spec };
    expect(ungrantedReferences(client, accepted)).toMatchObject([{ reason: 'ResourceNotGranted' }]);
    expect(grantedTo(client, accepted)).toEqual([]);
  });

  it('beside another → one that is not granted harms only itself', () => {
    const both = [{ namespace: 'team', name: 'gone' }, NOTES];
    expect(admitted([{ namespaces: ['*'] }], both)).toMatchObject({ granted: ALL, ungranted: ['0'] });
  });
});

it.each([
  ['the resource has it', 'team/read', []],
  ['the client has it', 'other/run', []],
  ['neither has it', 'team/reed', ['spec.defaultScopes.0']],
])('a default scope, where %s → is named when it comes from nowhere', (_, scope, named) => {
  const { accepted } = resourcesOf([resourceDocument({ scopes: SCOPES })]);
  const spec = { resources: [{ name: 'notes' }], scopes: ['other/run'], defaultScopes: [scope] };
  const client = { namespace: 'team', name: 'app', namespaceLabels: {}, spec };
  expect(ungrantedReferences(client, accepted).map(({ path }) => path.join('.'))).toEqual(named);
});

it('a client without references has no condition; with granted ones it is True', () => {
  expect(admitted([], []).condition).toBeUndefined();
  expect(admitted([{ namespaces: ['*'] }], [NOTES]).condition).toMatchObject({
    status: 'True',
    reason: 'ResourcesGranted',
  });
});
