// `npm run bench:growth`: what a request costs, how long it takes and what memory is held, by the number of clients and of
// connections. Prints one table in Markdown; `--page` puts it into docs/performance.md, too.

import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { measureAgain } from '../load/measure.ts';
import { stopAll } from '../load/pinned-process.ts';
import { redisVersion, usedBytes } from '../redis-server.ts';
import { isAsked, type Measurement } from '../rows.ts';
import { quantile } from '../statistics.ts';
import { startGrowing } from '../workloads.ts';
import { markdownTable, writeTable } from './page.ts';

const RESULTS = 'bench/results/growth';
const WARM_UP_SECONDS = 2;

const { values: flags } = parseArgs({
  options: {
    clients: { type: 'string', default: '1,1000,20000' },
    connections: { type: 'string', default: '1,32,256' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    page: { type: 'boolean', default: false },
  },
});
const seconds = Number(flags.seconds);
const rounds = Number(flags.rounds);
const connectionCounts = numbersOf(flags.connections);

/** One line of the table. */
interface Cell {
  readonly request: string;
  readonly clients: number;
  readonly connections: number;
  readonly measurement: Measurement;
  /** After the last load of this line; megabytes. */
  readonly residentMegabytes: number;
  readonly redisMegabytes: number;
  readonly redisVersion: string;
}

try {
  if (!(rounds >= 1 && seconds > 0)) throw new TypeError('--rounds and --seconds need a positive number');
  const cells: Cell[] = [];
  for (const clients of numbersOf(flags.clients)) cells.push(...(await measureSize(clients)));
  if (cells.length === 0) throw new TypeError(`no request of the table contains "${flags.only}"`);
  const table = tableOf(cells);
  console.log(table);
  if (flags.page)
    writeTable('growth', table, `Redis ${cells[0]?.redisVersion}, ${rounds} × ${seconds} s for each line`);
  write(cells);
} finally {
  stopAll();
}
// Connections to servers that are gone would be made again and again.
process.exit(0);

/** Every request with every number of connections, against one server of so many clients. */
async function measureSize(clients: number): Promise<readonly Cell[]> {
  const { server, redis, workloads } = await startGrowing(clients);
  console.error(`${clients} clients: ${server.residentMegabytes().toFixed(0)} MB before the load`);
  const version = await redisVersion(redis);
  const cells: Cell[] = [];
  const rates = new Map<string, number>();
  for (const [request, workload] of Object.entries(workloads)) {
    if (!isAsked(request, flags.only.split(','))) continue;
    for (const connections of connectionCounts) {
      const name = `${request}, ${connections} connections`;
      await measureAgain(name, workload, { seconds: Math.min(seconds, WARM_UP_SECONDS), connections, rates });
      const measured: Measurement[] = [];
      for (let round = 0; round < rounds; round += 1) {
        measured.push(await measureAgain(name, workload, { seconds, connections, rates }));
      }
      const residentMegabytes = server.residentMegabytes();
      const redisMegabytes = (await usedBytes(redis)) / 1e6;
      const measurement = medians(measured);
      const memory = { residentMegabytes, redisMegabytes };
      cells.push({ request, clients, connections, measurement, ...memory, redisVersion: version });
      console.error(`${clients} clients, ${name}: done`);
    }
  }
  await server.stop();
  return cells;
}

/** The median of each figure over the rounds. */
function medians(measured: readonly Measurement[]): Measurement {
  const median = (figure: keyof Measurement) =>
    quantile(
      measured.map((measurement) => measurement[figure]),
      0.5,
    );
  return {
    cpuMicroseconds: median('cpuMicroseconds'),
    redisMicroseconds: median('redisMicroseconds'),
    requestsPerSecond: median('requestsPerSecond'),
    p50Milliseconds: median('p50Milliseconds'),
    p99Milliseconds: median('p99Milliseconds'),
  };
}

function tableOf(cells: readonly Cell[]): string {
  const heads = [
    'request',
    'clients',
    'connections',
    'server, µs',
    'Redis, µs',
    'requests/s and core',
    'requests/s',
    'p50, ms',
    'p99, ms',
    'server, MB',
    'Redis, MB',
  ];
  const lines = cells.map(({ request, clients, connections, measurement, residentMegabytes, redisMegabytes }) => [
    request,
    String(clients),
    String(connections),
    measurement.cpuMicroseconds.toFixed(0),
    measurement.redisMicroseconds.toFixed(0),
    (1e6 / measurement.cpuMicroseconds).toFixed(0),
    measurement.requestsPerSecond.toFixed(0),
    measurement.p50Milliseconds.toFixed(1),
    measurement.p99Milliseconds.toFixed(1),
    residentMegabytes.toFixed(0),
    redisMegabytes.toFixed(0),
  ]);
  return markdownTable(heads, lines);
}

function write(cells: readonly Cell[]): void {
  const time = new Date().toISOString();
  const file = `${RESULTS}/${time.slice(0, 19).replaceAll(':', '')}.json`;
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(file, `${JSON.stringify({ time, settings: { rounds, seconds }, cells }, null, 2)}\n`);
  console.error(`written to ${file}`);
}

function numbersOf(text: string): readonly number[] {
  const numbers = text.split(',').map(Number);
  if (!numbers.every((number) => number >= 1)) throw new TypeError(`"${text}" is no list of positive numbers`);
  return numbers;
}
