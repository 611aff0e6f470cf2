import { describe, expect, it } from 'vitest';
import { untilLastUsedReport } from '../../../src/controller/clients/last-used.ts';
import { OwnWrites } from '../../../src/controller/reconciling/own-writes.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';

const KEY = 'n/x';

function version(resourceVersion: string, uid = 'u'): KubernetesObject {
  const metadata = { name: 'x', namespace: 'n', uid, resourceVersion, creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Secret', metadata };
}

function world(first?: string) {
  const watched: { now: KubernetesObject | undefined } = { now: first === undefined ? undefined : version(first) };
  const own = new OwnWrites({ get: () => watched.now, objects: () => [] });
  /** Writes; the watch may deliver something between the write and its answer. */
  const write = (object: KubernetesObject | undefined, meanwhile = () => {}) =>
    own.write(KEY, async () => {
      meanwhile();
      return object;
    });
  /** The watch delivers the deletion of what there was. */
  const go = () => {
    const { uid = '' } = watched.now?.metadata ?? {};
    watched.now = undefined;
    own.gone(KEY, uid);
  };
  return { watched, own, write, go, seen: () => own.get(KEY)?.metadata.resourceVersion };
}

describe('own writes', () => {
  it('are seen before the watch delivers them, each of several', async () => {
    const { watched, write, seen } = world('1');
    await write(version('2'));
    await write(version('3'));
    expect(seen()).toBe('3');
    watched.now = version('2');
    expect(seen()).toBe('3');
    watched.now = version('3');
    expect(seen()).toBe('3');
    watched.now = version('1');
    expect(seen()).toBe('1');
  });

  it('give way to what others wrote after them', async () => {
    const { watched, write, seen } = world('1');
    await write(version('2'));
    watched.now = version('9');
    expect(seen()).toBe('9');
  });

  it('give way to what others wrote after them also where the watch delivers that before the answer comes', async () => {
    const { watched, write, seen } = world('1');
    await write(version('2'), () => {
      watched.now = version('9');
    });
    expect(seen()).toBe('9');
  });

  it('that deleted what they had made twice are not undone when the watch delivers the deletion of the first one', async () => {
    const { watched, write, go, seen } = world();
    for (const object of [version('1', 'first'), version('2', 'second')]) {
      await write(object);
      await write(undefined);
    }
    watched.now = version('1', 'first');
    expect(seen()).toBeUndefined();
    go();
    watched.now = version('2', 'second');
    expect(seen()).toBeUndefined();
    go();
    watched.now = version('3', 'third');
    expect(seen()).toBe('3');
  });

  it('that changed nothing are nothing', async () => {
    const { watched, write, seen } = world('1');
    await write(version('1'));
    watched.now = version('2');
    expect(seen()).toBe('2');
  });

  it('that failed are nothing', async () => {
    const { watched, own, write, seen } = world('1');
    await write(version('2'));
    await expect(own.write(KEY, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    expect(seen()).toBe('2');
    watched.now = version('3');
    expect(seen()).toBe('3');
  });

  it('make and remove', async () => {
    const { watched, write, go, seen } = world();
    await write(version('1'));
    expect(seen()).toBe('1');
    watched.now = version('1');
    await write(undefined);
    expect(seen()).toBeUndefined();
    go();
    expect(seen()).toBeUndefined();
    watched.now = version('5');
    expect(seen()).toBe('5');
  });

  it('that make something are over when the watch delivers its deletion, before the answer comes or after', async () => {
    const { watched, write, go, seen } = world();
    await write(version('1'), () => {
      watched.now = version('1');
      go();
    });
    expect(seen()).toBeUndefined();
    await write(version('2'));
    watched.now = version('2');
    go();
    expect(seen()).toBeUndefined();
  });

  it('that remove something hide nothing that was made in its place before the answer came', async () => {
    const { watched, write, go, seen } = world('1');
    await write(undefined, () => {
      go();
      watched.now = version('5', 'another');
    });
    expect(seen()).toBe('5');
  });

  it('that remove what the watch has not delivered yet are not undone when it does', async () => {
    const { watched, write, go, seen } = world();
    await write(version('1'));
    await write(undefined);
    expect(seen()).toBeUndefined();
    watched.now = version('1');
    expect(seen()).toBeUndefined();
    go();
    expect(seen()).toBeUndefined();
  });

  it('that recreate something stay when the watch delivers the deletion of what was before', async () => {
    const { write, go, seen } = world('1');
    await write(undefined);
    await write(version('5', 'another'));
    go();
    expect(seen()).toBe('5');
  });
});

describe('the day of the last use', () => {
  it('is reported at a time of day of each client, spread over the day', () => {
    const midnight = Date.parse('2026-03-01T00:00:00Z');
    const times = Array.from({ length: 240 }, (_, index) => untilLastUsedReport(`uid-${index}`, midnight));
    const hours = new Set(times.map((time) => Math.floor(time / 3_600_000)));
    expect(hours.size).toBe(24);
    const [first = 0] = times;
    expect(untilLastUsedReport('uid-0', midnight + first - 1)).toBe(1);
    expect(untilLastUsedReport('uid-0', midnight + first)).toBe(0);
    expect(untilLastUsedReport('uid-0', midnight + 86_400_000)).toBe(first);
  });
});
