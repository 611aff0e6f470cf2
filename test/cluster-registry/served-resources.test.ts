import { beforeEach, describe, expect, it } from 'vitest';
import type { Policy } from '../../src/admission/policies/policy-violations.ts';
import { keptResource, ServedResources } from '../../src/cluster-registry/served-resources.ts';
import { objectKey } from '../../src/kubernetes/objects/resources.ts';
import { Resources } from '../../src/oauth/registry/resources.ts';
import { contextOf, policyDocument } from '../admission/world.ts';

type Labels = Readonly<Record<string, string>>;

const GOLD = { allowedClients: [{ namespaceSelector: { matchLabels: { tier: 'gold' } } }] };
const NOTHING_PERMITTED: Policy = {
  name: 'nothing',
  namespaceSelector: { matchLabels: {}, matchExpressions: [] },
  permissions: undefined,
};

describe('the resources of a token server', () => {
  let namespaces: Map<string, Labels>;
  let policies: readonly Policy[];
  let served: ServedResources;

  beforeEach(() => {
    namespaces = new Map([
      ['team', {}],
      ['other', {}],
    ]);
    policies = [];
    served = new ServedResources({
      issuer: 'https://id.example',
      className: 'default',
      defaultPolicy: 'Baseline',
      reservedNamespace: 'grantry-system',
      policies: () => policies,
      namespaceLabels: (namespace) => namespaces.get(namespace),
    });
  });

  function change(type: 'put' | 'delete', name: string, spec: object = {}, metadata: object = {}) {
    const object = keptResource({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ProtectedResource',
      metadata: {
        name,
        namespace: 'team',
        uid: `uid-${name}`,
        generation: 1,
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...metadata,
      },
      spec,
    });
    served.changed({ type, key: objectKey(object.metadata), object });
  }
  const put = (...given: Parameters<typeof change> extends [unknown, ...infer Rest] ? Rest : never) =>
    change('put', ...given);
  /** What is served once everything has a verdict. */
  function now(): Resources {
    served.recompute();
    return served.publish();
  }
  function relabel(namespace: string, labels: Labels): void {
    namespaces.set(namespace, labels);
    served.relabelled(namespace);
  }

  it('given none → the registry has none', () => {
    expect(now()).toBe(Resources.NONE);
  });

  it('given a refused one → it is not served, and its generation is answered all the same', () => {
    put('notes', { scopes: [{ name: 'openid' }] }, { generation: 3 });
    put('tasks');
    expect([now().find('team', 'notes'), now().find('team', 'tasks')?.identifier]).toEqual([
      undefined,
      'urn:grantry:ns:team:tasks',
    ]);
    expect(served.servedState('uid-notes')).toEqual({ generation: 3 });
  });

  it('admitted and not published → neither served nor answered', () => {
    const before = now();
    put('notes');
    served.recompute();
    expect([served.isChanged, before.size, served.servedState('uid-notes')]).toEqual([false, 0, undefined]);
    expect(served.publish().size).toBe(1);
    expect(served.servedState('uid-notes')).toEqual({ generation: 1 });
  });

  it('given a change of one → the others are the same objects, and the namespace is answered', () => {
    put('notes');
    put('tasks', {}, { namespace: 'other' });
    const before = now();
    put('notes', { displayName: 'Notes' }, { generation: 2 });
    expect([...served.recompute()]).toEqual(['team']);
    const after = served.publish();
    expect(after.find('other', 'tasks')).toBe(before.find('other', 'tasks'));
    expect(after.find('team', 'notes')?.displayName.text).toBe('Notes');
  });

  it('given verdicts that stay as they are → the same resources', () => {
    put('notes', GOLD);
    const before = now();
    served.revalidate();
    relabel('other', { tier: 'silver' });
    relabel('team', { zone: 'a' });
    expect([...served.recompute()]).toEqual([]);
    expect(served.publish()).toBe(before);
  });

  describe('that is refused after it was accepted', () => {
    const NOTES = 'urn:grantry:ns:team:notes';
    const RESTRICTED = {
      scopes: [{ name: 'team/read' }],
      allowedClients: [{ namespaces: ['*'] }],
      tokens: { maxLifetime: '5m', senderConstraint: 'DPoP' },
    };
    const broken = { ...RESTRICTED, scopes: [...RESTRICTED.scopes, { name: 'openid' }] };
    const owned = () => now().ownerOf(NOTES);
    beforeEach(() => {
      put('notes', RESTRICTED);
      now();
    });

    it('→ restricts as before, grants nothing, keeps its owner, and its namespace is answered', () => {
      put('notes', broken, { generation: 2 });
      expect([...served.recompute()]).toEqual(['team']);
      const resources = served.publish();
      expect(resources.find('team', 'notes')).toBeUndefined();
      expect(resources.ownerOf(NOTES)).toMatchObject({
        maxLifetimeSeconds: 300,
        senderConstraint: 'DPoP',
        allowedClients: [],
      });
      expect(served.ownerOf(NOTES)).toBe('team');
      expect(served.servedState('uid-notes')).toEqual({ generation: 2 });
    });

    it('by a policy, the manifest as before → likewise, and granted again once the policy is gone', () => {
      policies = contextOf([policyDocument({ namespaceSelector: {}, allow: { scopes: [] } })]).policies;
      served.revalidate();
      expect([now().find('team', 'notes'), owned()?.senderConstraint]).toEqual([undefined, 'DPoP']);
      policies = [];
      served.revalidate();
      expect(now().find('team', 'notes')).toBe(owned());
      expect(owned()?.allowedClients).toHaveLength(1);
    });

    it('and mended → granted again', () => {
      put('notes', broken, { generation: 2 });
      now();
      put('notes', RESTRICTED, { generation: 3 });
      expect([...served.recompute()]).toEqual(['team']);
      expect(served.publish().find('team', 'notes')?.allowedClients).toHaveLength(1);
    });

    it('and deleted → its identifier is free', () => {
      put('notes', broken, { generation: 2 });
      now();
      change('delete', 'notes');
      expect([...served.recompute()]).toEqual(['team']);
      expect([served.publish().ownerOf(NOTES), served.ownerOf(NOTES)]).toEqual([undefined, undefined]);
    });

    it('and stays so through a change of another one → the same object', () => {
      put('notes', broken, { generation: 2 });
      const withheld = owned();
      put('tasks');
      expect(owned()).toBe(withheld);
    });
  });

  it('given policies that permit nothing any more → none is served, and the owner is gone', () => {
    put('notes');
    expect([now().size, served.ownerOf('urn:grantry:ns:team:notes/')]).toEqual([1, 'team']);
    policies = [NOTHING_PERMITTED];
    served.revalidate();
    expect([now().size, served.ownerOf('urn:grantry:ns:team:notes')]).toEqual([0, undefined]);
  });

  it('given one that is deleted → it is not served, and nothing is answered', () => {
    put('notes');
    put('tasks');
    now();
    change('delete', 'notes');
    expect([now().find('team', 'notes'), now().size]).toEqual([undefined, 1]);
    expect(served.servedState('uid-notes')).toBeUndefined();
  });

  describe('with a selector', () => {
    const isIn = (namespace: string) => {
      const selected = now().find('team', 'notes')?.allowedClients[0]?.namespaces;
      return selected !== undefined && selected !== 'all' && selected.has(namespace);
    };

    it('→ lets in the namespaces that have the labels', () => {
      namespaces.set('other', { tier: 'gold' });
      put('notes', GOLD);
      expect([isIn('other'), isIn('team'), isIn('unknown')]).toEqual([true, false, false]);
    });

    it('given a label that a namespace gets or loses → lets it in and shuts it out, and no resource is made again', () => {
      put('notes', GOLD);
      const before = now();
      expect(isIn('other')).toBe(false);
      relabel('other', { tier: 'gold' });
      expect(isIn('other')).toBe(true);
      relabel('other', {});
      expect(isIn('other')).toBe(false);
      expect(now()).toBe(before);
    });

    it('given a namespace that is new, and then deleted → let in while it is there', () => {
      put('notes', GOLD);
      expect(isIn('new')).toBe(false);
      relabel('new', { tier: 'gold' });
      expect(isIn('new')).toBe(true);
      namespaces.delete('new');
      expect(isIn('new')).toBe(false);
    });
  });
});
