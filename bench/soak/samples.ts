// What a soak samples, and its verdict on memory: the median of the last quarter against that of the second.

import type { GrantryServer } from '../grantry-server.ts';
import { type RedisServer, usedBytes } from '../redis-server.ts';
import { quantile } from '../statistics.ts';

/** From so many minutes on state has been at its largest before the second quarter begins. */
export const COMPARED_MINUTES = 8;

/** What is read at one time; megabytes and milliseconds. */
export interface Sample {
  readonly residentMegabytes: number;
  readonly heapMegabytes: number;
  readonly redisMegabytes: number;
  /** Since the sample before. */
  readonly delayP99: number;
  readonly delayMax: number;
}

/** How much each may grow, in per cent. The heap is read between two collections, so it varies most. */
const MOST_GROWTH = {
  residentMegabytes: { name: 'resident memory of the server', percent: 10 },
  heapMegabytes: { name: 'heap of the server', percent: 25 },
  redisMegabytes: { name: 'memory of Redis', percent: 10 },
} as const;

/** What became of one figure. */
export interface Growth {
  readonly text: string;
  readonly isFlat: boolean;
}

export async function takeSample(server: GrantryServer, redis: RedisServer): Promise<Sample> {
  const metrics = await metricsOf(server);
  const read = (name: string) => Number(new RegExp(`^grantry_nodejs_${name} (\\S+)`, 'm').exec(metrics)?.[1]);
  return {
    residentMegabytes: server.residentMegabytes(),
    heapMegabytes: read('heap_size_used_bytes') / 1e6,
    redisMegabytes: (await usedBytes(redis)) / 1e6,
    delayP99: 1000 * read('eventloop_lag_p99_seconds'),
    delayMax: 1000 * read('eventloop_lag_max_seconds'),
  };
}

/** The errors of Redis that the server counted, by reason: what an answer of 503 comes from. */
export async function storeErrorsOf(server: GrantryServer): Promise<string> {
  const lines = (await metricsOf(server)).matchAll(/^grantry_store_errors_total\{.*reason="(\w+)".*\} (\d+)$/gm);
  const counts = new Map<string, number>();
  for (const [, reason = '', count] of lines) counts.set(reason, (counts.get(reason) ?? 0) + Number(count));
  return [...counts].map(([reason, count]) => `${reason} ${count}`).join(', ') || 'none';
}

async function metricsOf({ adminOrigin }: GrantryServer): Promise<string> {
  return await (await fetch(`${adminOrigin}/metrics`)).text();
}

export function textOf({ residentMegabytes, heapMegabytes, redisMegabytes, delayP99, delayMax }: Sample): string {
  const memory = `${residentMegabytes.toFixed(0)} MB, heap ${heapMegabytes.toFixed(0)} MB, Redis ${redisMegabytes.toFixed(1)} MB`;
  return `${memory}, event loop p99 ${delayP99.toFixed(0)} ms, max ${delayMax.toFixed(0)} ms`;
}

/** Each figure of memory; none where there are too few samples. */
export function growthOf(samples: readonly Sample[]): readonly Growth[] {
  const quarter = Math.floor(samples.length / 4);
  if (quarter === 0) return [];
  const figures = Object.keys(MOST_GROWTH) as (keyof typeof MOST_GROWTH)[];
  return figures.map((figure) => {
    const median = (part: readonly Sample[]) =>
      quantile(
        part.map((sample) => sample[figure]),
        0.5,
      );
    const second = median(samples.slice(quarter, 2 * quarter));
    const last = median(samples.slice(-quarter));
    const { name, percent } = MOST_GROWTH[figure];
    const growth = 100 * (last / second - 1);
    const text = `${name}: ${second.toFixed(1)} MB in the second quarter, ${last.toFixed(1)} MB in the last: ${growth.toFixed(1)} % (at most ${percent} %)`;
    return { text, isFlat: last <= second * (1 + percent / 100) };
  });
}
