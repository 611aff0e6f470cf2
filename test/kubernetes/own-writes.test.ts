import { describe, expect, it } from 'vitest';
import { untilTold } from '../../src/kubernetes/last-used.ts';
import { OwnWrites } from '../../src/kubernetes/own-writes.ts';
import type { KubernetesObject } from '../../src/kubernetes/resources.ts';

function version(resourceVersion: string): KubernetesObject {
  const metadata = { name: 'x', namespace: 'n', uid: 'u', resourceVersion, creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Secret', metadata };
}

function world(first?: string) {
  const watched: { now: KubernetesObject | undefined } = { now: first === undefined ? undefined : version(first) };
  const own = new OwnWrites({ get: () => watched.now, objects: () => [] });
  return { watched, own, seen: () => own.get('n/x')?.metadata.resourceVersion };
}

describe('own writes', () => {
  it('are seen before the watch tells of them, each of several', () => {
    const { watched, own, seen } = world('1');
    own.wrote('n/x', version('2'));
    own.wrote('n/x', version('3'));
    expect(seen()).toBe('3');
    watched.now = version('2');
    expect(seen()).toBe('3');
    watched.now = version('3');
    expect(seen()).toBe('3');
    watched.now = version('1');
    expect(seen()).toBe('1');
  });

  it('give way to what others wrote after them', () => {
    const { watched, own, seen } = world('1');
    own.wrote('n/x', version('2'));
    watched.now = version('9');
    expect(seen()).toBe('9');
  });

  it('that changed nothing are nothing', () => {
    const { watched, own, seen } = world('1');
    own.wrote('n/x', version('1'));
    watched.now = version('2');
    expect(seen()).toBe('2');
  });

  it('make and remove', () => {
    const { watched, own, seen } = world();
    own.wrote('n/x', version('1'));
    expect(seen()).toBe('1');
    watched.now = version('1');
    own.wrote('n/x', undefined);
    expect(seen()).toBeUndefined();
    watched.now = undefined;
    own.gone('n/x');
    expect(seen()).toBeUndefined();
    watched.now = version('5');
    expect(seen()).toBe('5');
  });
});

describe('the day of the last use', () => {
  it('is told at a time of day of each client, spread over the day', () => {
    const midnight = Date.parse('2026-03-01T00:00:00Z');
    const times = Array.from({ length: 240 }, (_, index) => untilTold(`uid-${index}`, midnight));
    const hours = new Set(times.map((time) => Math.floor(time / 3_600_000)));
    expect(hours.size).toBe(24);
    const [first = 0] = times;
    expect(untilTold('uid-0', midnight + first - 1)).toBe(1);
    expect(untilTold('uid-0', midnight + first)).toBe(0);
    expect(untilTold('uid-0', midnight + 86_400_000)).toBe(first);
  });
});
