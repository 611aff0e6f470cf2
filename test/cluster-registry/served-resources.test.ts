import { beforeEach, describe, expect, it } from 'vitest';
import type { Policy } from '../../src/admission/policies/policy-violations.ts';
import { keptResource, ServedResources } from '../../src/cluster-registry/served-resources.ts';
import { objectKey } from '../../src/kubernetes/objects/resources.ts';
import { Resources } from '../../src/oauth/registry/resources.ts';

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
      namespaces: () => namespaces.keys(),
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
  /** What is served once everything is judged. */
  function now(): Resources {
    served.settle();
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

  it('judged and not published → neither served nor answered', () => {
    const before = now();
    put('notes');
    served.settle();
    expect([served.isChanged, before.size, served.servedState('uid-notes')]).toEqual([false, 0, undefined]);
    expect(served.publish().size).toBe(1);
    expect(served.servedState('uid-notes')).toEqual({ generation: 1 });
  });

  it('given a change of one → the others are the same objects, and the namespace is answered', () => {
    put('notes');
    put('tasks', {}, { namespace: 'other' });
    const before = now();
    put('notes', { displayName: 'Notes' }, { generation: 2 });
    expect([...served.settle()]).toEqual(['team']);
    const after = served.publish();
    expect(after.find('other', 'tasks')).toBe(before.find('other', 'tasks'));
    expect(after.find('team', 'notes')?.displayName.text).toBe('Notes');
  });

  it('given verdicts that stay as they are → the same resources', () => {
    put('notes', GOLD);
    const before = now();
    served.rejudge();
    relabel('other', { tier: 'silver' });
    relabel('team', { zone: 'a' });
    expect([...served.settle()]).toEqual([]);
    expect(served.publish()).toBe(before);
  });

  it('given policies that permit nothing any more → none is served, and the owner is gone', () => {
    put('notes');
    expect([now().size, served.ownerOf('urn:grantry:ns:team:notes/')]).toEqual([1, 'team']);
    policies = [NOTHING_PERMITTED];
    served.rejudge();
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
    const selected = () => now().find('team', 'notes')?.allowedClients[0]?.namespaces;

    it('→ lets in the namespaces that have the labels', () => {
      namespaces.set('other', { tier: 'gold' });
      put('notes', GOLD);
      expect(selected()).toEqual(new Set(['other']));
    });

    it('given a label that a namespace gets or loses → another resource, while the others stay', () => {
      put('notes', GOLD);
      put('tasks');
      const before = now();
      expect(selected()).toEqual(new Set());
      relabel('other', { tier: 'gold' });
      expect(selected()).toEqual(new Set(['other']));
      expect(now().find('team', 'tasks')).toBe(before.find('team', 'tasks'));
      relabel('other', {});
      expect(selected()).toEqual(new Set());
    });

    it('given a namespace that is new → it is let in', () => {
      put('notes', GOLD);
      expect(selected()).toEqual(new Set());
      relabel('new', { tier: 'gold' });
      expect(selected()).toEqual(new Set(['new']));
    });
  });
});
