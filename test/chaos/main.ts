// `npm run test:chaos`: the long form. Acts of 25 rounds over every form of Redis until so many rounds were run; prints the
// seed, each round, and what happened how often. `--seed` chooses the same faults and the same clients again.

import { endProcesses } from '../processes/grantry-process.ts';
import { isBlind } from './checker.ts';
import { CommandLineError, parseCommandLine, type Run, USAGE } from './command-line.ts';
import type { Operation } from './history.ts';
import { narrate } from './narration.ts';
import { type ActReport, type RoundReport, runAct } from './rounds.ts';
import { SeededRandom } from './seeded-random.ts';

const ROUNDS_OF_AN_ACT = 25;

const { seed, rounds, replicas, grounds, fault } = askedFor();

console.log(`seed ${seed}, ${rounds} rounds, ${replicas} replicas of grantry`);
const random = new SeededRandom(seed);
const reports: ActReport[] = [];
let done = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
try {
  for (let act = 0; done < rounds; act++) {
    const ground = grounds[act % grounds.length];
    if (ground === undefined) throw new RangeError('no ground');
    const ofAct = Math.min(ROUNDS_OF_AN_ACT, rounds - done);
    console.log(`\n${ground}: ${ofAct} rounds`);
    const report = await runAct({
      ground,
      rounds: ofAct,
      seed: Math.floor(random.next() * 2 ** 32),
      replicas,
      ...(fault !== undefined && { faults: [fault] }),
      observe: printRound,
    });
    reports.push(report);
    done += report.rounds.length;
    if (report.violations.length > 0) {
      console.log(narrate(report));
      process.exitCode = 1;
      break;
    }
  }
  printTable(reports);
} finally {
  await endProcesses();
}
console.log(process.exitCode === 1 ? `\nBROKEN; again with --seed ${seed}` : `\nevery promise kept; seed ${seed}`);

/** Ends with 2 where that is nothing that can be run. */
function askedFor(): Run {
  try {
    const run = parseCommandLine(process.argv.slice(2));
    if (run !== 'help') return run;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    console.error(`test:chaos: ${error.message}`);
    process.exit(2);
  }
}

function printRound({ round, fault, recovery, failing, operations, violations }: RoundReport): void {
  const verdict = violations.length === 0 ? 'ok' : `${violations.length} BROKEN`;
  const times = `the last fails ${Math.round(failing)} ms after Redis recovers, all serve after ${Math.round(recovery)} ms`;
  console.log(`  ${round}. ${fault}: ${operations} requests, ${times}, ${verdict}`);
}

function printTable(all: readonly ActReport[]): void {
  const ofRounds = Map.groupBy(
    all.flatMap((report) => report.rounds),
    ({ fault }) => fault,
  );
  console.log(
    '\nMilliseconds after Redis recovers: until all replicas serve, and until the last request is sent that fails.\n',
  );
  console.log('| fault | rounds | requests | all serve: median, most | the last fails: median, most |');
  console.log('| --- | --- | --- | --- | --- |');
  for (const [fault, list] of [...ofRounds].sort()) {
    const requests = list.reduce((sum, { operations }) => sum + operations, 0);
    const recoveries = medianAndMost(list.map(({ recovery }) => recovery));
    const failures = medianAndMost(list.map(({ failing }) => failing));
    console.log(`| ${fault} | ${list.length} | ${requests} | ${recoveries} | ${failures} |`);
  }
  const operations = all.flatMap((report) => report.operations);
  console.log('\n| request | answer | times | slowest (ms) |\n| --- | --- | --- | --- |');
  for (const [what, those] of [...Map.groupBy(operations, wordsOf)].sort()) {
    const slowest = Math.max(...those.map(({ begin, end }) => end - begin));
    console.log(`| ${what} | ${those.length} | ${Math.round(slowest)} |`);
  }
  const alerts = all.reduce((sum, report) => sum + report.alerts, 0);
  const grants = new Set(operations.map(({ grantId }) => grantId)).size;
  console.log(`\n${operations.length} requests about ${grants} grants, ${alerts} alerts`);
  const blind = all.flatMap((report) => report.operations.filter((each) => isBlind(each, report.faults)));
  console.log(`asked and answered while the state was unknown: ${blind.length}`);
}

function medianAndMost(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  return [sorted[sorted.length >> 1], sorted.at(-1)].map((time = 0) => Math.round(time)).join(', ');
}

function wordsOf({ kind, intent, seen }: Operation): string {
  return `${kind}${intent === 'misuse' ? ' (misuse)' : ''} | ${seen.kind}`;
}
