// The queue of keys, on timers that the test moves.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StaleReadError } from '../../../src/controller/reconciling/stale-read.ts';
import { WorkQueue, type WorkQueueOptions } from '../../../src/controller/reconciling/work-queue.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { SECRETS } from '../../../src/kubernetes/objects/resources.ts';

const looks: { readonly key: string; readonly at: number }[] = [];
const results: string[] = [];
const errors: unknown[] = [];
let queue: WorkQueue;

function start(reconcile: WorkQueueOptions['reconcile'], options: Partial<WorkQueueOptions> = {}): WorkQueue {
  const begun = Date.now();
  queue = new WorkQueue({
    kind: 'OAuthClient',
    reconcile: (key) => {
      looks.push({ key, at: Date.now() - begun });
      return reconcile(key);
    },
    log: { error: (...line: unknown[]) => void errors.push(line[0]) },
    metrics: { reconciled: (kind, result) => results.push(`${kind} ${result}`) },
    ...options,
  });
  queue.start();
  return queue;
}

beforeEach(() => {
  vi.useFakeTimers();
  looks.length = results.length = errors.length = 0;
});
afterEach(async () => {
  await queue.stop();
  vi.useRealTimers();
});

const wait = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
const keys = () => looks.map(({ key }) => key);

/** A reconcile that ends on demand. */
function gate() {
  const open: (() => void)[] = [];
  const reconcile = () => new Promise<undefined>((resolve) => open.push(() => resolve(undefined)));
  return { reconcile, next: () => open.shift()?.() };
}

function refused(reason: string, status: number): KubernetesError {
  return new KubernetesError({ status, reason, verb: 'patch', resource: SECRETS, user: 'somebody' });
}

describe('a work queue', () => {
  it('reconciles a key once, however often it was added', async () => {
    start(async () => undefined);
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
    await wait(0);
    expect(keys()).toEqual(['a', 'b']);
    expect(results).toEqual(['OAuthClient done', 'OAuthClient done']);
    expect(queue.size).toBe(0);
  });

  it('lets the namespaces take turns, however many keys one of them has', async () => {
    start(async () => undefined, { workers: 1 });
    for (const key of ['flood/1', 'flood/2', 'flood/3', 'team/1', 'cluster-wide', 'team/2']) queue.add(key);
    await wait(0);
    expect(keys()).toEqual(['flood/1', 'team/1', 'cluster-wide', 'flood/2', 'team/2', 'flood/3']);
  });

  it('reconciles once more what was added during its reconcile, and never twice at a time', async () => {
    const { reconcile, next } = gate();
    start(reconcile);
    queue.add('a');
    await wait(0);
    queue.add('a');
    queue.add('a');
    await wait(0);
    expect([keys(), queue.size]).toEqual([['a'], 2]);
    next();
    await wait(0);
    expect([keys(), queue.size]).toEqual([['a', 'a'], 1]);
    next();
    await wait(0);
    expect([keys(), queue.size]).toEqual([['a', 'a'], 0]);
  });

  it('lets a reconcile add its own key', async () => {
    let left = 3;
    start(async (key) => {
      if (--left > 0) queue.add(key);
      return undefined;
    });
    queue.add('a');
    await wait(0);
    expect(keys()).toEqual(['a', 'a', 'a']);
  });

  it('reconciles so many keys at once, and no more', async () => {
    const { reconcile, next } = gate();
    start(reconcile, { workers: 2 });
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await wait(0);
    expect([keys(), queue.size]).toEqual([['a', 'b'], 3]);
    next();
    await wait(0);
    expect(keys()).toEqual(['a', 'b', 'c']);
    next();
    next();
  });

  it('gives one namespace so many workers at a time, and the others to its neighbours, in their order', async () => {
    const { reconcile, next } = gate();
    start(reconcile, { workers: 4, workersPerNamespace: 1 });
    for (const key of ['flood/1', 'flood/2', 'flood/3', 'team/1', 'team/2']) queue.add(key);
    await wait(0);
    expect(keys()).toEqual(['flood/1', 'team/1']);
    queue.add('neighbour/1');
    await wait(0);
    expect(keys()).toEqual(['flood/1', 'team/1', 'neighbour/1']);
    next();
    await wait(0);
    expect(keys().slice(3)).toEqual(['flood/2']);
    for (let left = 0; left < 5; left++) {
      next();
      await wait(0);
    }
    expect(keys().slice(4)).toEqual(['team/2', 'flood/3']);
  });

  it('tries again what failed, after 5 ms and double that each time, up to 5 minutes', async () => {
    start(async () => Promise.reject(new Error('no')));
    queue.add('a');
    await wait(3_600_000);
    const waits = looks.slice(1).map(({ at }, index) => at - (looks[index]?.at ?? 0));
    expect(waits.slice(0, 5)).toEqual([5, 10, 20, 40, 80]);
    expect(waits.slice(16, 19)).toEqual([300_000, 300_000, 300_000]);
    expect(errors[0]).toMatchObject({ kind: 'OAuthClient', key: 'a' });
    expect(results[0]).toBe('OAuthClient failed');
  });

  it.each([
    ['Conflict 409', refused('Conflict', 409)],
    ['Conflict 422', refused('Conflict', 422)],
    ['AlreadyExists 409', refused('AlreadyExists', 409)],
    ['a stale read', new StaleReadError('OAuthClient shop/web')],
  ])(
    'retries ever later, and logs nothing, while another writer keeps changing the object (%s)',
    async (_, conflict) => {
      start(async () => Promise.reject(conflict));
      queue.add('a');
      await wait(3_600_000);
      const waits = looks.slice(1).map(({ at }, index) => at - (looks[index]?.at ?? 0));
      expect(waits.slice(0, 5)).toEqual([50, 100, 200, 400, 800]);
      expect(Math.max(...waits)).toBe(300_000);
      expect([errors, new Set(results)]).toEqual([[], new Set(['OAuthClient done'])]);
    },
  );

  it('forgets failures after a success', async () => {
    let fails = 4;
    start(async () => (fails-- > 0 ? Promise.reject(new Error('no')) : undefined));
    queue.add('a');
    await wait(1000);
    fails = 1;
    queue.add('a');
    await wait(0);
    const failedAt = looks.at(-1)?.at ?? 0;
    await wait(1000);
    expect((looks.at(-1)?.at ?? 0) - failedAt).toBe(5);
  });

  it('does not let one that fails keep the others waiting', async () => {
    start(async (key) => (key === 'bad' ? Promise.reject(new Error('no')) : undefined), { workers: 1 });
    queue.add('bad');
    for (let index = 0; index < 5; index++) queue.add(`good-${index}`);
    await wait(0);
    expect(keys()).toHaveLength(6);
  });

  it('requeues a key when its reconcile asked for it, and earlier if something happens', async () => {
    start(async () => 60_000);
    queue.add('a');
    await wait(59_999);
    expect(looks).toHaveLength(1);
    await wait(1);
    expect(looks).toHaveLength(2);
    queue.add('a');
    await wait(0);
    expect(looks).toHaveLength(3);
  });

  it('keeps the earliest of several times', async () => {
    start(async () => undefined);
    queue.addAfter('a', 5000);
    queue.addAfter('a', 1000);
    queue.addAfter('a', 9000);
    await wait(20_000);
    expect(looks.map(({ at }) => at)).toEqual([1000]);
  });

  it('does not take a time beyond what timers know for now', async () => {
    start(async () => 90 * 24 * 3_600_000);
    queue.add('a');
    await wait(3_600_000);
    expect(looks).toHaveLength(1);
  });

  it('keeps what was added until it starts', async () => {
    const { reconcile, next } = gate();
    const idle = new WorkQueue({
      kind: 'OAuthClient',
      reconcile,
      log: { error: () => {} },
      metrics: { reconciled: () => {} },
    });
    idle.add('a');
    idle.add('b');
    await wait(0);
    expect(idle.size).toBe(2);
    queue = idle;
    queue.start();
    await wait(0);
    next();
    next();
    await wait(0);
    expect(idle.size).toBe(0);
  });

  it('has ended when it has stopped: nothing is being reconciled, and nothing comes', async () => {
    const { reconcile, next } = gate();
    start(reconcile, { workers: 1 });
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 1000);
    await wait(0);
    let stopped = false;
    const stopping = queue.stop().then(() => {
      stopped = true;
    });
    await wait(0);
    expect(stopped).toBe(false);
    next();
    await stopping;
    await wait(5000);
    expect(keys()).toEqual(['a']);
  });
});
