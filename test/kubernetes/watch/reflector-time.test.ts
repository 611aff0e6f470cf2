// When the reflector gives a watch up, and how long it waits before it tries again: minutes, on timers that the test moves.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KubernetesError, type WatchFrame } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { CONFIG_MAPS, type KubernetesObject, OAUTH_CLIENTS } from '../../../src/kubernetes/objects/resources.ts';
import { withoutBallast } from '../../../src/kubernetes/watch/object-store.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kubernetes/watch/reflector.ts';

const clock = { now: () => Date.now() };

/** A watch as the test plays it. */
class PlayedWatch {
  readonly signal: AbortSignal;
  readonly openedAt = Date.now();
  readonly timeoutSeconds: number;
  readonly #frames: (WatchFrame | KubernetesError | 'end')[] = [];
  #wake = () => {};

  constructor({ signal, timeoutSeconds }: { readonly signal: AbortSignal; readonly timeoutSeconds: number }) {
    this.signal = signal;
    this.timeoutSeconds = timeoutSeconds;
  }

  send(frame: WatchFrame | 'end'): void {
    this.#frames.push(frame);
    this.#wake();
  }

  fail(error: KubernetesError): void {
    this.#frames.push(error);
    this.#wake();
  }

  async *frames(): AsyncGenerator<WatchFrame> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame === 'end') return;
      if (frame instanceof KubernetesError) throw frame;
      if (frame !== undefined) yield frame;
      else if (this.signal.aborted) throw refusal(0, 'Aborted');
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          this.signal.addEventListener('abort', () => resolve());
        });
      }
    }
  }
}

function refusal(status: number, reason: string): KubernetesError {
  return new KubernetesError({ status, reason, verb: 'watch', resource: CONFIG_MAPS, user: 'somebody' });
}

const watches: PlayedWatch[] = [];
const lists: number[] = [];
const restarts: string[] = [];
let refusals: KubernetesError[] = [];
let listRefusals: KubernetesError[] = [];
let reflector: Reflector;

function follow(options: Partial<ReflectorOptions> = {}): Reflector {
  reflector = new Reflector({
    api: {
      list: async () => {
        lists.push(Date.now());
        const refused = listRefusals.shift();
        if (refused !== undefined) throw refused;
        return { items: [], resourceVersion: '1', continue: undefined, bytes: 0 };
      },
      watch: async (_, asked) => {
        const refused = refusals.shift();
        if (refused !== undefined) throw refused;
        const watch = new PlayedWatch(asked);
        watches.push(watch);
        return watch.frames();
      },
    },
    resource: CONFIG_MAPS,
    clock,
    onChange: () => {},
    random: { bytes: (count) => new Uint8Array(count).fill(128) },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    metrics: {
      watchEvent: () => {},
      watchRestarted: (_, reason) => restarts.push(reason),
      changeRefused: () => {},
    },
    ...options,
  });
  reflector.start();
  return reflector;
}

beforeEach(() => {
  vi.useFakeTimers();
  watches.length = lists.length = restarts.length = 0;
  refusals = [];
  listRefusals = [];
});
afterEach(async () => {
  await reflector.stop();
  vi.useRealTimers();
});

const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1000);
const bookmark: WatchFrame = { type: 'BOOKMARK', resourceVersion: '2' };

async function opened(): Promise<PlayedWatch> {
  await seconds(2);
  const watch = watches.at(-1);
  if (watch === undefined) throw new Error('no watch was opened');
  return watch;
}

describe('a watch', () => {
  it.each([
    [0, 240],
    [128, 360],
    [255, 480],
  ])('is asked for 240 to 480 seconds, by chance (%i: %i)', async (byte, timeoutSeconds) => {
    follow({ random: { bytes: (count) => new Uint8Array(count).fill(byte) } });
    expect((await opened()).timeoutSeconds).toBe(timeoutSeconds);
  });

  it('that is not ended in time is given up 15 seconds later, and goes on from where it was', async () => {
    follow();
    const watch = await opened();
    await seconds(watch.timeoutSeconds + 12);
    expect([watch.signal.aborted, restarts]).toEqual([false, []]);
    await seconds(2);
    expect([watch.signal.aborted, restarts]).toEqual([true, ['deadline']]);
    await opened();
    expect([watches.length, lists.length]).toEqual([2, 1]);
  });

  it('that is silent is given up 150 seconds after its last frame, once it had a bookmark', async () => {
    follow();
    const watch = await opened();
    watch.send(bookmark);
    await seconds(149);
    watch.send({ type: 'BOOKMARK', resourceVersion: '3' });
    await seconds(149);
    expect(restarts).toEqual([]);
    await seconds(2);
    expect(restarts).toEqual(['idle']);
    expect(watch.signal.aborted).toBe(true);
  });

  it('that never had a bookmark is waited for until its time is over', async () => {
    follow();
    const watch = await opened();
    const metadata = { name: 'a', uid: 'a', resourceVersion: '2', creationTimestamp: '' };
    watch.send({ type: 'ADDED', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
    await seconds(200);
    expect(watch.signal.aborted).toBe(false);
  });

  it('that ends by itself is opened again at once', async () => {
    follow();
    const watch = await opened();
    await seconds(300);
    watch.send('end');
    await seconds(0);
    expect(watches.length).toBe(2);
    expect([restarts, lists.length, reflector.fault]).toEqual([['ended'], 1, undefined]);
  });

  it('that ends within a second is an error, even with a frame in it', async () => {
    follow();
    await seconds(0.1);
    watches[0]?.send(bookmark);
    watches[0]?.send('end');
    await seconds(0);
    expect(restarts).toEqual(['ended_early']);
    expect(reflector.fault).toContain('configmaps');
    expect(watches.length).toBe(1);
    await seconds(3);
    expect(watches.length).toBe(2);
    expect(reflector.fault).toBeUndefined();
  });
});

describe('what failed', () => {
  it('is tried again after up to 0.5 s, doubled each time up to 30 s', async () => {
    listRefusals = Array.from({ length: 12 }, () => refusal(500, 'InternalError'));
    follow();
    await seconds(200);
    const waits = lists.slice(1).map((at, index) => Math.round((at - (lists[index] ?? 0)) / 100) / 10);
    // Half of the limit, as chance has it here.
    expect(waits.slice(0, 8)).toEqual([0.3, 0.5, 1, 2, 4, 8, 15.1, 15.1]);
  });

  it('begins with short waits again after a watch that lasted', async () => {
    listRefusals = Array.from({ length: 8 }, () => refusal(500, 'InternalError'));
    follow();
    await seconds(200);
    expect(watches.length).toBe(1);
    refusals = [refusal(500, 'InternalError')];
    (await opened()).send('end');
    await seconds(0.4);
    expect(watches.length).toBe(2);
  });

  it('waits no less for versions that are gone each time', async () => {
    refusals = Array.from({ length: 100 }, () => refusal(410, 'Expired'));
    follow();
    await seconds(20);
    expect(lists.length).toBeLessThan(10);
  });

  it('waits ever longer between lists that each serve for a short while, up to 30 s', async () => {
    follow();
    const pauses: number[] = [];
    for (let count = 0; count < 9; count++) {
      (await opened()).send({ type: 'ERROR', error: refusal(410, 'Expired') });
      const [gone, listed] = [Date.now(), lists.length];
      while (lists.length === listed && Date.now() < gone + 40_000) await seconds(0.05);
      pauses.push(Math.round(((lists.at(-1) ?? 0) - gone) / 100) / 10);
    }
    // Half of the limit, as chance has it here.
    expect(pauses).toEqual([0.3, 0.5, 1, 2, 4, 8, 15.1, 15.1, 15.1]);
  });

  it('lists at once in place of a list that served for a minute', async () => {
    follow();
    for (let count = 0; count < 3; count++) {
      const watch = await opened();
      await seconds(60);
      watch.send({ type: 'ERROR', error: refusal(410, 'Expired') });
      await seconds(0.001);
      expect(lists.length).toBe(count + 2);
    }
    expect(reflector.fault).toBeUndefined();
  });

  it('is not worth a word when a watch that lasted is cut, unless the next one fails too', async () => {
    follow();
    const watch = await opened();
    watch.fail(refusal(0, 'NoAnswer'));
    await seconds(1);
    expect([watches.length, restarts, reflector.fault]).toEqual([2, ['disconnected'], undefined]);
    refusals = Array.from({ length: 3 }, () => refusal(0, 'NoAnswer'));
    (await opened()).fail(refusal(0, 'NoAnswer'));
    await seconds(1);
    expect(reflector.fault).toContain('NoAnswer');
  });

  it('does not relist when the API server did not answer', async () => {
    follow();
    const watch = await opened();
    refusals = Array.from({ length: 6 }, () => refusal(0, 'NoAnswer'));
    watch.send('end');
    await seconds(60);
    expect([watches.length, lists.length]).toEqual([2, 1]);
  });

  it('is not ready while it has no right to list, and says whose right is missing', async () => {
    const facts = { status: 403, reason: 'Forbidden', verb: 'list', resource: OAUTH_CLIENTS };
    listRefusals = Array.from({ length: 3 }, () => {
      return new KubernetesError({ ...facts, user: 'system:serviceaccount:auth:server' });
    });
    const warnings: unknown[] = [];
    follow({ log: { info: () => {}, warn: (...line: unknown[]) => void warnings.push(line[1]), error: () => {} } });
    await seconds(0.3);
    expect(reflector.synced).toBe(false);
    const line = 'list oauthclients.grantry.dev as system:serviceaccount:auth:server: 403 Forbidden';
    expect(reflector.fault).toBe(line);
    await seconds(60);
    expect([reflector.synced, reflector.fault]).toEqual([true, undefined]);
    // Not once for each try.
    expect(warnings).toEqual([line]);
  });
});

describe('progress', () => {
  it('is a list, a frame, and the regular end of a watch', async () => {
    follow();
    const watch = await opened();
    const begun = reflector.lastProgress;
    await seconds(100);
    expect(reflector.lastProgress).toBe(begun);
    watch.send(bookmark);
    await seconds(10);
    expect(reflector.lastProgress).toBe(begun + 101_000);
    watch.send('end');
    await seconds(1);
    expect(reflector.lastProgress).toBeGreaterThanOrEqual(begun + 110_000);
  });

  it('is not what only fails', async () => {
    listRefusals = Array.from({ length: 30 }, () => refusal(500, 'InternalError'));
    const begun = Date.now();
    follow();
    await seconds(60);
    expect(reflector.lastProgress).toBe(begun);
  });
});

describe('a change', () => {
  it.each([
    ['without managedFields and the annotations of others', {}, { status: { b: 2 } }],
    ['as `keep` has it', { keep: ({ status: _, ...rest }: KubernetesObject) => withoutBallast(rest) }, {}],
  ])('is kept %s', async (...[, options, kept]) => {
    follow(options);
    const watch = await opened();
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'grantry.dev/rotate': '1' };
    const metadata = {
      name: 'a',
      uid: 'a',
      resourceVersion: '3',
      creationTimestamp: '',
      annotations,
      managedFields: [],
    };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, spec: { a: 1 }, status: { b: 2 } };
    watch.send({ type: 'ADDED', object });
    await seconds(0);
    const { managedFields: _, ...rest } = metadata;
    expect(reflector.get('a')).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      spec: { a: 1 },
      ...kept,
      metadata: { ...rest, annotations: { 'grantry.dev/rotate': '1' } },
    });
  });
});
