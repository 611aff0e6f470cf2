// The controller of resources over objects that only this test changes: what it writes, when, and what it says of clients.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { conditionIn } from '../../../src/controller/reconciling/status-conditions.ts';
import type { Observation } from '../../../src/controller/replicas/observed-replicas.ts';
import { ResourceController } from '../../../src/controller/resources/resource-controller.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import {
  CLIENT_POLICIES,
  ENDPOINT_SLICES,
  NAMESPACES,
  PROTECTED_RESOURCES,
} from '../../../src/kubernetes/objects/resources.ts';
import { sourceOf } from '../../../src/kubernetes/objects/source-object.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const ISSUER = 'https://id.example';

class World {
  readonly resources = new PlayedObjects(PROTECTED_RESOURCES);
  readonly policies = new PlayedObjects(CLIENT_POLICIES);
  readonly namespaces = new PlayedObjects(NAMESPACES);
  readonly endpointSlices = new PlayedObjects(ENDPOINT_SLICES);
  readonly events: string[] = [];
  readonly granted: string[] = [];
  observation: Observation = { outcome: 'NotObserved' };
  queries = 0;
  writes = 0;
  reconciles = 0;
  readonly controller = new ResourceController({
    api: leaderOver({
      ...UNPLAYED,
      apply: async (_resource, object) => {
        this.writes += 1;
        return this.resources.put(object);
      },
    }),
    sources: {
      resources: this.resources,
      policies: this.policies,
      namespaces: this.namespaces,
      endpointSlices: this.endpointSlices,
    },
    install: { issuer: ISSUER, className: 'default', releaseNamespace: 'grantry-system', defaultPolicy: 'Baseline' },
    observed: {
      observe: async () => {
        this.queries += 1;
        return this.observation;
      },
    },
    onGrantsChanged: (keys) => this.granted.push(...keys),
    record: ({ regarding, type, reason }) => this.events.push(`${regarding.metadata.name} ${type} ${reason}`),
    clock: { now: Date.now },
    random: systemRandom,
    log: { error: (line: object) => expect.fail(JSON.stringify(line)) },
    metrics: {
      reconciled: (kind) => {
        if (kind === 'ProtectedResource') this.reconciles += 1;
      },
    },
  });

  constructor() {
    this.namespaces.put({ metadata: { name: 'team' } });
    this.namespaces.put({ metadata: { name: 'other' } });
  }

  put(name: string, spec: object, metadata: object = {}): KubernetesObject {
    return this.resources.put({ metadata: { name, namespace: 'team', ...metadata }, spec });
  }

  /** @param generations of each replica; undefined: it does not answer */
  serves(...generations: readonly (number | undefined)[]): void {
    const replicas = generations.map((generation, index) => {
      const resources = new Map(generation === undefined ? [] : [['uid-notes', { generation }]]);
      const state = { clients: new Map(), resources, keyIds: new Set<string>() };
      return { name: `pod-${index}`, state: generation === undefined ? undefined : state };
    });
    this.observation = { outcome: 'Observed', replicas };
  }

  async conditions(name: string): Promise<readonly string[]> {
    await vi.advanceTimersByTimeAsync(200);
    const status = this.resources.get(`team/${name}`)?.status;
    const types = ['Accepted', 'Programmed', 'Ready', 'Reconciling', 'Stalled'];
    return types.flatMap((type) => {
      const condition = conditionIn(status, type);
      return condition === undefined ? [] : [`${type}=${condition.status} ${condition.reason}`];
    });
  }
}

let world: World;
beforeEach(() => {
  vi.useFakeTimers();
  world = new World();
});
afterEach(async () => {
  await world.controller.stop();
  vi.useRealTimers();
});

const READY = ['Accepted=True Accepted', 'Programmed=True NotObserved', 'Ready=True Ready'];

it('given a resource that is refused → Stalled and one Warning, until it is corrected: Ready, also as an Event', async () => {
  world.put('notes', { scopes: [{ name: 'openid' }] });
  world.controller.start();
  expect(await world.conditions('notes')).toEqual([
    ...['Accepted=False InvalidScope', 'Programmed=Unknown Pending', 'Ready=False InvalidScope'],
    'Stalled=True InvalidScope',
  ]);
  expect(world.events).toEqual(['notes Warning InvalidScope']);
  world.put('notes', { scopes: [{ name: 'team/read' }] }, { generation: 2 });
  expect(await world.conditions('notes')).toEqual(READY);
  expect(world.resources.get('team/notes')?.status).toMatchObject({
    observedGeneration: 2,
    resource: 'urn:grantry:ns:team:notes',
  });
  expect(world.events).toEqual(['notes Warning InvalidScope', 'notes Normal Ready']);
});

it('given metadata of an accepted https resource → its address in the status; without any → none', async () => {
  const allow = { resources: ['https://*.example/**', 'urn:**'] };
  world.policies.put({ metadata: { name: 'all' }, spec: { namespaceSelector: {}, allow } });
  world.put('notes', { resource: 'https://notes.example/api' });
  world.put('hidden', { resource: 'https://hidden.example/api', discovery: 'None' });
  world.put('refused', { resource: 'https://refused.example/api', scopes: [{ name: 'openid' }] });
  world.put('urn', {});
  world.controller.start();
  expect(await world.conditions('urn')).toEqual(READY);
  const addresses = ['notes', 'hidden', 'refused', 'urn'].map((name) => {
    const status = world.resources.get(`team/${name}`)?.status as { readonly metadataUrl?: string };
    return [name, status.metadataUrl];
  });
  expect(addresses).toEqual([
    ['notes', `${ISSUER}/resources/team/notes`],
    ['hidden', undefined],
    ['refused', undefined],
    ['urn', undefined],
  ]);
});

it('given a status that is right → no write, whatever else changes', async () => {
  world.put('notes', {});
  world.controller.start();
  await world.conditions('notes');
  expect(world.writes).toBe(1);
  world.put('other', {});
  world.namespaces.put({ metadata: { name: 'team', labels: { tier: 'gold' } } });
  await world.conditions('notes');
  expect(world.writes).toBe(2);
});

it('given a change of one among many → the others are not reconciled', async () => {
  const names = Array.from({ length: 30 }, (_, index) => `n${index}`);
  for (const name of names) world.put(name, {});
  world.controller.start();
  await world.conditions('n0');
  const before = world.reconciles;
  world.put('n0', { displayName: 'Notes' }, { generation: 2 });
  await world.conditions('n0');
  // One for the change, and one for the status that this process wrote.
  expect(world.reconciles - before).toBe(2);
});

it('given a replica that serves an older generation → Pending after a second, Programmed once it follows', async () => {
  world.serves(1);
  world.put('notes', {}, { generation: 2 });
  world.controller.start();
  expect(await world.conditions('notes')).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await world.conditions('notes')).toEqual([
    ...['Accepted=True Accepted', 'Programmed=False Pending', 'Ready=False Pending', 'Reconciling=True Pending'],
  ]);
  world.serves(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await world.conditions('notes')).toEqual([
    ...['Accepted=True Accepted', 'Programmed=True Programmed', 'Ready=True Ready'],
  ]);
  expect(world.events).toEqual([]);
});

it('given a replica that comes → what waits for it is queried at once, and nothing else', async () => {
  world.put('notes', {}, { uid: 'uid-notes' });
  world.observation = { outcome: 'NoReplicas' };
  world.controller.start();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(await world.conditions('notes')).toContain('Programmed=Unknown NoReplicas');
  world.serves(1);
  const arrive = () => world.endpointSlices.put({ metadata: { namespace: 'grantry-system', name: 'grantry-admin-1' } });
  const before = world.queries;
  arrive();
  expect(await world.conditions('notes')).toContain('Programmed=True Programmed');
  const reconciles = world.reconciles;
  arrive();
  await world.conditions('notes');
  expect([world.queries, world.reconciles]).toEqual([before + 1, reconciles]);
});

it('given a new generation of a resource that was Programmed, and a replica that serves the former one → Pending, Programmed once it follows', async () => {
  world.serves(1);
  world.put('notes', {});
  world.controller.start();
  expect(await world.conditions('notes')).toContain('Programmed=True Programmed');
  // The status is reconciled as it comes back.
  expect([world.reconciles, world.queries]).toEqual([2, 1]);
  world.put('notes', { displayName: 'Notes' }, { generation: 2 });
  await vi.advanceTimersByTimeAsync(1200);
  expect(await world.conditions('notes')).toContain('Programmed=False Pending');
  world.serves(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await world.conditions('notes')).toContain('Programmed=True Programmed');
  expect(world.resources.get('team/notes')?.status).toMatchObject({ observedGeneration: 2 });
});

it.each([
  ['of this generation, and no replica that answers → stays', 2, [undefined, undefined], 'True Programmed'],
  ['of this generation, one that answers and one that does not → stays', 2, [2, undefined], 'True Programmed'],
  ['of this generation, and one that serves an older one → Pending', 2, [1], 'False Pending'],
  [
    'of this generation, one that serves an older one and one that does not answer → Pending',
    2,
    [1, undefined],
    'False Pending',
  ],
  ['of the former generation, and no replica that answers → Pending', 1, [undefined], 'False Pending'],
])('given a status of a former leader %s', async (_, observedGeneration, generations, expected) => {
  world.serves(...generations);
  world.put('notes', {}, { generation: 2 });
  const last = { type: 'Programmed', status: 'True', reason: 'Programmed', message: 'As it was.', observedGeneration };
  world.resources.put({ metadata: { name: 'notes', namespace: 'team' }, status: { conditions: [last] } });
  world.controller.start();
  await vi.advanceTimersByTimeAsync(1200);
  expect(await world.conditions('notes')).toContain(`Programmed=${expected}`);
});

it('given a holder that is deleted → the next one is Ready', async () => {
  const spec = { namespaceSelector: {}, allow: { resources: ['urn:example:*'] } };
  world.policies.put({ metadata: { name: 'all' }, spec });
  world.put('notes', { resource: 'urn:example:notes' });
  world.put('second', { resource: 'urn:example:notes' });
  world.controller.start();
  expect(await world.conditions('second')).toContain('Ready=False ResourceConflict');
  world.resources.delete('team/notes');
  expect(await world.conditions('second')).toEqual(READY);
});

it('given a policy that shrinks → PolicyViolation, and its clients are asked again', async () => {
  const all = (resources: readonly string[]) => ({ namespaceSelector: {}, allow: { resources } });
  world.policies.put({ metadata: { name: 'all' }, spec: all(['urn:**']) });
  world.put('notes', { resource: 'urn:example:notes' });
  world.controller.start();
  expect(await world.conditions('notes')).toEqual(READY);
  expect(world.granted.splice(0)).toEqual(['team/notes']);
  world.policies.put({ metadata: { name: 'all' }, spec: all([]) });
  expect(await world.conditions('notes')).toContain('Ready=False PolicyViolation');
  expect(world.granted).toEqual(['team/notes']);
});

it('given a client of another namespace → ResourcesGranted by entry, by label, and not without', async () => {
  const client = sourceOf({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'OAuthClient',
    metadata: {
      name: 'app',
      namespace: 'other',
      uid: 'uid-app',
      resourceVersion: '1',
      generation: 4,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
  });
  const asked = (resources: { namespace: string; name: string }[]) =>
    world.controller.conditionFor(client, { resources, scopes: [], defaultScopes: [] });
  const notes = [{ namespace: 'team', name: 'notes' }];
  world.put('notes', { allowedClients: [{ namespaceSelector: { matchLabels: { tier: 'gold' } } }] });
  world.controller.start();
  expect(asked([])).toBeUndefined();
  expect(asked(notes)).toMatchObject({ status: 'False', reason: 'ResourceNotGranted', observedGeneration: 4 });
  world.namespaces.put({ metadata: { name: 'other', labels: { tier: 'gold' } } });
  expect(asked(notes)).toMatchObject({ status: 'True', reason: 'ResourcesGranted' });
});
