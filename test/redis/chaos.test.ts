// The short form of `npm run test:chaos`: the faults that hurt most, once each, on every form of Redis. It takes less than a
// minute: on a machine that is too busy for all of them, as many as there is time for have to do, and one of each form at least.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { narrate } from '../chaos/narration.ts';
import { runAct } from '../chaos/rounds.ts';
import { endProcesses } from '../processes/grantry-process.ts';
import { describeRedis } from './servers.ts';

const SEED = 20_261_121;

const ACTS = [
  {
    ground: 'standalone',
    faults: [
      'replies are swallowed',
      'Redis drops its clients',
      'the memory of Redis is full',
      'the disk of Redis is full',
      'Redis is stopped for a while',
      'a replica of grantry is killed',
      'Redis is killed and comes back empty',
    ],
  },
  {
    ground: 'sentinel',
    faults: [
      'fail-over to a lagging replica',
      'the primary is stopped, replaced, and wakes up',
      'the primary restarts empty and empties its replicas',
    ],
  },
  {
    ground: 'sentinel, acknowledged by one replica',
    faults: ['fail-over to a replica that was cut off for long'],
  },
  {
    ground: 'cluster',
    faults: [
      'one primary of the Cluster is killed, its replica lagging',
      'one primary of the Cluster restarts empty and empties its replica',
    ],
  },
] as const;

/** How long all acts may take to begin their rounds, beside the first of each; each has its share. Milliseconds. */
const BUDGET = 45_000;

const ROUNDS = ACTS.map(({ faults }) => faults.length);
const PLANNED = ROUNDS.reduce((sum, rounds) => sum + rounds, 0);

describeRedis('whatever happens to Redis, two replicas of grantry', () => {
  let begun = 0;
  const answers = new Set<string>();
  beforeAll(() => {
    begun = performance.now();
  });
  afterAll(endProcesses);

  it.each(ACTS.map((act, index) => ({ ...act, index })))(
    'keep every promise to their clients: $ground',
    async ({ ground, faults, index }) => {
      const share = ROUNDS.slice(0, index + 1).reduce((sum, rounds) => sum + rounds, 0) / PLANNED;
      const until = begun + share * BUDGET;
      const report = await runAct({ ground, faults, seed: SEED, rounds: faults.length, replicas: 2, until });
      expect(narrate(report)).toBe('');
      const tried = report.rounds.map(({ fault }) => fault);
      expect(tried.length).toBeGreaterThan(0);
      expect(faults.slice(0, tried.length)).toEqual(tried);
      const own = new Set(report.operations.map(({ kind, seen }) => `${kind} ${seen.kind}`));
      for (const seen of ['redeem granted', 'refresh granted', 'introspect active']) expect(own).toContain(seen);
      for (const seen of own) answers.add(seen);
    },
    240_000,
  );

  it('said so while they could not reach it', () => {
    for (const seen of ['refresh unavailable', 'introspect unavailable']) expect(answers).toContain(seen);
  });
});
