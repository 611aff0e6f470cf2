// The short form of `npm run test:chaos`: the faults that hurt most, once each, on every form of Redis. It takes less than a
// minute: on a machine that is too busy for all of them, as many of the less common ones as there is time for have to do.
// While one act is played, the servers of the next are started, and the last one's alerts are waited for.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { isBlind } from '../../chaos/checker.ts';
import { narrate } from '../../chaos/narration.ts';
import { type ActReport, type StartedAct, startAct } from '../../chaos/rounds.ts';
import { endProcesses } from '../../processes/grantry-process.ts';
import { describeRedis } from '../setup/servers.ts';

const SEED = 20_261_121;

/** What happens on each form of Redis: in any case, and as long as there is time for more. */
const ACTS = [
  {
    ground: 'standalone',
    always: [
      'Redis is stopped for a while',
      'Redis is killed and comes back with its file',
      'replies are swallowed',
      'Redis drops its clients',
      'the memory of Redis is full',
    ],
    more: ['the disk of Redis is full', 'a replica of grantry is killed', 'Redis is killed and comes back empty'],
  },
  {
    ground: 'sentinel',
    always: [
      'fail-over to a lagging replica',
      'the primary is stopped, replaced, and wakes up',
      'the primary restarts empty and empties its replicas',
    ],
    more: [],
  },
  {
    ground: 'cluster',
    always: [
      'one primary of the Cluster is killed, its replica lagging',
      'one primary of the Cluster restarts empty and empties its replica',
    ],
    more: [],
  },
  {
    ground: 'sentinel, acknowledged by one replica',
    always: ['fail-over to a replica that was cut off for long', 'all replicas of Redis are stopped for a while'],
    more: [],
  },
] as const;

/** When everything began, as far as this file can know. */
const BEGUN = performance.now();

/** How long after that rounds are begun that may be left out; each form has its share. Milliseconds. */
const BUDGET = 30_000;

/** How long after that alerts are waited for that have not come yet, in milliseconds. */
const ALERTS = 50_000;

const ROUNDS = ACTS.map(({ always, more }) => always.length + more.length);
const PLANNED = ROUNDS.reduce((sum, rounds) => sum + rounds, 0);

/** Until when the rounds of an act are begun. */
function endOf(index: number): number {
  const share = ROUNDS.slice(0, index + 1).reduce((sum, rounds) => sum + rounds, 0) / PLANNED;
  return BEGUN + share * BUDGET;
}

/** Starts the servers of an act while the one before it is played. */
function started(index: number): Promise<StartedAct> | undefined {
  const act = ACTS[index];
  if (act === undefined) return undefined;
  const { ground, always, more } = act;
  const faults = [...always, ...more];
  const starting = startAct({ ground, faults, seed: SEED, rounds: faults.length, replicas: 2 });
  starting.catch(() => {});
  return starting;
}

describeRedis('whatever happens to Redis, two replicas of grantry', () => {
  const answers = new Set<string>();
  const askedBlindly = new Set<string>();
  const checked: Promise<ActReport>[] = [];
  let next: Promise<StartedAct> | undefined;
  beforeAll(() => {
    next = started(0);
  });
  afterAll(async () => {
    await (await next)?.stop();
    await Promise.allSettled(checked);
    await endProcesses();
  });

  it.for(ACTS.map((act, index) => ({ ...act, index })))(
    'keep every promise to their clients: $ground',
    { timeout: 240_000 },
    async ({ ground, always, more, index }) => {
      const act = await next;
      if (act === undefined) throw new Error('the act was not started');
      next = started(index + 1);
      try {
        const report = await act.play(endOf(index), always.length);
        expect(narrate(report)).toBe('');
        const tried = report.rounds.map(({ fault }) => fault);
        expect(tried.slice(0, always.length)).toEqual(always);
        expect(more.slice(0, tried.length - always.length)).toEqual(tried.slice(always.length));
        const own = new Set(report.operations.map(({ kind, seen }) => `${kind} ${seen.kind}`));
        for (const seen of ['redeem granted', 'refresh granted', 'introspect active']) expect(own).toContain(seen);
        for (const seen of own) answers.add(seen);
        if (report.operations.some((each) => isBlind(each, report.faults))) askedBlindly.add(ground);
      } finally {
        checked.push(act.check(BEGUN + ALERTS).finally(() => act.stop()));
      }
    },
  );

  it('report every misuse', { timeout: 60_000 }, async () => {
    for (const report of await Promise.all(checked)) expect(narrate(report)).toBe('');
  });

  it('said so while they could not reach it', () => {
    for (const seen of ['refresh unavailable', 'introspect unavailable']) expect(answers).toContain(seen);
    // A Cluster is never unavailable as a whole.
    expect(askedBlindly).toContain('cluster');
  });
});
