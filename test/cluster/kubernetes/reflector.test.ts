// The reflector against a real API server, through a proxy that makes the way there as bad as it gets.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import type { WatchFrame } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import type { ObjectChange } from '../../../src/kubernetes/watch/object-store.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kubernetes/watch/reflector.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { FaultProxy, listOf, watchOf } from '../setup/fault-proxy.ts';
import { ASKS_AGAIN } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

/** A reflector of the ConfigMaps of a namespace, and the changes that it reported. */
class Follower {
  readonly changes: ObjectChange[] = [];
  readonly restarts: string[] = [];
  readonly frames: string[] = [];
  readonly client: ApiClient;
  readonly reflector: Reflector;

  constructor(kubeconfig: string, options: Partial<ReflectorOptions> = {}) {
    const access = kubeconfigAccess({ files: [kubeconfig], clock: systemClock });
    this.client = new ApiClient({ access, userAgent: 'grantry/test' });
    this.reflector = new Reflector({
      api: this.client,
      resource: CONFIG_MAPS,
      clock: systemClock,
      random: systemRandom,
      onChange: (change) => void this.changes.push(change),
      log: { info: () => {}, warn: () => {}, error: () => {} },
      metrics: {
        watchEvent: (_, type) => this.frames.push(type),
        watchRestarted: (_, reason) => this.restarts.push(reason),
        changeRefused: () => {},
      },
      ...options,
    });
  }

  /** `name=value` of what it knows. */
  get state(): readonly string[] {
    return [...this.reflector.objects()]
      .map(({ metadata, data }) => `${metadata.name}=${(data as { value?: string } | undefined)?.value}`)
      .sort();
  }

  async stop(): Promise<void> {
    await this.reflector.stop();
    this.client.close();
  }
}

describe('a reflector of a real API server', () => {
  const cluster = sharedCluster();
  const isWatch = watchOf('configmaps');
  let namespace: string;
  let proxy: FaultProxy;
  let follower: Follower;

  beforeEach(async () => {
    namespace = await cluster.namespace();
    proxy = await FaultProxy.start(cluster.address);
    follower = await inNamespace();
  });
  afterEach(async () => {
    await follower.stop();
    await proxy.stop();
  });

  /** With the rights of a ServiceAccount of its own. */
  async function inNamespace(options: Partial<ReflectorOptions> = {}): Promise<Follower> {
    const token = await cluster.token({ namespace, name: 'follower' });
    await cluster.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { namespace, name: 'follower' },
        rules: [{ apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['list', 'watch'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { namespace, name: 'follower' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'follower' },
        subjects: [{ kind: 'ServiceAccount', namespace, name: 'follower' }],
      },
    );
    return new Follower(cluster.kubeconfig({ token, url: proxy.url }), { namespace, ...options });
  }

  const put = async (name: string, value: string) => {
    await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data: { value } });
  };
  const remove = async (name: string) => {
    await cluster.call('DELETE', `/api/v1/namespaces/${namespace}/configmaps/${name}`);
  };
  async function synced(): Promise<void> {
    follower.reflector.start();
    await follower.reflector.whenSynced();
    await until('it watches', () => proxy.count(isWatch) > 0);
  }
  async function agreed({ limit, meanwhile }: { limit?: number; meanwhile?: () => Promise<unknown> } = {}) {
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/configmaps`);
    const there = body.items.map((item: { metadata: { name: string }; data: { value: string } }) => {
      return `${item.metadata.name}=${item.data.value}`;
    });
    const same = async () => {
      await meanwhile?.();
      return JSON.stringify(follower.state) === JSON.stringify(there.sort());
    };
    await until(`the store is ${there}`, same, limit);
  }

  it('knows what is there and follows what changes', async () => {
    await put('a', '1');
    await put('b', '1');
    await synced();
    await put('a', '2');
    await remove('b');
    await put('c', '1');
    await agreed();
    expect(follower.changes.map(({ type, key }) => `${type} ${key.split('/')[1]}`)).toEqual([
      ...['put a', 'put b', 'put a', 'delete b', 'put c'],
    ]);
    expect(follower.reflector.get(`${namespace}/a`)?.metadata).not.toHaveProperty('managedFields');
  });

  it('follows metadata, and sees no Secret', async () => {
    await follower.stop();
    follower = await inNamespace({ resource: SECRETS, metadataOnly: true });
    const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name } });
    await cluster.apply({ ...secret('a'), stringData: { password: 'hidden' } });
    follower.reflector.start();
    await follower.reflector.whenSynced();
    await cluster.apply({ ...secret('b'), stringData: { password: 'hidden' } });
    await until('both are there', () => follower.changes.length === 2);
    for (const { object } of follower.changes) {
      expect(Object.keys(object).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
      expect(object.kind).toBe('Secret');
    }
  });

  it('gets bookmarks, and goes on from one', async () => {
    await put('a', '1');
    const { resourceVersion } = await follower.client.list(CONFIG_MAPS, { namespace });
    const signal = new AbortController().signal;
    const frames: WatchFrame[] = [];
    const watch = await follower.client.watch(CONFIG_MAPS, { namespace, resourceVersion, timeoutSeconds: 5, signal });
    await put('a', '2');
    for await (const frame of watch) frames.push(frame);
    expect(frames.map(({ type }) => type)).toEqual(expect.arrayContaining(['MODIFIED', 'BOOKMARK']));
  });

  it.each<[string, () => void, string]>([
    ['is cut', () => proxy.cut(isWatch), 'disconnected'],
    [
      'answers 410',
      () => {
        proxy.answer(isWatch, { status: 410, reason: 'Expired', times: 1 });
        proxy.cut(isWatch);
      },
      'expired',
    ],
    [
      'answers 500',
      () => {
        proxy.answer(isWatch, { status: 500, reason: 'InternalError', times: 1 });
        proxy.cut(isWatch);
      },
      'refused',
    ],
    ['says something else', () => proxy.write(isWatch, '{"type":\n'), 'undecodable'],
    [
      'says that its version is gone',
      () => {
        proxy.write(isWatch, '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n');
      },
      'expired',
    ],
  ])('misses nothing when its watch %s', async (_, fault, reason) => {
    await put('a', '1');
    await put('b', '1');
    await synced();
    // The list is there before the watch is: a fault now would meet no watch.
    await until('the watch is open', () => proxy.answering(isWatch) === 1);
    fault();
    await remove('a');
    await put('b', '2');
    await put('c', '1');
    await agreed();
    expect(follower.restarts).toContain(reason);
  });

  it('misses nothing of a list that breaks in the middle', async () => {
    for (const name of ['a', 'b', 'c']) await put(name, '1');
    proxy.answer(listOf('configmaps'), { status: 500, reason: 'InternalError', times: 2 });
    await synced();
    await agreed();
    expect(follower.restarts).toEqual(['refused', 'refused']);
  });

  it('says whose right is missing, and is ready when it is given', async () => {
    const token = await cluster.token({ namespace, name: 'no-rights' });
    await follower.stop();
    follower = new Follower(cluster.kubeconfig({ token, url: proxy.url }), { namespace });
    follower.reflector.start();
    await until('it is reported', () => follower.reflector.fault !== undefined);
    expect(follower.reflector.fault).toContain(
      `list configmaps in namespace ${namespace} as system:serviceaccount:${namespace}:no-rights: 403 Forbidden`,
    );
    expect(follower.reflector.synced).toBe(false);
    await cluster.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { namespace, name: 'no-rights' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'follower' },
      subjects: [{ kind: 'ServiceAccount', namespace, name: 'no-rights' }],
    });
    await until('it is ready', () => follower.reflector.synced, ASKS_AGAIN);
    await until('nothing is wrong any more', () => follower.reflector.fault === undefined);
  });

  it('finds a watch that fell silent within its deadline, and then has what it missed', async () => {
    await put('a', '1');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await synced();
      await put('b', '1');
      // It is followed by the watch that is to fall silent, and not only asked for.
      await until('it follows', () => follower.state.includes('b=1'));
      proxy.stall(isWatch);
      await put('a', '2');
      // The longest time it asks for, and 15 s.
      await vi.advanceTimersByTimeAsync((480 + 15) * 1000);
      expect(follower.restarts[0]).toBe('deadline');
      expect(follower.state).toEqual(['a=1', 'b=1']);
      proxy.clear();
      // Its timers are those of the test for as long as it is waited for: what it began to wait for by them would never come
      // by others. And it is given time to be answered before a time limit is over.
      await agreed({ meanwhile: () => vi.advanceTimersByTimeAsync(100) });
    } finally {
      vi.useRealTimers();
    }
  });

  it('agrees with the API server after many faults in any order', async () => {
    await synced();
    const faults = [
      () => proxy.cut(isWatch),
      () => proxy.write(isWatch, 'null\n'),
      () => proxy.refuse(),
      () => proxy.answer(isWatch, { status: 410, reason: 'Expired', times: 1 }),
      () => proxy.answer(isWatch, { status: 503, reason: 'ServiceUnavailable', times: 2 }),
      () => proxy.answer(listOf('configmaps'), { status: 500, reason: 'InternalError', times: 1 }),
      () => proxy.delay(isWatch, 30),
    ];
    for (let round = 0; round < 60; round++) {
      const name = `object-${Math.floor(Math.random() * 8)}`;
      if (Math.random() < 0.3) await remove(name);
      else await put(name, String(round));
      if (Math.random() < 0.5) faults[Math.floor(Math.random() * faults.length)]?.();
      if (Math.random() < 0.2) proxy.clear();
    }
    proxy.clear();
    await agreed({ limit: ASKS_AGAIN });
    expect(follower.restarts.length).toBeGreaterThan(0);
  });
});

describe('a reflector of an API server that dies', () => {
  it('keeps what it knows, and follows again when it recovers', async () => {
    const server = await ApiServer.start(sharedCluster().address.assets);
    const own = new Cluster(server.address);
    const namespace = await own.namespace();
    const follower = new Follower(own.adminKubeconfig, { namespace });
    const put = (value: string) =>
      own.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'a' }, data: { value } });
    try {
      const { resourceVersion } = await follower.client.list(CONFIG_MAPS, { namespace });
      const from = { resourceVersion, timeoutSeconds: 5, signal: new AbortController().signal };
      await put('0');
      await put('1');
      follower.reflector.start();
      await until('it knows', () => follower.state.join() === 'a=1');
      await server.kill();
      await until('it is noticed', () => follower.reflector.fault !== undefined);
      expect([follower.reflector.synced, follower.state]).toEqual([true, ['a=1']]);
      await server.start();
      await put('2');
      // What it knew before it died, it does not go on from.
      const frames = async () => {
        for await (const frame of await follower.client.watch(CONFIG_MAPS, { namespace, ...from })) {
          if (frame.type === 'ERROR') throw frame.error;
        }
      };
      await expect(frames()).rejects.toMatchObject({ status: 410, verb: 'watch' });
      await until('it follows', () => follower.state.join() === 'a=2', ASKS_AGAIN);
      await until('nothing is wrong any more', () => follower.reflector.fault === undefined, ASKS_AGAIN);
    } finally {
      await follower.stop();
      await server.stop();
    }
  });
});
