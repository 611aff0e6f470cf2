// A listener that fails, over objects that the test changes: in the end it knows what there is, however often it failed.

import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CONFIG_MAPS, type KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { ChangeDelivery } from '../../../src/kubernetes/watch/change-delivery.ts';
import type { ObjectChange } from '../../../src/kubernetes/watch/object-store.ts';
import { SharedReflector } from '../../../src/kubernetes/watch/shared-reflector.ts';
import { PlayedObjects } from '../played-objects.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Objects and a listener that stores each change in `known`, unless it fails. */
class World {
  readonly objects = new PlayedObjects(CONFIG_MAPS);
  readonly told: string[] = [];
  readonly known = new Map<string, KubernetesObject>();
  readonly errors: object[] = [];
  failures = 0;
  fails = false;
  /** Whether the listener ends it all at the next change. */
  ends = false;
  readonly #delivery = new ChangeDelivery({
    resource: 'configmaps',
    listener: (change) => this.#take(change),
    current: (key) => this.objects.get(key),
    onFailure: () => {
      this.failures += 1;
    },
    log: { error: (line: object) => void this.errors.push(line) },
  });

  constructor() {
    this.objects.listen((change) => this.#delivery.deliver(change));
  }

  put(name: string, uid: string): void {
    const before = this.objects.get(name);
    if (before !== undefined && before.metadata.uid !== uid) this.objects.delete(name);
    this.objects.put({ metadata: { name, uid } });
  }

  #take({ type, key, object, before, mayHaveSkippedStates }: ObjectChange): void {
    this.told.push(
      `${type} ${object.metadata.uid}${before === undefined ? '' : ' again'}${mayHaveSkippedStates ? ' after a gap' : ''}`,
    );
    if (this.ends) this.#delivery.stop();
    if (this.fails) throw new Error('no');
    if (type === 'delete') this.known.delete(key);
    else {
      // A put of another uid comes after the deletion; of the same one it says what was known.
      expect(before).toBe(this.known.get(key));
      this.known.set(key, object);
    }
  }
}

it('a failed change is delivered again in its latest state, after the deletion that failed too', async () => {
  const world = new World();
  world.put('a', 'first');
  world.fails = true;
  world.objects.delete('a');
  world.put('a', 'second');
  world.put('a', 'second');
  world.fails = false;
  world.told.length = 0;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(world.told).toEqual(['delete first', 'put second']);
  expect([...world.known.values()]).toEqual(world.objects.objects());
});

it('what could not be taken is logged with its kind and its key, each time', async () => {
  const world = new World();
  world.fails = true;
  world.put('a', 'first');
  await vi.advanceTimersByTimeAsync(500);
  const line = { resource: 'configmaps', key: 'a', err: new Error('no') };
  expect([world.errors, world.failures]).toEqual([[line, line], 2]);
});

it('a failed change is delivered again as one from a relist', async () => {
  const world = new World();
  world.put('a', 'first');
  world.fails = true;
  world.put('a', 'first');
  world.fails = false;
  world.told.length = 0;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(world.told).toEqual(['put first again after a gap']);
});

it('a listener that ends it during a change gets nothing more, not even the change that it threw at', async () => {
  const world = new World();
  world.fails = world.ends = true;
  world.put('a', 'first');
  world.put('b', 'first');
  expect([world.told, world.failures, vi.getTimerCount()]).toEqual([['put first'], 1, 0]);
});

it('a listener that ends it at a deletion does not get the changes after that', async () => {
  const world = new World();
  world.put('a', 'first');
  world.fails = true;
  world.objects.delete('a');
  world.put('a', 'second');
  world.fails = false;
  world.ends = true;
  world.told.length = 0;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([world.told, vi.getTimerCount()]).toEqual([['delete first'], 0]);
});

it('a change that always fails is retried ever less often', async () => {
  const world = new World();
  world.fails = true;
  world.put('a', 'a');
  await vi.advanceTimersByTimeAsync(15_000);
  expect(world.failures).toBe(5);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(world.failures).toBeLessThan(25);
  const before = world.failures;
  await vi.advanceTimersByTimeAsync(300_000);
  expect(world.failures).toBe(before + 1);
});

it('after any changes and failures a listener that fails no more knows what there is', async () => {
  const name = fc.constantFrom('a', 'b');
  const step = fc.oneof(
    fc.record({ do: fc.constant('put' as const), name, uid: fc.constantFrom('1', '2') }),
    fc.record({ do: fc.constant('delete' as const), name }),
    fc.record({ do: fc.constantFrom('fail' as const, 'heal' as const, 'wait' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const world = new World();
      for (const each of steps) {
        if (each.do === 'put') world.put(each.name, `${each.name}-${each.uid}`);
        else if (each.do === 'delete') world.objects.delete(each.name);
        else if (each.do === 'wait') await vi.advanceTimersByTimeAsync(1000);
        else world.fails = each.do === 'fail';
      }
      world.fails = false;
      await vi.advanceTimersByTimeAsync(600_000);
      expect([...world.known.values()].sort(byUid)).toEqual([...world.objects.objects()].sort(byUid));
    }),
  );
});

function byUid({ metadata: one }: KubernetesObject, { metadata: other }: KubernetesObject): number {
  return one.uid < other.uid ? -1 : 1;
}

it('of several listeners one that fails keeps nothing from the others, and it alone gets the retry', async () => {
  const items = ['a', 'b'].map((name) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  }));
  const refused: string[] = [];
  const watched = new SharedReflector({
    api: {
      list: async () => ({ items, resourceVersion: '1', continue: undefined, bytes: 0 }),
      watch: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('ended')))),
    },
    resource: CONFIG_MAPS,
    clock: { now: Date.now },
    random: { bytes: (count) => new Uint8Array(count) },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: (resource) => refused.push(resource) },
  });
  const [failing, sound]: [string[], string[]] = [[], []];
  watched.listen(({ key }) => {
    failing.push(key);
    if (failing.length === 1) throw new Error('no');
  });
  const end = watched.listen(() => {
    throw new Error('never');
  });
  watched.listen(({ key }) => sound.push(key));
  watched.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(watched.synced).toBe(true);
  end();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([failing, sound]).toEqual([
    ['a', 'b', 'a'],
    ['a', 'b'],
  ]);
  expect(refused).toEqual(['configmaps', 'configmaps', 'configmaps']);
  await watched.stop();
});
