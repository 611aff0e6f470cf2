// One ring by a clock that the test moves, also in the middle of a reconcile. What happens at a real API server is tested in
// test/cluster/.

import { describe, expect, it } from 'vitest';
import { StaleReadError } from '../../../src/controller/reconciling/stale-read.ts';
import { KeyReconciler } from '../../../src/controller/signing-keys/key-reconciler.ts';
import {
  type KubernetesObject,
  type Resource,
  SECRETS,
  SIGNING_KEYS,
} from '../../../src/kubernetes/objects/resources.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const NAMESPACE = 'auth';
const RING = `${NAMESPACE}/default`;
const SECOND = 1000;
const HOUR = 3_600_000;
const START = 1_800_000_000_000;

/** A ring that signs with a new key each day, and its one replica. */
class World {
  now = START;
  /** What passes while a key is deleted. */
  deletionTakes = 0;
  /** Whether another writer changes a key before it is deleted. */
  deletionFails = false;
  /** The keys that the replica has; undefined: it has all. */
  served: ReadonlySet<string> | undefined;
  asked = 0;
  lists = 0;
  readonly events: string[] = [];
  /** The Secrets that the watch stands still at; undefined: it follows. */
  #watched: readonly KubernetesObject[] | undefined;
  readonly #rings = new PlayedObjects(SIGNING_KEYS);
  /** The SigningKey that the watch stands still at; undefined: it follows. */
  #watchedRing: KubernetesObject | undefined;
  readonly #secrets = new PlayedObjects(SECRETS);
  readonly #reconciler = new KeyReconciler({
    api: leaderOver({
      ...UNPLAYED,
      get: async (resource, { name }) => this.#of(resource).get(`${NAMESPACE}/${name}`),
      create: async (resource, object) => this.#of(resource).put(object),
      apply: async (resource, object) => this.#of(resource).put(object),
      delete: async (resource, { name }) => {
        if (this.deletionFails) return 'changed';
        this.#of(resource).delete(`${NAMESPACE}/${name}`);
        this.now += this.deletionTakes;
        return 'deleted';
      },
    }),
    reader: {
      list: async (_resource, selection = {}) => {
        this.lists += 1;
        expect(selection).toEqual({ namespace: NAMESPACE, labelSelector: 'grantry.dev/part=signing-key' });
        return { items: this.#secrets.objects(), resourceVersion: '', continue: undefined, bytes: 0 };
      },
    },
    signingKeys: {
      get: (key) => this.#watchedRing ?? this.#rings.get(key),
      objects: () => this.#rings.objects(),
    },
    secrets: { get: expect.fail, objects: () => this.#watched ?? this.#secrets.objects() },
    releaseNamespace: NAMESPACE,
    replicas: {
      observe: async () => {
        this.asked += 1;
        const state = { clients: new Map(), resources: new Map(), keyIds: this.served ?? new Set(this.#keyIds()) };
        return { outcome: 'Observed', replicas: [{ name: 'pod-1', state }] };
      },
    },
    record: ({ reason }) => this.events.push(reason),
    clock: { now: () => this.now },
  });

  constructor() {
    const rotation = { policy: 'Scheduled', interval: '24h', prePublish: '1h', retain: '48h' };
    const metadata = { name: 'default', namespace: NAMESPACE };
    this.#rings.put({ metadata, spec: { algorithm: 'ES256', rotation } });
  }

  /** Reconciles the ring so long after the start. @returns after how many milliseconds it is requeued */
  async lookAt(sinceStart: number): Promise<number | undefined> {
    this.now = START + sinceStart;
    return await this.#reconciler.reconcile(RING);
  }

  get states(): readonly string[] {
    return this.#secrets
      .objects()
      .map(({ metadata }) => `${metadata.labels?.['grantry.dev/key-state']}`)
      .sort();
  }

  /** From now on the watch of Secrets delivers nothing. */
  watchStandsStill(): void {
    this.#watched = this.#secrets.objects();
  }

  /** The owner asks for another key. @returns the SigningKey then */
  rotates(request: string): KubernetesObject {
    const annotations = { 'grantry.dev/rotate-requested-at': request };
    return this.#rings.put({ metadata: { name: 'default', namespace: NAMESPACE, annotations } });
  }

  /** What the watch has of the SigningKey; undefined: it follows. */
  watchesRing(ring: KubernetesObject | undefined): void {
    this.#watchedRing = ring;
  }

  /** From now on the replica learns of no other key. */
  stopsFollowing(): void {
    this.served = new Set(this.#keyIds());
  }

  #keyIds(): readonly string[] {
    return this.#secrets.objects().map(({ metadata }) => `${metadata.annotations?.['grantry.dev/key-id']}`);
  }

  #of({ kind }: Resource): PlayedObjects {
    return kind === SECRETS.kind ? this.#secrets : this.#rings;
  }
}

describe('a watch of Secrets that is behind', () => {
  it('a key that was just made → no second one, and no second Event', async () => {
    const world = new World();
    world.watchStandsStill();
    for (let look = 0; look < 3; look++) await world.lookAt(look * SECOND);
    expect([world.states, world.events]).toEqual([['Active'], ['KeyActivated']]);
  });

  it('each step of a rotation → taken once', async () => {
    const world = new World();
    await world.lookAt(0);
    for (const hours of [23, 24, 73]) {
      world.watchStandsStill();
      for (let look = 1; look <= 3; look++) await world.lookAt(hours * HOUR + look * SECOND);
    }
    expect(world.events).toEqual([
      ...['KeyActivated', 'KeyPublished', 'KeyActivated', 'KeyRetired', 'KeyPublished', 'KeyRemoved'],
    ]);
  });

  it('given nothing to do → the Secrets are not listed', async () => {
    const world = new World();
    await world.lookAt(0);
    const { lists } = world;
    for (let look = 1; look < 4; look++) await world.lookAt(look * SECOND);
    expect(world.lists).toBe(lists);
  });
});

it('given a watch that is behind what a former leader did for a later request → no key for the one before', async () => {
  const world = new World();
  const first = world.rotates('monday');
  await world.lookAt(0);
  world.rotates('tuesday');
  await world.lookAt(SECOND);
  await world.lookAt(2 * HOUR);
  expect(world.states).toEqual(['Active', 'Retiring']);
  world.watchesRing(first);
  await expect(world.lookAt(2 * HOUR + SECOND)).rejects.toBeInstanceOf(StaleReadError);
  world.watchesRing(undefined);
  await world.lookAt(2 * HOUR + 2 * SECOND);
  expect(world.states).toEqual(['Active', 'Retiring']);
});

describe('a key whose time comes', () => {
  /** The third day: the first key is to be removed right before the fourth may sign. */
  async function thirdDay(): Promise<World> {
    const world = new World();
    for (const hours of [0, 23, 24, 47, 48]) await world.lookAt(hours * HOUR);
    expect(world.states).toEqual(['Active', 'Retiring', 'Retiring']);
    return world;
  }

  it('while an old one is removed signs only when the replicas have it', async () => {
    const world = await thirdDay();
    world.stopsFollowing();
    await world.lookAt(71 * HOUR + SECOND);
    world.deletionTakes = 2 * SECOND;
    const asked = world.asked;
    expect(await world.lookAt(72 * HOUR)).toBeLessThanOrEqual(2 * SECOND);
    expect(world.states).toEqual(['Active', 'Published', 'Retiring']);
    expect(world.asked).toBe(asked + 1);
    world.served = undefined;
    await world.lookAt(72 * HOUR + 10 * SECOND);
    expect(world.states).toEqual(['Active', 'Retiring', 'Retiring']);
  });

  it('is asked about no earlier, and signs in the same look where the replicas have it', async () => {
    const world = await thirdDay();
    const asked = world.asked;
    await world.lookAt(71 * HOUR + SECOND);
    await world.lookAt(72 * HOUR - SECOND);
    expect(world.asked).toBe(asked);
    world.deletionTakes = 2 * SECOND;
    await world.lookAt(72 * HOUR);
    expect([world.asked, ...world.states]).toEqual([asked + 1, 'Active', 'Retiring', 'Retiring']);
  });

  it('is requeued where an old one changes while it is removed', async () => {
    const world = await thirdDay();
    await world.lookAt(71 * HOUR + SECOND);
    world.deletionFails = true;
    await expect(world.lookAt(72 * HOUR)).rejects.toBeInstanceOf(StaleReadError);
    world.deletionFails = false;
    await world.lookAt(72 * HOUR + SECOND);
    expect(world.states).toEqual(['Active', 'Retiring', 'Retiring']);
  });
});
