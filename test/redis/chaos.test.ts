// The short form of `npm run test:chaos`: each fault once, on one server and on a primary with two replicas under Sentinels.

import { afterAll, expect, it } from 'vitest';
import { narrate } from '../chaos/narration.ts';
import { runAct } from '../chaos/rounds.ts';
import { endProcesses } from '../processes/grantry-process.ts';
import { describeRedis } from './servers.ts';

const SEED = 20_261_121;

const ON_ONE_SERVER = [
  'replies are swallowed',
  'replies are cut off',
  'Redis drops its clients',
  'the memory of Redis is full',
  'Redis is stopped for a while',
  'Redis is killed and comes back with its file',
  'a replica of grantry is killed',
  'Redis is killed and comes back empty',
];

const UNDER_SENTINELS = [
  'fail-over to a lagging replica',
  'the primary is stopped, replaced, and wakes up',
  'a replica of Redis is stopped for a while',
  'the primary restarts empty and empties its replicas',
];

describeRedis('whatever happens to Redis, two replicas of grantry', () => {
  afterAll(endProcesses);

  it.each([
    ['standalone', ON_ONE_SERVER],
    ['sentinel', UNDER_SENTINELS],
    [
      'sentinel, acknowledged by one replica',
      ['fail-over to a lagging replica', 'a replica of Redis is stopped for a while'],
    ],
  ] as const)(
    'keep every promise to their clients: %s',
    async (ground, faults) => {
      const report = await runAct({ ground, faults, seed: SEED, rounds: faults.length, replicas: 2 });
      expect(narrate(report)).toBe('');
      expect(report.rounds).toHaveLength(faults.length);
      const answers = new Set(report.operations.map(({ kind, seen }) => `${kind} ${seen.kind}`));
      for (const seen of ['redeem granted', 'refresh granted', 'refresh unavailable', 'introspect active']) {
        expect(answers).toContain(seen);
      }
    },
    120_000,
  );
});
