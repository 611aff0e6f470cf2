// `npm run bench`: measures in alternating rounds, prints the ratios beside those of the last committed result, if there is
// one, and writes them to a file of their own.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { type Count, countAll } from './counts.ts';
import { measureAgain } from './load/measure.ts';
import { runPinned, SERVER_CORE, stopAll } from './load/pinned-process.ts';
import { type Measurement, ROWS, type Round, type Row, rowsOf, TREE_ROWS, workloadsFor } from './rows.ts';
import { summarize } from './statistics.ts';
import { type Workload, workloads } from './workloads.ts';

const RESULTS = 'bench/results';
const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;

const { values: flags } = parseArgs({
  allowNegative: true,
  options: {
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '8' },
    families: { type: 'string', default: '100000' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: true },
    against: { type: 'string' },
  },
});
const seconds = Number(flags.seconds);
const asked = flags.only.split(',');
const table = workloads(flags.against);
const definitions = flags.against === undefined ? ROWS : TREE_ROWS;

try {
  if (!(Number(flags.rounds) >= 1 && seconds > 0 && Number(flags.families) >= 1)) {
    throw new TypeError('--rounds, --seconds and --families need a positive number');
  }
  const rounds = await measureRounds(Number(flags.rounds));
  const startRefresh = () => start('refresh');
  const families = Number(flags.families);
  const counts = flags.against === undefined ? await countAll(asked, { families, startRefresh }) : [];
  const rows = rowsOf(rounds, asked, definitions);
  if (rows.length + counts.length === 0) throw new TypeError(`no row of the benchmark contains "${flags.only}"`);
  print(rounds, rows, counts);
  if (flags.write) write(rounds, rows, counts);
} finally {
  stopAll();
}
// Connections to servers that are gone would be made again and again.
process.exit(0);

async function measureRounds(count: number): Promise<readonly Round[]> {
  const names = workloadsFor(asked, definitions);
  if (names.length === 0) return [];
  const running: [string, Workload][] = [];
  for (const name of names) running.push([name, await start(name)]);
  const rates = new Map<string, number>();
  const warmUp = { seconds: Math.min(seconds, WARM_UP_SECONDS), connections: CONNECTIONS, rates };
  for (const [name, workload] of running) await measureAgain(name, workload, warmUp);
  const rounds: Round[] = [];
  for (let index = 0; index < count; index += 1) {
    // A slow drift of the machine falls on both sides alike when every other round runs backwards.
    const order = index % 2 === 0 ? running : running.toReversed();
    const measured: Record<string, Measurement> = {};
    for (const [name, workload] of order) {
      measured[name] = await measureAgain(name, workload, { seconds, connections: CONNECTIONS, rates });
    }
    const signatureMicroseconds = (await runPinned(SERVER_CORE, 'bench/signature-cost.ts', {})) as number;
    rounds.push({ workloads: measured, signatureMicroseconds });
    console.log(`round ${index + 1} of ${count} is done`);
  }
  return rounds;
}

async function start(name: string): Promise<Workload> {
  const workload = await table[name]?.();
  if (workload === undefined) throw new TypeError(`there is no workload "${name}"`);
  return workload;
}

function print(rounds: readonly Round[], rows: readonly Row[], counts: readonly Count[]): void {
  if (rounds.length > 0) printMeasured(rounds);
  const last = lastResult();
  if (rows.length > 0) console.log(`\n${'ratio'.padEnd(50)}  median  quartiles      floor   goal`);
  for (const { name, median, lowerQuartile, upperQuartile, floor = '', goal = '', verdict = '' } of rows) {
    const quartiles = `${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)}`;
    const before = last?.rows.find((row) => row.name === name);
    const change = before === undefined ? '' : `  was ${before.median.toFixed(2)}`;
    const figures = `${median.toFixed(2).padStart(7)}  ${quartiles.padEnd(11)} ${String(floor).padStart(7)} ${String(goal).padStart(6)}`;
    console.log(`${name.padEnd(50)} ${figures}  ${verdict}${change}`);
  }
  if (counts.length > 0) console.log(`\n${'count'.padEnd(50)}   value                     goal`);
  for (const { name, value, goal = '', verdict = '', parts } of counts) {
    const before = last?.counts?.find((count) => count.name === name);
    const change = before === undefined ? '' : `  was ${before.value}`;
    const figures = `${String(value).padStart(7)} ${String(goal).padStart(28)}`;
    console.log(`${name.padEnd(50)} ${figures}  ${verdict}${change}`);
    if (parts !== undefined) console.log(`  ${JSON.stringify(parts)}`);
  }
}

function printMeasured(rounds: readonly Round[]): void {
  console.log(`\n${'measured'.padEnd(50)} CPU/request  CPU of Redis    requests/s      p50      p99`);
  for (const name of Object.keys(rounds[0]?.workloads ?? {})) {
    const median = (pick: (measurement: Measurement) => number) =>
      summarize(rounds.flatMap(({ workloads: all }) => all[name] ?? []).map(pick)).median;
    const cpu = `${median((m) => m.cpuMicroseconds).toFixed(1)} µs`;
    const redis = `${median((m) => m.redisMicroseconds).toFixed(1)} µs`;
    const throughput = median((m) => m.requestsPerSecond).toFixed(0);
    const p50 = `${median((m) => m.p50Milliseconds).toFixed(1)} ms`;
    const p99 = `${median((m) => m.p99Milliseconds).toFixed(1)} ms`;
    console.log(
      `${name.padEnd(50)} ${cpu.padStart(11)} ${redis.padStart(13)} ${throughput.padStart(13)} ${p50.padStart(8)} ${p99.padStart(8)}`,
    );
  }
  const signature = summarize(rounds.map((round) => round.signatureMicroseconds)).median;
  console.log(`${'one ES256 signature'.padEnd(50)} ${`${signature.toFixed(1)} µs`.padStart(11)}`);
}

function write(rounds: readonly Round[], rows: readonly Row[], counts: readonly Count[]): void {
  const time = new Date().toISOString();
  const file = `${RESULTS}/${time.slice(0, 19).replaceAll(':', '')}.json`;
  const settings = { rounds: rounds.length, seconds, connections: CONNECTIONS };
  const machine = { cpu: cpus()[0]?.model, node: process.versions.node };
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(
    file,
    `${JSON.stringify({ time, commit: git('rev-parse', 'HEAD'), machine, settings, rows, counts, rounds }, null, 2)}\n`,
  );
  console.log(`\nwritten to ${file}`);
}

function lastResult(): { readonly rows: readonly Row[]; readonly counts?: readonly Count[] } | undefined {
  const file = git('ls-tree', '--name-only', 'HEAD', `${RESULTS}/`)
    .split('\n')
    .filter((path) => path.endsWith('.json'))
    .sort()
    .at(-1);
  return file === undefined ? undefined : JSON.parse(git('show', `HEAD:${file}`));
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}
