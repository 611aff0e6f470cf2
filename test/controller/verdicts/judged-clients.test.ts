// What the controller makes of a client while it does not know everything about it yet.

import { beforeEach, describe, expect, it } from 'vitest';
import { JudgedClients, type OwnFacts } from '../../../src/controller/verdicts/judged-clients.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';

const FACTS: OwnFacts = {
  secret: () => 'withheld',
  verifiers: [],
  programmed: { status: 'Unknown', reason: 'Pending', message: '' },
};

/** Objects by name, which a test may add to. */
class View {
  readonly #objects = new Map<string, KubernetesObject>();

  get(key: string): KubernetesObject | undefined {
    return this.#objects.get(key);
  }

  objects(): Iterable<KubernetesObject> {
    return this.#objects.values();
  }

  add(object: KubernetesObject): void {
    this.#objects.set(object.metadata.name, object);
  }
}

function object(kind: string, name: string, { metadata, ...fields }: { metadata?: object; spec?: object } = {}) {
  const shared = { resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' };
  return {
    apiVersion: kind === 'Namespace' ? 'v1' : 'grantry.dev/v1alpha1',
    kind,
    ...fields,
    metadata: { name, uid: `${kind}-${name}`, ...shared, ...metadata },
  };
}

describe('a client', () => {
  let policies: View;
  let namespaces: View;
  let serviceAccounts: View;
  let clients: JudgedClients;

  beforeEach(() => {
    [policies, namespaces, serviceAccounts] = [new View(), new View(), new View()];
    clients = new JudgedClients({
      issuer: 'https://id.example',
      className: 'default',
      releaseNamespace: 'grantry',
      defaultPolicy: 'Baseline',
      ownerOf: () => undefined,
      supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
      policies,
      namespaces,
      serviceAccounts,
    });
  });

  const permitting = (namespaceSelector: object) =>
    object('ClientPolicy', 'tenants', {
      spec: { namespaceSelector, allow: { scopes: ['gold'], grantTypes: ['client_credentials'], clientIds: ['shop'] } },
    });
  const client = (namespace: string) =>
    object('OAuthClient', 'worker', {
      metadata: { namespace, uid: namespace },
      spec: { clientId: 'shop', grantTypes: ['client_credentials'], scopes: ['gold'] },
    });
  const verdict = (namespace: string) => {
    clients.settle();
    const { conditions, wantsSecret } = clients.verdict(`${namespace}/worker`, FACTS);
    const accepted = conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`)[0];
    return [accepted, wantsSecret];
  };

  it.each([
    ['DoesNotExist', {}],
    ['NotIn', { values: ['restricted'] }],
  ])('of a namespace that is not known yet is permitted nothing by %s', (operator, values) => {
    policies.add(permitting({ matchExpressions: [{ key: 'tier', operator, ...values }] }));
    clients.put(client('team'));
    expect(verdict('team')).toEqual(['Accepted=Unknown/Pending', false]);
    namespaces.add(object('Namespace', 'team', { metadata: { labels: { tier: 'restricted' } } }));
    clients.put(client('team'));
    expect(verdict('team')).toEqual(['Accepted=False/ClientIdNotPermitted', false]);
    namespaces.add(object('Namespace', 'team'));
    clients.put(client('team'));
    expect(verdict('team')).toEqual(['Accepted=True/Accepted', true]);
  });

  it('of a namespace that is not known yet keeps no id from others', () => {
    policies.add(permitting({}));
    namespaces.add(object('Namespace', 'younger'));
    clients.put(client('older'));
    clients.put(client('younger'));
    expect(verdict('younger')).toEqual(['Accepted=True/Accepted', true]);
    namespaces.add(object('Namespace', 'older'));
    clients.put(client('older'));
    expect([verdict('older')[0], verdict('younger')[0]]).toEqual([
      'Accepted=True/Accepted',
      'Accepted=False/ClientIdConflict',
    ]);
  });

  it('is found by the name of its namespace, whether or not a label repeats it', () => {
    policies.add(permitting({ matchLabels: { 'kubernetes.io/metadata.name': 'team' } }));
    namespaces.add(object('Namespace', 'team'));
    clients.put(client('team'));
    expect(verdict('team')).toEqual(['Accepted=True/Accepted', true]);
  });

  it('has a ServiceAccount until that is deleted or about to be', () => {
    const uid = () => clients.serviceAccountUid('team', 'worker');
    expect(uid()).toBeUndefined();
    serviceAccounts.add(object('ServiceAccount', 'team/worker', { metadata: { uid: 'one' } }));
    expect(uid()).toBe('one');
    const deletionTimestamp = '2026-01-02T00:00:00Z';
    serviceAccounts.add(object('ServiceAccount', 'team/worker', { metadata: { uid: 'one', deletionTimestamp } }));
    expect(uid()).toBeUndefined();
  });
});
