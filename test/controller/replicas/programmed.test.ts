import { expect, it } from 'vitest';
import type { Observation, ServedState } from '../../../src/controller/replicas/observed-replicas.ts';
import { ProgrammedObjects, pendingOn, type StoredVersion } from '../../../src/controller/replicas/programmed.ts';

const HAS_NOTHING: ServedState = { clients: new Map(), resources: new Map(), keyIds: new Set() };
const HAS_IT: ServedState = { ...HAS_NOTHING, keyIds: new Set(['it']) };

function replicas(...states: (ServedState | undefined)[]): Observation {
  return { outcome: 'Observed', replicas: states.map((state, index) => ({ name: `pod-${index + 1}`, state })) };
}

class World {
  now = 0;
  queries = 0;
  observation: Observation = replicas(HAS_NOTHING);
  /** No jitter, or the most. */
  bytes = 0;
  readonly programmed = new ProgrammedObjects({
    replicas: {
      observe: async () => {
        this.queries += 1;
        return this.observation;
      },
    },
    clock: { now: () => this.now },
    random: { bytes: (length) => Buffer.alloc(length, this.bytes) },
  });

  async reportAt(now: number, stored: Partial<StoredVersion> = {}) {
    this.now = now;
    const isServedBy = ({ keyIds }: ServedState) => keyIds.has('it');
    const version = { uid: 'uid-1', version: '1', isServedBy, wasProgrammed: false, ...stored };
    const { programmed, isDue, requeueAfter } = await this.programmed.report(version);
    return [programmed.reason, isDue, requeueAfter && Math.round(requeueAfter)];
  }
}

it('given a replica that is behind → queried ten times a second, reported after one second, then queried ever more seldom', async () => {
  const world = new World();
  const outcomes = [];
  for (const now of [0, 999, 1000, 4000, 10_000, 60_000, 600_000]) outcomes.push(await world.reportAt(now));
  expect(outcomes).toEqual([
    ['Pending', false, 100],
    ['Pending', false, 100],
    ['Pending', true, 2000],
    ['Pending', true, 2000],
    ['Pending', true, 5000],
    ['Pending', true, 30_000],
    ['Pending', true, 30_000],
  ]);
  world.bytes = 255;
  expect(await world.reportAt(600_001)).toEqual(['Pending', true, 22_500]);
});

it('given a replica that has it at last → reported at once, not queried again, and another version waits for its own second', async () => {
  const world = new World();
  await world.reportAt(0);
  world.observation = replicas(HAS_IT);
  expect(await world.reportAt(500)).toEqual(['Programmed', true, undefined]);
  expect([await world.reportAt(600), world.queries]).toEqual([['Programmed', true, undefined], 2]);
  world.observation = replicas(HAS_NOTHING);
  expect(await world.reportAt(5000, { version: '2' })).toEqual(['Pending', false, 100]);
});

it('given an object that is forgotten → what was observed of it, and since when it waits, is void', async () => {
  const world = new World();
  await world.reportAt(0);
  world.programmed.forget('uid-1');
  expect(await world.reportAt(5000)).toEqual(['Pending', false, 100]);
  world.observation = replicas(HAS_IT);
  await world.reportAt(5000);
  world.programmed.forget('uid-1');
  world.observation = replicas(HAS_NOTHING);
  expect(await world.reportAt(5000)).toEqual(['Pending', false, 100]);
});

it.each([
  ['behind', replicas(HAS_NOTHING)],
  ['done', replicas(HAS_IT)],
])(
  'given an object that is forgotten while replicas that are %s are queried → nothing of it is kept',
  async (_what, observation) => {
    const world = new World();
    world.observation = observation;
    const running = world.reportAt(0);
    world.programmed.forget('uid-1');
    await running;
    expect(world.programmed.replicasChanged()).toEqual([]);
    world.observation = replicas(HAS_NOTHING);
    expect([await world.reportAt(5000), world.queries]).toEqual([['Pending', false, 100], 2]);
  },
);

it('given replicas that come and go → the objects that wait for one, once, and their second begins again', async () => {
  const world = new World();
  await world.reportAt(0);
  world.observation = replicas(HAS_IT);
  await world.reportAt(0, { uid: 'uid-2' });
  world.observation = replicas(HAS_NOTHING);
  expect([world.programmed.replicasChanged(), world.programmed.replicasChanged()]).toEqual([['uid-1'], []]);
  expect(await world.reportAt(5000)).toEqual(['Pending', false, 100]);
});

it.each<[string, Observation, boolean, readonly unknown[]]>([
  ['no addresses', { outcome: 'NotObserved' }, false, ['NotObserved', true, undefined]],
  ['no replica', { outcome: 'NoReplicas' }, false, ['NoReplicas', true, 2000]],
  ['no replica, and a status of it', { outcome: 'NoReplicas' }, true, ['Programmed', true, 2000]],
  ['a silent replica', replicas(HAS_IT, undefined), false, ['Pending', true, 2000]],
  ['a silent replica, and a status of it', replicas(HAS_IT, undefined), true, ['Programmed', true, 2000]],
  ['a replica without it, and a status of it', replicas(HAS_NOTHING, undefined), true, ['Pending', true, 2000]],
])('given %s → the condition, and whether it may change', async (_, observation, wasProgrammed, expected) => {
  const world = new World();
  world.observation = observation;
  await world.reportAt(0, { wasProgrammed });
  expect(await world.reportAt(1000, { wasProgrammed })).toEqual(expected);
});

it('names three replicas that are behind, and how many more', () => {
  expect([pendingOn(['a', 'b', 'c']).message, pendingOn(['a', 'b', 'c', 'd', 'e']).message]).toEqual([
    'Not served yet by a, b, c.',
    'Not served yet by a, b, c and 2 more.',
  ]);
});
