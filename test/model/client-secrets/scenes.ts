// Histories in which a watch is behind at the moment at which that matters: each begins with a scene, in which little is left to
// chance, and goes on at random.

import fc from 'fast-check';
import {
  edit,
  type History,
  linkOf,
  type Made,
  NEXT,
  type Operation,
  operation,
  remove,
  rotate,
  squat,
  vacate,
} from './operations.ts';

const SECOND = 1000;
/** By then a change is reconciled. */
const RECONCILED = 4 * SECOND;

type Step = readonly [after: number, does: string, act: Operation['act']];

const variant = { secretName: 'default', key: 'client-secret', grace: 3600, deletionPolicy: 'Delete' } as const;
const apply = (name: string): Made => [`apply ${name}`, edit(name, variant)];

/** What an owner does in the scene; a client is made again under its name, is new, is rotated, or is named otherwise. */
const changes: fc.Arbitrary<readonly Step[]> = fc.constantFrom<readonly Step[]>(
  [
    [0, 'delete web', remove('web')],
    [0, ...apply('web')],
  ],
  [
    [0, 'delete web', remove('web')],
    [SECOND, ...apply('web')],
  ],
  [[0, ...apply('api')]],
  [[0, 'rotate web', rotate('web', false)]],
  [[0, 'apply web alpha', edit('web', { ...variant, secretName: 'alpha' })]],
  [[0, 'delete web', remove('web')]],
);

/** A client is made again under its name while garbage collection has not removed its Secret. */
const madeAgain: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.constantFrom<readonly Step[]>([], [[0, 'crash leader', (world) => world.crash(true)]]), changes, changes)
  .map(([lead, changed, more]) => [
    [0, ...apply('web')],
    [RECONCILED, 'hold the garbage collector for a minute', (world) => world.holdCollector(60 * SECOND)],
    [0, 'delete web', remove('web')],
    ...lead,
    [0, ...apply('web')],
    ...changed,
    ...more,
  ]);

/** Another process leads, with one of its watches behind. */
const takeOver: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.constantFrom('clients', 'verifiers', 'Secrets'), changes, fc.boolean(), fc.constantFrom(0, 50, RECONCILED))
  .map(([kind, changed, isCrash, after]) => [
    [0, ...apply('web')],
    [
      RECONCILED,
      `hold frames of ${kind} to other for a minute`,
      (world) => linkOf(world, 'other').holdFrames(kind, 60 * SECOND),
    ],
    ...changed,
    [after, `${isCrash ? 'crash' : 'end'} leader`, (world) => (isCrash ? world.crash(true) : world.end(true))],
  ]);

/** The process that leads is behind what it wrote, or what owners ask for. */
const behind: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.constantFrom('clients', 'verifiers', 'Secrets'), fc.constantFrom(0, RECONCILED), changes, changes)
  .map(([kind, after, changed, more]) => [
    [0, ...apply('web')],
    [
      after,
      `hold frames of ${kind} to leader for 8 s`,
      (world) => linkOf(world, 'leader').holdFrames(kind, 8 * SECOND),
    ],
    ...changed,
    ...more,
  ]);

/** Another process leads, which knows only of the request before the last one. */
const requested: fc.Arbitrary<readonly Step[]> = fc.boolean().map((isCut) => [
  [0, ...apply('web')],
  [RECONCILED, 'request a new secret', rotate('web', isCut)],
  [
    RECONCILED,
    'hold frames of clients to other for a minute',
    (world) => linkOf(world, 'other').holdFrames('clients', 60 * SECOND),
  ],
  [0, 'request another one', rotate('web', isCut)],
  [RECONCILED, 'crash leader', (world) => world.crash(true)],
]);

/** A tenant puts a Secret of its own, with the labels of the client, where the client had one. */
const copied: fc.Arbitrary<readonly Step[]> = fc.constant([
  [0, 'apply web alpha Retain', edit('web', { ...variant, secretName: 'alpha', deletionPolicy: 'Retain' })],
  [RECONCILED, 'apply web beta Retain', edit('web', { ...variant, secretName: 'beta', deletionPolicy: 'Retain' })],
  [RECONCILED, 'remove web-alpha', vacate('web-alpha')],
  [0, 'a tenant makes web-alpha with the labels of web', squat('web-alpha', 'web')],
  [0, 'apply web beta Delete', edit('web', { ...variant, secretName: 'beta' })],
]);

export const SCENE: fc.Arbitrary<History> = fc
  .tuple(
    fc.oneof(
      { weight: 5, arbitrary: takeOver },
      { weight: 3, arbitrary: behind },
      { weight: 2, arbitrary: madeAgain },
      { weight: 1, arbitrary: requested },
      { weight: 1, arbitrary: copied },
    ),
    fc.array(NEXT, { maxLength: 4 }),
  )
  .map(([steps, more]) => [...steps.map((step) => operation(...step)), ...more]);
