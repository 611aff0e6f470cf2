import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import {
  PolledReplicas,
  replicasBehind,
  type ServedState,
} from '../../../src/controller/replicas/observed-replicas.ts';
import { replicasAt, replicasIn } from '../../../src/controller/replicas/replicas.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { freePort } from '../../free-port.ts';
import { until } from '../../until.ts';
import { askable, startReplica } from './replica-servers.ts';

function askedAt(...urls: string[]): PolledReplicas {
  return new PolledReplicas(askable(() => replicasAt(urls)));
}

const serves = (uid: string, generation: number) => (state: ServedState) =>
  state.clients.get(uid)?.generation === generation;

/** A replica that serves these clients at these generations. */
function serving(clients: Record<string, number>, questions: unknown[] = []) {
  return startReplica((_, question) => {
    questions.push(question);
    const { uids } = question as { uids: string[] };
    const known = uids.filter((uid) => clients[uid] !== undefined);
    const answers = known.map((uid) => [uid, { generation: clients[uid], secretRevision: 4 }]);
    return { body: { clients: Object.fromEntries(answers), keyIds: ['k-1'], more: 'of a newer version' } };
  });
}

describe('what replicas serve', () => {
  it('is what each of them says', async () => {
    const [one, two] = [await serving({ a: 2 }), await serving({ a: 1 })];
    const observation = await askedAt(one, `${two}/`).observe(['a', 'b']);
    expect(observation.outcome).toBe('Observed');
    expect(replicasBehind(observation, serves('a', 2))).toEqual([two]);
    expect(replicasBehind(observation, ({ keyIds }) => keyIds.has('k-1'))).toEqual([]);
    expect(replicasBehind(observation, ({ clients }) => clients.get('a')?.secretRevision === 4)).toEqual([]);
    expect(replicasBehind(observation, serves('b', 1))).toEqual([one, two]);
  });

  it('is asked once for all who ask at the same time', async () => {
    const questions: unknown[] = [];
    const replicas = askedAt(await serving({ a: 1, b: 1 }, questions));
    const [first, second] = await Promise.all([replicas.observe(['a']), replicas.observe(['b'])]);
    expect(questions).toEqual([{ uids: ['a', 'b'] }]);
    expect(replicasBehind(first, serves('a', 1))).toEqual([]);
    expect(replicasBehind(second, serves('b', 1))).toEqual([]);
    await replicas.observe([]);
    expect(questions).toHaveLength(2);
  });

  it('is asked in portions that a replica takes', async () => {
    const questions: { uids: string[] }[] = [];
    const uids = Array.from({ length: 2500 }, (_, index) => `uid-${index}`);
    const replicas = askedAt(await serving(Object.fromEntries(uids.map((uid) => [uid, 1])), questions));
    const observation = await replicas.observe(uids);
    expect(questions.map((question) => question.uids.length)).toEqual([1000, 1000, 500]);
    expect(replicasBehind(observation, ({ clients }) => clients.size === 2500)).toEqual([]);
  });

  it.each([
    ['refuses the connection', async () => `http://127.0.0.1:${await freePort()}`],
    ['never answers', () => startReplica(() => undefined)],
    ['answers with an error', () => startReplica(() => ({ status: 503, body: {} }))],
    ['answers something else', () => startReplica(() => ({ body: { clients: [] } }))],
    ['answers no JSON', () => startReplica(() => ({ body: '<html>' }))],
    ['sends elsewhere', () => startReplica(() => ({ status: 302, body: {} }))],
  ])('is not known of one that %s: it counts as behind', async (_, start) => {
    const [good, bad] = [await serving({ a: 1 }), await start()];
    const observation = await askedAt(good, bad).observe(['a']);
    expect(replicasBehind(observation, serves('a', 1))).toEqual([bad]);
  });

  it('is waited for two seconds, and not known of one that takes longer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
      const limit = new AbortController();
      setTimeout(() => limit.abort(), milliseconds);
      return limit.signal;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const asked = Promise.withResolvers<void>();
    const url = await startReplica(() => {
      asked.resolve();
      return undefined;
    });
    const answer = askable(() => []).ask({ name: 'slow', url }, '/registry/observed', { uids: [] }, z.unknown());
    const isOver = vi.fn();
    void answer.then(isOver);
    await asked.promise;
    await vi.advanceTimersByTimeAsync(1999);
    await nextTurn();
    expect(isOver).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toBeUndefined();
  });

  it('is not waited for again and again of one that is silent, which counts once it answers', async () => {
    let isSilent = true;
    let asked = 0;
    const silent = await startReplica(() => {
      asked += 1;
      return isSilent ? undefined : { body: { clients: { a: { generation: 1 } }, keyIds: [] } };
    });
    const good = await serving({ a: 1 });
    const replicas = askedAt(good, silent);
    const behind = async () => replicasBehind(await replicas.observe(['a']), serves('a', 1));
    expect(await behind()).toEqual([silent]);
    for (let times = 0; times < 20; times++) expect(await behind()).toEqual([silent]);
    // The first question, and one at a time that no caller waits for.
    expect(asked).toBeLessThan(10);
    isSilent = false;
    await until('it counts', async () => (await behind()).length === 0);
  });

  it('delays no caller where there is none, or no addresses are configured', async () => {
    const none = await askedAt().observe(['a']);
    const unknown = await new PolledReplicas(askable(() => undefined)).observe(['a']);
    expect([none.outcome, unknown.outcome]).toEqual(['NoReplicas', 'NotObserved']);
    expect([none, unknown].flatMap((observation) => replicasBehind(observation, () => false))).toEqual([]);
  });
});

describe('the replicas of a Service', () => {
  function slice(fields: object): KubernetesObject {
    const metadata = { name: 'slice', namespace: 'grantry', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
    return { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, ...fields };
  }
  const ports = [
    { name: 'http', port: 9400 },
    { name: 'admin', port: 9401 },
  ];
  const pod = (address: string, ready?: boolean) => ({
    addresses: [address],
    conditions: ready === undefined ? {} : { ready },
    targetRef: { kind: 'Pod', name: `pod-${address}` },
  });

  it('are the ready endpoints of all its slices, at the port named admin', () => {
    const slices = [
      slice({ ports, endpoints: [pod('10.0.0.1', true), pod('10.0.0.2', false), pod('10.0.0.3')] }),
      slice({ ports, endpoints: [pod('fd00::1', true), pod('10.0.0.1', true)] }),
    ];
    expect(replicasIn(slices)).toEqual([
      { name: 'pod-10.0.0.1', url: 'http://10.0.0.1:9401' },
      { name: 'pod-10.0.0.3', url: 'http://10.0.0.3:9401' },
      { name: 'pod-fd00::1', url: 'http://[fd00::1]:9401' },
    ]);
  });

  it('are none where the slice has no such port, no endpoints, or cannot be read', () => {
    const slices = [
      slice({ ports: [{ name: 'http', port: 9400 }], endpoints: [pod('10.0.0.1')] }),
      slice({ ports, endpoints: null }),
      slice({ ports: null, endpoints: [pod('10.0.0.1')] }),
      slice({ ports, endpoints: 'none' }),
    ];
    expect(replicasIn(slices)).toEqual([]);
  });
});
