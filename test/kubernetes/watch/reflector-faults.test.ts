// The reflector and the client over real HTTP against an API server that misbehaves. The property at the end is the point:
// after any sequence of changes and faults the store is what the server has, and the reported changes add up to it.

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { CONFIG_MAPS, type KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import type { ObjectChange } from '../../../src/kubernetes/watch/object-store.ts';
import { Reflector, type ReflectorOptions } from '../../../src/kubernetes/watch/reflector.ts';
import type { RestartReason } from '../../../src/kubernetes/watch/watch-faults.ts';
import { until } from '../../until.ts';
import { FakeApiServer, type Fault } from '../fake-api-server.ts';

const clock = { now: () => Date.now() };
/** No pause is ever longer than nothing, and every watch as short as it may be. */
const random = { bytes: (count: number) => new Uint8Array(count) };
const log = { info: () => {}, warn: () => {}, error: () => {} };

/** A reflector, and the changes that it reported. */
class Follower {
  readonly changes: ObjectChange[] = [];
  readonly frames: string[] = [];
  readonly restarts: RestartReason[] = [];
  /** What the changes add up to; they are checked one by one. */
  readonly told = new Map<string, KubernetesObject>();
  renewals = 0;
  synced = 0;
  readonly reflector: Reflector;
  readonly client: ApiClient;

  constructor(server: FakeApiServer, options: Partial<Pick<ReflectorOptions, 'random'>> = {}) {
    const access = {
      server: server.url,
      credentials: () =>
        Promise.resolve({ headers: { authorization: `Bearer ${this.renewals}` }, tls: {}, user: 'some-user' }),
      renew: () => {
        this.renewals++;
      },
    };
    this.client = new ApiClient({ access, userAgent: 'grantry/1.2.3' });
    this.reflector = new Reflector({
      api: this.client,
      resource: CONFIG_MAPS,
      clock,
      random,
      log,
      onChange: (change) => this.#take(change),
      onSynced: () => {
        this.synced++;
      },
      metrics: {
        watchEvent: (_, type) => this.frames.push(type),
        watchRestarted: (_, reason) => this.restarts.push(reason),
        changeRefused: () => {},
      },
      ...options,
    });
  }

  async stop(): Promise<void> {
    await this.reflector.stop();
    this.client.close();
  }

  get state(): Readonly<Record<string, string>> {
    return stateOf(this.reflector.objects());
  }

  #take(change: ObjectChange): void {
    const { type, key, object, before } = change;
    const known = this.told.get(key);
    this.changes.push(change);
    if (type === 'delete') {
      expect(known).toBe(object);
      this.told.delete(key);
    } else {
      expect(before).toBe(known);
      if (before !== undefined) expect(object.metadata.uid).toBe(before.metadata.uid);
      this.told.set(key, object);
    }
  }
}

function stateOf(objects: Iterable<KubernetesObject>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...objects]
      .map(({ metadata, data }): [string, string] => [
        `${metadata.namespace}/${metadata.name}`,
        `${metadata.uid} ${(data as { value: string }).value}`,
      ])
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

let server: FakeApiServer;
let follower: Follower;

beforeEach(async () => {
  server = await FakeApiServer.start();
  follower = new Follower(server);
});
afterEach(async () => {
  await follower.stop();
  server.stop();
});

async function synced(): Promise<void> {
  follower.reflector.start();
  await follower.reflector.whenSynced();
  await until('the watch is open', () => server.openWatches === 1);
}

async function agreed(): Promise<void> {
  const same = () => JSON.stringify(follower.state) === JSON.stringify(server.state);
  await until('the store is what the server has', same);
  expect(stateOf([...follower.told.values()])).toEqual(server.state);
}

/** What was asked after the first list and the first watch. */
const later = () => server.requests.slice(2).map(({ kind }) => kind);

describe('a reflector', () => {
  it('knows what is there, and follows what changes', async () => {
    server.put('a', '1');
    server.put('b', '1');
    await synced();
    expect(follower.reflector.synced).toBe(true);
    expect(follower.reflector.get('team-a/a')).toMatchObject({ kind: 'ConfigMap', data: { value: '1' } });
    server.put('a', '2');
    server.delete('b');
    server.put('c', '1');
    await agreed();
    expect(follower.changes.map(({ type, key }) => `${type} ${key}`)).toEqual([
      ...['put team-a/a', 'put team-a/b', 'put team-a/a', 'delete team-a/b', 'put team-a/c'],
    ]);
    expect(follower.reflector.fault).toBeUndefined();
  });

  it('asks for pages of up to 500, for bookmarks, and for watches that end', async () => {
    for (let index = 0; index < 1201; index++) server.put(`object-${index}`, '1');
    await synced();
    await agreed();
    const lists = server.requests.filter(({ kind }) => kind === 'list');
    expect(lists.map(({ query }) => query.get('limit'))).toEqual(['32', '64', '128', '256', '500', '500']);
    const watch = server.requests.find(({ kind }) => kind === 'watch');
    expect(watch?.query.get('allowWatchBookmarks')).toBe('true');
    expect(watch?.query.get('timeoutSeconds')).toBe('240');
    expect(watch?.userAgent).toBe('grantry/1.2.3');
  });

  it('begins the list again when a page is gone before it came', async () => {
    for (let index = 0; index < 100; index++) server.put(`object-${index}`, '1');
    server.listFaults.push('end', () => {
      server.delete('object-0');
      server.compact();
    });
    await synced();
    await agreed();
    const lists = server.requests.filter(({ kind }) => kind === 'list');
    expect(lists.map(({ query }) => query.get('limit'))).toEqual(['32', '64', '64', '128']);
    expect(lists.map(({ query }) => query.has('continue'))).toEqual([false, true, false, true]);
  });

  it.each<[string, () => void]>([
    ['a watch is refused because its version is gone', () => server.watchFaults.push(410)],
    ['a frame says that the version is gone', () => server.watchFaults.push({ frame: 410 })],
  ])('relists when %s', async (_, fault) => {
    server.put('a', '1');
    server.put('b', '1');
    await synced();
    fault();
    server.endWatches();
    server.delete('a');
    server.put('b', '2');
    await agreed();
    expect(later()).toContain('list');
    expect(follower.restarts).toContain('expired');
  });

  it('does not list without a pause when each list that it watches from is too old soon', async () => {
    follower = new Follower(server, { random: { bytes: (count) => new Uint8Array(count).fill(128) } });
    await synced();
    const pauses: number[] = [];
    for (let count = 0; count < 3; count++) {
      const { lastProgress } = follower.reflector;
      await until('the watch has lasted', () => follower.reflector.lastProgress > lastProgress);
      const [seen, gone] = [server.requests.length, performance.now()];
      server.write('{"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}\n');
      await until('it relists', () => server.requests.length > seen);
      pauses.push(performance.now() - gone);
      expect(server.requests[seen]?.kind).toBe('list');
      await until('it watches again', () => server.requests.length === seen + 2 && server.openWatches === 1);
    }
    // Half of 0.5, 1 and 2 seconds, as chance has it here; a busy machine adds to them.
    for (const [index, atLeast] of [250, 500, 1000].entries()) expect(pauses[index]).toBeGreaterThan(atLeast);
    server.put('a', '1');
    await agreed();
  });

  it('reports objects that were deleted or recreated while it did not watch', async () => {
    server.put('gone', '1');
    server.put('again', '1');
    server.put('same', '1');
    await synced();
    server.watchFaults.push(410);
    server.endWatches();
    server.delete('gone');
    server.recreate('again', '1');
    server.compact();
    await agreed();
    const told = follower.changes.slice(3).map(({ type, key, object }) => `${type} ${key} ${object.metadata.uid}`);
    expect(told).toEqual(['delete team-a/again uid-2', 'delete team-a/gone uid-1', 'put team-a/again uid-4']);
  });

  it('reports an object recreated under a watch as a deletion and a new one, even if the watch did not send the deletion', async () => {
    server.put('a', '1');
    await synced();
    const metadata = { name: 'a', namespace: 'team-a', uid: 'another', resourceVersion: '999' };
    server.write(`${JSON.stringify({ type: 'MODIFIED', object: { metadata, data: { value: '2' } } })}\n`);
    await until('it was reported', () => follower.changes.length === 3);
    expect(follower.changes.slice(1).map(({ type, object }) => `${type} ${object.metadata.uid}`)).toEqual([
      ...['delete uid-1', 'put another'],
    ]);
  });

  it('does not take a late deletion of an old object for one of the new', async () => {
    server.put('a', '1');
    await synced();
    const metadata = { name: 'a', namespace: 'team-a', uid: 'an older one', resourceVersion: '50' };
    server.write(`${JSON.stringify({ type: 'DELETED', object: { metadata, data: {} } })}\n`);
    server.put('b', '1');
    await agreed();
    expect(follower.changes.map(({ type }) => type)).toEqual(['put', 'put']);
  });

  it('reports nothing twice', async () => {
    server.put('a', '1');
    await synced();
    server.put('a', '2');
    server.repeat();
    server.repeat();
    server.put('b', '1');
    await agreed();
    expect(follower.changes.map(({ key }) => key)).toEqual(['team-a/a', 'team-a/a', 'team-a/b']);
  });

  it('reads a frame that comes in pieces, even if they part a character', async () => {
    await synced();
    const metadata = { name: 'a', namespace: 'team-a', uid: 'u', resourceVersion: '999' };
    const frame = Buffer.from(`${JSON.stringify({ type: 'ADDED', object: { metadata, data: { value: 'ü€😀' } } })}\n`);
    for (let at = 0; at < frame.length; at += 9) {
      server.write(frame.subarray(at, at + 9));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await until('it was reported', () => follower.changes.length > 0);
    expect(follower.state).toEqual({ 'team-a/a': 'u ü€😀' });
    expect(follower.restarts).toEqual([]);
  });

  it('goes on from the version of the last change', async () => {
    server.put('a', '1');
    await synced();
    server.put('a', '2');
    server.delete('a');
    server.put('b', '1');
    await agreed();
    server.endWatches();
    await until('it watches again', () => server.requests.length === 3);
    const { items } = await follower.client.list(CONFIG_MAPS);
    expect(server.requests[2]?.query.get('resourceVersion')).toBe(items[0]?.metadata.resourceVersion);
  });

  it('is ready once', async () => {
    await synced();
    server.compact();
    server.endWatches();
    await until('it relisted', () => later().includes('list'));
    server.put('a', '1');
    await agreed();
    expect(follower.synced).toBe(1);
  });

  it('goes on from the version of a bookmark', async () => {
    server.put('a', '1');
    await synced();
    server.compact();
    server.bookmark();
    await until('it came', () => follower.frames.includes('BOOKMARK'));
    server.endWatches();
    server.put('a', '2');
    await agreed();
    expect(later()).not.toContain('list');
  });

  it.each<[string, RestartReason, () => void]>([
    ['is not JSON', 'undecodable', () => server.write('{"type": "ADD\n')],
    ['is of no type we know', 'undecodable', () => server.write('{"type": "CHANGED", "object": {}}\n')],
    ['has no object', 'undecodable', () => server.write('{"type": "ADDED"}\n')],
    [
      'has an object without uid',
      'undecodable',
      () => {
        server.write('{"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "7"}}}\n');
      },
    ],
  ])('relists, and skips nothing, when a frame %s', async (_, reason, fault) => {
    server.put('a', '1');
    await synced();
    fault();
    server.put('b', '1');
    await agreed();
    expect(follower.restarts).toEqual([reason]);
    expect(later()[0]).toBe('list');
  });

  it('goes on from where it was when the connection is cut', async () => {
    server.put('a', '1');
    await synced();
    server.cutWatches();
    server.put('a', '2');
    await agreed();
    expect(later()).not.toContain('list');
    expect(follower.restarts).toContain('disconnected');
  });

  it('takes half a frame for none', async () => {
    server.put('a', '1');
    await synced();
    server.watchFaults.push('half');
    server.cutWatches();
    server.put('a', '2');
    server.delete('a');
    await agreed();
    expect(follower.restarts.slice(0, 2)).toEqual(['disconnected', 'disconnected']);
  });

  it('asks again with a fresh token when it was not believed, once for each request', async () => {
    server.put('a', '1');
    await synced();
    server.watchFaults.push(401);
    server.endWatches();
    server.put('a', '2');
    await agreed();
    expect(server.requests.slice(2).map(({ authorization }) => authorization)).toEqual(['Bearer 0', 'Bearer 1']);
    expect(follower.restarts).not.toContain('unauthorized');
    server.watchFaults.push(401, 401);
    server.endWatches();
    server.put('a', '3');
    await agreed();
    expect(follower.restarts).toContain('unauthorized');
  });

  it('relists when the API server does not go on from the version we know', async () => {
    server.put('a', '1');
    await synced();
    server.watchFaults.push(504, 504);
    server.endWatches();
    server.put('a', '2');
    await agreed();
    expect(later().slice(0, 3)).toEqual(['watch', 'watch', 'list']);
  });

  it.each<[string, readonly Fault[]]>([
    ['500', [500, 500]],
    ['429 with its patience at an end', [429, 429, 429, 429]],
    ['a cut', ['cut', 'cut']],
    ['half a list', ['half']],
    ['no JSON', ['garbage']],
    ['403', [403]],
  ])('is not ready while the list answers %s, and is when it is over', async (_, faults) => {
    server.put('a', '1');
    server.listFaults.push(...faults);
    follower.reflector.start();
    await until('all faults are spent', () => server.listFaults.length === 0);
    await synced();
    await agreed();
    await until('nothing is wrong any more', () => follower.reflector.fault === undefined);
  });

  it('shows nothing of a first list that is not complete', async () => {
    for (let index = 0; index < 600; index++) server.put(`object-${index}`, '1');
    // A first page each, and no second.
    server.listFaults.push(...Array.from({ length: 10_000 }, (_, index) => (index % 2 === 0 ? 'end' : 500)));
    follower.reflector.start();
    await until('lists broke', () => server.requests.length > 6);
    expect(follower.changes).toEqual([]);
    expect(follower.reflector.synced).toBe(false);
    server.listFaults.length = 0;
    await synced();
    await agreed();
  });

  it('keeps what it knows while the API server does not answer', async () => {
    server.put('a', '1');
    await synced();
    server.stop();
    const fault = 'watch configmaps as some-user: NoAnswer (ECONNREFUSED)';
    await until('it is noticed', () => follower.reflector.fault?.includes(fault) ?? false);
    expect(follower.reflector.synced).toBe(true);
    expect(follower.state).toEqual({ 'team-a/a': 'uid-1 1' });
  });

  it('reports nothing more once it has stopped, even in the middle of a list', async () => {
    for (let index = 0; index < 2000; index++) server.put(`object-${index}`, '1');
    server.listDelay = 5;
    follower.reflector.start();
    await until('it lists', () => server.requests.length > 1);
    await follower.reflector.stop();
    const told = follower.changes.length;
    server.put('object-0', '2');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(follower.changes.length).toBe(told);
  });

  it('uses one connection for its lists, however many there are', async () => {
    for (let index = 0; index < 2600; index++) server.put(`object-${index}`, '1');
    await synced();
    expect(server.requests.length).toBe(10);
    expect(server.connections).toBeLessThanOrEqual(2);
  });
});

describe('after any sequence of changes and faults', () => {
  const names = fc.constantFrom('a', 'b', 'c', 'd');
  const faults = fc.constantFrom<Fault>(
    410,
    500,
    403,
    401,
    504,
    'cut',
    'half',
    'garbage',
    'end',
    { frame: 410 },
    { frame: 500 },
  );
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name: names, value: fc.nat(9) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), name: names }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('recreate' as const), name: names, value: fc.nat(9) }) },
    fc.record({ do: fc.constantFrom('compact', 'bookmark', 'repeat', 'cutWatches', 'endWatches') }),
    fc.record({
      do: fc.constant('write' as const),
      text: fc.constantFrom('\n', '{', 'null\n', '{"type":"ADDED"}\n', '[]\n'),
    }),
    fc.record({ do: fc.constant('fault' as const), of: fc.constantFrom('listFaults', 'watchFaults'), fault: faults }),
    fc.record({ do: fc.constant('wait' as const), milliseconds: fc.nat(4) }),
  );
  type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

  async function take(action: Step): Promise<void> {
    if (action.do === 'put') server.put(action.name, String(action.value));
    else if (action.do === 'delete') server.delete(action.name);
    else if (action.do === 'recreate') server.recreate(action.name, String(action.value));
    else if (action.do === 'write') server.write(action.text);
    else if (action.do === 'fault') server[action.of].push(action.fault);
    else if (action.do === 'wait') await new Promise((resolve) => setTimeout(resolve, action.milliseconds));
    else server[action.do]();
  }

  it('the store is what the server has', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        server.stop();
        await follower.stop();
        server = await FakeApiServer.start();
        follower = new Follower(server);
        follower.reflector.start();
        for (const action of steps) await take(action);
        await follower.reflector.whenSynced();
        await agreed();
      }),
      { numRuns: 150 },
    );
  });
});
