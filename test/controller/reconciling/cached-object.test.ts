// What the controller caches of the objects of tenants: all that it reads of them, and nothing that grows with them.

import { describe, expect, it } from 'vitest';
import { withoutForeignLabels } from '../../../src/controller/client-secrets/owner-secrets.ts';
import { cachedClient, cachedIdentity, ofClass } from '../../../src/controller/reconciling/cached-object.ts';
import { rotationRequests } from '../../../src/controller/reconciling/rotation-requests.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { admitOne } from '../../admission/world.ts';

const LONG = 'x'.repeat(100_000);
const identity = {
  name: 'app',
  namespace: 'team',
  uid: 'uid-1',
  resourceVersion: '42',
  generation: 3,
  creationTimestamp: '2026-01-01T00:00:00Z',
};

/** An object with as much of everything as a tenant may write into its metadata. */
function large(kind: string, metadata: object, fields: object = {}): KubernetesObject {
  const many = Array.from({ length: 1000 }, (_, index) => [`grantry.dev/label-${index}`, 'value']);
  const ballast = {
    annotations: { note: LONG, 'grantry.dev/note': LONG },
    labels: Object.fromEntries(many),
    finalizers: [LONG],
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: LONG, uid: '1' }],
    managedFields: [{ manager: LONG }],
  };
  const whole = { ...identity, ...ballast, ...metadata };
  return { apiVersion: 'v1', kind, ...fields, metadata: whole, unknown: LONG } as unknown as KubernetesObject;
}

describe('the cached form of an OAuthClient', () => {
  const spec = { grantTypes: ['client_credentials'], scopes: ['team/read'] };
  const client = (fields: object, metadata: object = {}) =>
    large('OAuthClient', metadata, { apiVersion: 'grantry.dev/v1alpha1', spec, ...fields });

  it('large metadata and unknown fields → identity, spec and status alone', () => {
    const status = { clientId: 'team.app' };
    const { metadata, ...fields } = cachedClient(client({ status }));
    expect(metadata).toEqual(identity);
    expect(fields).toEqual({ apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', spec, status });
    const deletionTimestamp = '2026-01-02T00:00:00Z';
    expect(cachedClient(client({}, { deletionTimestamp })).metadata).toEqual({ ...identity, deletionTimestamp });
  });

  it.each(['2026-01-01', LONG])('a requested rotation → the same request', (value) => {
    const annotations = { 'grantry.dev/rotate-requested-at': value, 'grantry.dev/rotate-now': `${value}!`, note: LONG };
    const object = client({}, { annotations });
    const cached = cachedClient(object);
    expect(rotationRequests(cached)).toEqual(rotationRequests(object));
    expect(JSON.stringify(cached.metadata).length).toBeLessThan(1000);
  });

  it('an oversized spec → not kept, with the same verdict', () => {
    const object = client({ spec: { ...spec, className: 'team', redirectUris: [LONG] } });
    const cached = cachedClient(object);
    expect(JSON.stringify(cached).length).toBeLessThan(1000);
    const faultsOf = (each: KubernetesObject) => admitOne([each], { unknownFields: 'ignore' }).faults;
    expect(faultsOf(cached)).toEqual(faultsOf(object));
    expect(faultsOf(cached)).toEqual([expect.objectContaining({ reason: 'InvalidManifest', path: ['spec'] })]);
    expect(ofClass(cached, 'team', cachedClient).spec).toEqual(cached.spec);
  });

  it('another class → identity and class alone', () => {
    const cached = ofClass(client({ spec: { ...spec, className: 'other' }, status: {} }), 'default', cachedClient);
    expect(cached.spec).toEqual({ className: 'other' });
    expect(cached).not.toHaveProperty('status');
    expect(JSON.stringify(cached).length).toBeLessThan(1000);
  });
});

it('the cached form of a Secret with large metadata → identity and the two labels of its client', () => {
  const own = { 'grantry.dev/client': 'app', 'grantry.dev/client-uid': 'uid-2' };
  const labels = { ...large('Secret', {}).metadata.labels, ...own };
  const { generation: _, ...shared } = identity;
  expect(withoutForeignLabels(large('Secret', { labels })).metadata).toEqual({ ...shared, labels: own });
});

describe('the cached form of a ConfigMap or ServiceAccount', () => {
  it('large metadata → which object it is, and whether it is being deleted', () => {
    const { generation: _, ...kept } = identity;
    const deletionTimestamp = '2026-01-02T00:00:00Z';
    expect(cachedIdentity(large('ConfigMap', {})).metadata).toEqual(kept);
    expect(cachedIdentity(large('ServiceAccount', { deletionTimestamp }))).toEqual({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { ...kept, deletionTimestamp },
    });
  });
});
