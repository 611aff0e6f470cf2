// The short form of `npm run test:chaos`: the faults that hurt most, once each, on every form of Redis. Its length is held by
// the number of rounds; on two idle cores one takes two to three seconds.

import { afterAll, expect, it } from 'vitest';
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

/** More belong into the long form. */
const MOST_ROUNDS = 13;

describeRedis('whatever happens to Redis, two replicas of grantry', () => {
  afterAll(endProcesses);

  it.each(ACTS)(
    'keep every promise to their clients: $ground',
    async ({ ground, faults }) => {
      const report = await runAct({ ground, faults, seed: SEED, rounds: faults.length, replicas: 2 });
      expect(narrate(report)).toBe('');
      expect(report.rounds).toHaveLength(faults.length);
      const answers = new Set(report.operations.map(({ kind, seen }) => `${kind} ${seen.kind}`));
      for (const seen of ['redeem granted', 'refresh granted', 'refresh unavailable', 'introspect active']) {
        expect(answers).toContain(seen);
      }
    },
    240_000,
  );

  it('are tried in few rounds', () => {
    expect(ACTS.flatMap(({ faults }) => faults).length).toBeLessThanOrEqual(MOST_ROUNDS);
  });
});
