// Events on a real API server: that it takes what the recorder writes, also the count of what repeats, and that
// `kubectl describe` and `kubectl events` show it.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { EventRecorder } from '../../../src/controller/reconciling/events.ts';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import { CONFIG_MAPS, EVENTS, resourcePath } from '../../../src/kubernetes/objects/resources.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { leaderOver, UNPLAYED } from '../../controller/leader.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('events on a real API server', () => {
  const cluster = sharedCluster();

  it('are written with the right to create and patch, counted, and shown by kubectl', async () => {
    const namespace = await cluster.namespace();
    const metadata = { namespace, name: 'recorder' };
    const token = await cluster.token(metadata);
    await cluster.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata,
        rules: [
          { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
          { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
        ],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'recorder' },
        subjects: [{ kind: 'ServiceAccount', ...metadata }],
      },
    );
    const access = kubeconfigAccess({ files: [cluster.kubeconfig({ token })], clock: systemClock });
    const api = new ApiClient({ access, userAgent: 'grantry/test' });
    const faults: unknown[] = [];
    const log = { debug: (...line: unknown[]) => void faults.push(line[0]) };
    let answered = 0;
    const apply: typeof api.apply = async (...object) => {
      const answer = await api.apply(...object);
      answered += 1;
      return answer;
    };
    const leader = leaderOver({ ...UNPLAYED, apply });
    const recorder = new EventRecorder({ api: leader, instance: 'grantry-0', clock: systemClock, log });
    // The authorizer learns of a RoleBinding by a watch of its own.
    const create = (name: string) => api.create(CONFIG_MAPS, { metadata: { namespace, name } });
    await until('the right is there', () =>
      create('probe').then(
        () => true,
        () => false,
      ),
    );
    const regarding = await create('web');
    const events = async () => (await cluster.call('GET', resourcePath(EVENTS, { namespace }))).body.items;

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const facts = { regarding, type: 'Warning', reason: 'SecretNotOwned', action: 'CreateSecret' } as const;
    for (let index = 0; index < 3; index++) recorder.record({ ...facts, note: 'It belongs to another owner.' });
    recorder.record({ ...facts, type: 'Normal', note: 'ü'.repeat(2000) });
    // What is not answered yet would be given up in the minute that passes.
    await until('both are answered', () => answered === 2);
    expect(await events()).toHaveLength(2);
    vi.advanceTimersByTime(60_000);
    vi.useRealTimers();
    const counted = async () => (await events()).find((event: { series?: unknown }) => event.series !== undefined);
    await until('they are counted', async () => (await counted()) !== undefined);
    expect(await counted()).toMatchObject({ reason: 'SecretNotOwned', series: { count: 3 } });
    expect(faults).toEqual([]);

    const { output } = await cluster.kubectl(['describe', 'configmap', 'web', '-n', namespace]);
    expect(output).toMatch(/Warning +SecretNotOwned .* It belongs to another owner\./);
    recorder.stop();
    api.close();
  });
});
