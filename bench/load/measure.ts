// One measurement of one workload: its load runs to the end, and the CPU time of its servers is read before and after.

import type { Measurement } from '../rows.ts';
import type { Workload } from '../workloads.ts';
import { HEADERS } from './load-client.ts';
import type { LoadOrder, LoadReport } from './load-generator.ts';
import { runPinned } from './pinned-process.ts';

/** Requests per second that a load is prepared for before anything was seen. */
const FIRST_GUESS = 500;
/** So often in a row one measurement may fail before the run does. */
const MOST_FAILURES = 3;

/** What a load is. */
export interface Load {
  readonly seconds: number;
  /** Shared by the targets of the workload. */
  readonly connections: number;
  /** Requests per second as last seen, by name of the measurement; renewed. */
  readonly rates: Map<string, number>;
}

/**
 * Measures once. A measurement that failed, because the machine stalled for a moment, is thrown away and repeated.
 * @throws Error of the third failure in a row
 */
export async function measureAgain(name: string, workload: Workload, load: Load): Promise<Measurement> {
  for (let failed = 1; ; failed += 1) {
    try {
      return await measure(name, workload, load);
    } catch (error) {
      if (failed === MOST_FAILURES) throw error;
      console.log(`${name} is measured again: ${error instanceof Error ? error.message : error}`);
    }
  }
}

async function measure(name: string, workload: Workload, { seconds, connections, rates }: Load): Promise<Measurement> {
  const { targets, redis, loadCores } = workload;
  const each = connections / targets.length;
  const expected = Math.ceil((seconds * (rates.get(name) ?? FIRST_GUESS)) / targets.length);
  const orders: LoadOrder[] = [];
  for (const { url, headers = HEADERS, bodies } of targets) {
    orders.push({ url, headers, connections: each, bodies: await bodies(seconds, expected) });
  }
  const before = cpuOf(workload);
  const redisBefore = redis?.cpuMicroseconds() ?? 0;
  const reports = await Promise.all(
    orders.map(async (order) => (await runPinned(loadCores, 'bench/load/load-generator.ts', order)) as LoadReport),
  );
  const requests = sum(reports.map((report) => report.requests));
  const requestsPerSecond = sum(reports.map((report) => report.requests / report.seconds));
  rates.set(name, requestsPerSecond);
  return {
    cpuMicroseconds: (cpuOf(workload) - before) / requests,
    redisMicroseconds: ((redis?.cpuMicroseconds() ?? 0) - redisBefore) / requests,
    requestsPerSecond,
    p50Milliseconds: Math.max(...reports.map((report) => report.p50Milliseconds)),
    p99Milliseconds: Math.max(...reports.map((report) => report.p99Milliseconds)),
  };
}

function cpuOf({ targets }: Workload): number {
  return sum(targets.map(({ server }) => server.cpuMicroseconds()));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
