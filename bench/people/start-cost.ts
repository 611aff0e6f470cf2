// What a start costs with an identity provider, and what without: `node bench/people/start-cost.ts [ROUNDS] [TREE]`. CPU of a
// server from nothing, and memory, two seconds after it answers, in alternation; of another copy of the sources, too, if one is given.

import { setTimeout as sleep } from 'node:timers/promises';
import { manifestFolder, startGrantry } from '../grantry-server.ts';
import { stopAll } from '../load/pinned-process.ts';
import { summarize } from '../statistics.ts';
import { startProvider } from './openid-provider.ts';

const ROUNDS = Number(process.argv[2] ?? 9);
const [, , , tree] = process.argv;
/** For what a start leaves to be done after the first answer. */
const SETTLED = 2000;

interface Cost {
  readonly cpuMilliseconds: number;
  readonly megabytes: number;
}

try {
  const { origin } = await startProvider();
  const plain = manifestFolder();
  const withOne = manifestFolder({ provider: origin });
  const starts: Readonly<Record<string, () => Promise<Cost>>> = {
    'without a provider': () => costOf({ folder: plain }),
    'with one provider': () => costOf({ folder: withOne }),
    ...(tree !== undefined && { 'without a provider, of the other tree': () => costOf({ folder: plain, tree }) }),
  };
  const rounds: Record<string, Cost>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const order = round % 2 === 0 ? Object.entries(starts) : Object.entries(starts).toReversed();
    const costs: Record<string, Cost> = {};
    for (const [name, start] of order) costs[name] = await start();
    rounds.push(costs);
  }
  for (const name of Object.keys(starts)) {
    print(name, rounds, ({ [name]: cost, 'without a provider': base }) => [cost, base] as [Cost, Cost]);
  }
} finally {
  stopAll();
}
process.exit(0);

async function costOf(options: Parameters<typeof startGrantry>[0]): Promise<Cost> {
  const server = await startGrantry(options);
  await sleep(SETTLED);
  const cost = { cpuMilliseconds: server.cpuMicroseconds() / 1000, megabytes: server.residentMegabytes() };
  await server.stop();
  return cost;
}

/** @param pick of a round: the cost, and what it is divided by */
function print(
  name: string,
  rounds: readonly Record<string, Cost>[],
  pick: (round: Record<string, Cost>) => [Cost, Cost],
): void {
  const median = (figure: (cost: Cost, base: Cost) => number) =>
    summarize(rounds.map((round) => figure(...pick(round)))).median;
  const cpu = `${median(({ cpuMilliseconds }) => cpuMilliseconds).toFixed(0)} ms`;
  const memory = `${median(({ megabytes }) => megabytes).toFixed(1)} MB`;
  const ratios = [
    median((cost, base) => cost.cpuMilliseconds / base.cpuMilliseconds),
    median((cost, base) => cost.megabytes / base.megabytes),
  ].map((ratio) => ratio.toFixed(2));
  console.log(`${name.padEnd(40)} ${cpu.padStart(8)} ${memory.padStart(10)}  ratios ${ratios.join(' and ')}`);
}
