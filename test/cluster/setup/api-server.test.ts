// The API server that the other suites stand on: that it authenticates, authorizes and admits as one in production does.

import { describe, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ApiServer } from './api-server.ts';
import { Cluster } from './cluster.ts';
import { sharedCluster } from './shared-cluster.ts';

describe('the API server of tests', () => {
  const cluster = sharedCluster();

  it('gives a ServiceAccount what a RoleBinding says, and nothing else', async () => {
    const namespace = await cluster.namespace();
    const token = await cluster.token({ namespace, name: 'reader' });
    const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
    expect((await cluster.call('GET', configMaps, { token })).status).toBe(403);
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { namespace, name: 'reader' } };
    await cluster.apply(
      { ...rbac, kind: 'Role', rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }] },
      {
        ...rbac,
        kind: 'RoleBinding',
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'ServiceAccount', namespace, name: 'reader' }],
      },
    );
    // The authorizer learns of a RoleBinding by a watch of its own.
    await until('the right is there', async () => (await cluster.call('GET', configMaps, { token })).status === 200);
    expect((await cluster.call('GET', `/api/v1/namespaces/${namespace}/secrets`, { token })).status).toBe(403);
  });

  it('accepts no token it did not make', async () => {
    const { status } = await cluster.call('GET', '/api/v1/namespaces', { token: 'made up' });
    expect(status).toBe(401);
  });

  it('takes kubectl as the holder of a kubeconfig', async () => {
    const namespace = await cluster.namespace();
    const kubeconfig = cluster.kubeconfig({ token: await cluster.token({ namespace, name: 'somebody' }) });
    const { output } = await cluster.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'], {
      kubeconfig,
    });
    expect(output).toBe(`system:serviceaccount:${namespace}:somebody`);
  });

  it('creates nothing in a namespace that is being deleted', async () => {
    const namespace = await cluster.namespace();
    await cluster.call('DELETE', `/api/v1/namespaces/${namespace}`);
    const { status, body } = await cluster.call('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } },
    });
    expect([status, body.details.causes[0].reason]).toEqual([403, 'NamespaceTerminating']);
  });

  it('comes back with what it knew after it was killed', async () => {
    const server = await ApiServer.start(cluster.address.assets);
    try {
      const own = new Cluster(server.address);
      const namespace = await own.namespace();
      await server.kill();
      await expect(own.call('GET', '/readyz')).rejects.toThrow();
      await server.start();
      expect((await own.call('GET', `/api/v1/namespaces/${namespace}`)).status).toBe(200);
    } finally {
      await server.stop();
    }
  });
});
