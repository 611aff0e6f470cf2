// The rows of the result: which measurements are divided by which, and what is asked of the quotient.

import { type Summary, summarize } from './statistics.ts';

/** One workload in one round. */
export interface Measurement {
  /** CPU time of the servers for one request. */
  readonly cpuMicroseconds: number;
  /** CPU time of Redis for one request; 0 where it has no part. */
  readonly redisMicroseconds: number;
  readonly requestsPerSecond: number;
  readonly p50Milliseconds: number;
  readonly p99Milliseconds: number;
}

/** Everything measured in one round: the workloads by name, and the signature. */
export interface Round {
  readonly workloads: Readonly<Record<string, Measurement>>;
  readonly signatureMicroseconds: number;
}

/** What is asked of a figure. Where the goal is the smaller of the two, smaller is better. */
interface Target {
  readonly floor: number;
  readonly goal: number;
}

interface RowDefinition {
  readonly name: string;
  /** The workloads that it needs. */
  readonly needs: readonly string[];
  /** Undefined for a figure that is reported only. */
  readonly target: Target | undefined;
  readonly ratio: (measured: (workload: string) => Measurement, signatureMicroseconds: number) => number;
}

const OURS = 'client credentials';
const PEER = 'client credentials of the peer';
const EMPTY = 'empty POST';
const LOCAL = 'refresh of a local person';
const OF_PROVIDER = 'refresh of a person of a provider';
const ONE = 'refresh by one replica';
const TWO = 'refresh by two replicas';

/** Rows of this tree, and of the peer. */
export const ROWS: readonly RowDefinition[] = [
  {
    name: 'client credentials against the peer',
    needs: [OURS, PEER],
    target: { floor: 3, goal: 5 },
    ratio: (measured) => measured(PEER).cpuMicroseconds / measured(OURS).cpuMicroseconds,
  },
  {
    name: 'client credentials against the limit',
    needs: [OURS, EMPTY],
    target: { floor: 0.5, goal: 0.7 },
    ratio: (measured, signature) => (signature + measured(EMPTY).cpuMicroseconds) / measured(OURS).cpuMicroseconds,
  },
  {
    name: 'p99 of client credentials against the peer',
    needs: [OURS, PEER],
    target: { floor: 0.35, goal: 0.25 },
    ratio: (measured) => measured(OURS).p99Milliseconds / measured(PEER).p99Milliseconds,
  },
  {
    name: 'introspection of a JWT against an empty POST',
    needs: ['introspection', EMPTY],
    target: { floor: 0.5, goal: 0.8 },
    ratio: (measured) => measured(EMPTY).cpuMicroseconds / measured('introspection').cpuMicroseconds,
  },
  ...onRedis('private_key_jwt', { floor: 2, goal: 3 }),
  {
    name: 'p99 of private_key_jwt against the peer',
    needs: ['private_key_jwt', 'private_key_jwt of the peer'],
    target: undefined,
    ratio: (measured) =>
      measured('private_key_jwt').p99Milliseconds / measured('private_key_jwt of the peer').p99Milliseconds,
  },
  ...onRedis('DPoP', { floor: 2, goal: 3 }),
  ...onRedis('refresh', { floor: 3.3, goal: 4.5 }),
  ...onRedis('redeem', { floor: 3.3, goal: 4.5 }),
  ...onRedis('sign-in', { floor: 2.5, goal: 3.5 }),
  ...onRedis('renewed sign-in', { floor: 2.5, goal: 3.5 }),
  ...onRedis('userinfo', { floor: 1.5, goal: 2.5 }),
  {
    name: 'people of a provider against local ones',
    needs: [LOCAL, OF_PROVIDER],
    target: { floor: 0.85, goal: 0.95 },
    ratio: (measured) => measured(LOCAL).cpuMicroseconds / measured(OF_PROVIDER).cpuMicroseconds,
  },
  {
    name: 'people of a provider against local ones, Redis included',
    needs: [LOCAL, OF_PROVIDER],
    target: undefined,
    ratio: (measured) => withRedis(measured(LOCAL)) / withRedis(measured(OF_PROVIDER)),
  },
  {
    name: 'replicas: two against one, by CPU',
    needs: [ONE, TWO],
    target: { floor: 1.8, goal: 1.95 },
    ratio: (measured) => (2 * measured(ONE).cpuMicroseconds) / measured(TWO).cpuMicroseconds,
  },
  {
    name: 'replicas: two against one, per second',
    needs: [ONE, TWO],
    target: undefined,
    ratio: (measured) => measured(TWO).requestsPerSecond / measured(ONE).requestsPerSecond,
  },
];

/** A grant with its state in Redis: by what is asked for, then by what else there is to know. */
function onRedis(ours: string, target: Target): readonly RowDefinition[] {
  const peer = `${ours} of the peer`;
  const needs = [ours, peer];
  return [
    {
      name: `${ours} against the peer`,
      needs,
      target,
      ratio: (measured) => measured(peer).cpuMicroseconds / measured(ours).cpuMicroseconds,
    },
    {
      name: `${ours} against the peer, Redis included`,
      needs,
      target: undefined,
      ratio: (measured) => withRedis(measured(peer)) / withRedis(measured(ours)),
    },
    {
      name: `${ours} against the peer, per second`,
      needs,
      target: undefined,
      ratio: (measured) => measured(ours).requestsPerSecond / measured(peer).requestsPerSecond,
    },
  ];
}

/** What the flows cost in another copy of the sources / in this one. */
export const TREE_ROWS: readonly RowDefinition[] = ['client credentials', 'redeem', 'refresh'].flatMap((ours) => {
  const other = `${ours} of the other tree`;
  const row = (name: string, cost: (measurement: Measurement) => number): RowDefinition => ({
    name,
    needs: [ours, other],
    target: undefined,
    ratio: (measured) => cost(measured(other)) / cost(measured(ours)),
  });
  return [
    row(`${ours}: the other tree against this one`, ({ cpuMicroseconds }) => cpuMicroseconds),
    row(`${ours}: the other tree against this one, Redis included`, withRedis),
  ];
});

function withRedis({ cpuMicroseconds, redisMicroseconds }: Measurement): number {
  return cpuMicroseconds + redisMicroseconds;
}

/** How a figure stands to what is asked of it. */
export type Verdict = 'goal' | 'floor' | 'below';

/** A row of the result. */
export interface Row extends Summary {
  readonly name: string;
  readonly floor?: number;
  readonly goal?: number;
  readonly verdict?: Verdict;
}

/** The workloads that the rows whose name contains one of `texts` need, in the order they are measured. */
export function workloadsFor(texts: readonly string[], rows = ROWS): readonly string[] {
  return [...new Set(matching(texts, rows).flatMap((row) => row.needs))];
}

/** The rows whose name contains one of `texts`. Ratios are taken inside each round, then summarized over all rounds. */
export function rowsOf(rounds: readonly Round[], texts: readonly string[], rows = ROWS): readonly Row[] {
  return matching(texts, rows).map(({ name, target, ratio }) => {
    const ratios = rounds.map(({ workloads, signatureMicroseconds }) =>
      ratio((workload) => {
        const measurement = workloads[workload];
        if (measurement === undefined) throw new Error(`${workload} was not measured`);
        return measurement;
      }, signatureMicroseconds),
    );
    const summary = summarize(ratios);
    return { name, ...summary, ...(target && { ...target, verdict: verdictOn(summary.median, target) }) };
  });
}

/** Whether a name is among those asked for; an empty text is in every name. */
export function isAsked(name: string, texts: readonly string[]): boolean {
  return texts.some((text) => name.includes(text));
}

export function verdictOn(value: number, { floor, goal }: Target): Verdict {
  const reaches = (target: number) => (goal > floor ? value >= target : value <= target);
  if (reaches(goal)) return 'goal';
  return reaches(floor) ? 'floor' : 'below';
}

function matching(texts: readonly string[], rows: readonly RowDefinition[]): readonly RowDefinition[] {
  return rows.filter((row) => isAsked(row.name, texts));
}
