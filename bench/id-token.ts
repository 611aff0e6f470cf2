// What an ID token costs by algorithm: `node bench/id-token.ts [ROUNDS]`. Prints CPU time, the part of it that holds the event
// loop, and the ratio to the CPU of ES256 in the same round.

import type { IdTokenCost, IdTokenOrder } from './id-token-cost.ts';
import { runPinned, SERVER_CORE } from './load/pinned-process.ts';
import { summarize } from './statistics.ts';

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const;
const COUNT = 3200;

const rounds: Record<string, IdTokenCost>[] = [];
for (let round = 0; round < Number(process.argv[2] ?? 9); round += 1) {
  const costs: Record<string, IdTokenCost> = {};
  for (const algorithm of round % 2 === 0 ? ALGORITHMS : ALGORITHMS.toReversed()) {
    const order: IdTokenOrder = { algorithm, count: COUNT };
    costs[algorithm] = (await runPinned(SERVER_CORE, 'bench/id-token-cost.ts', order)) as IdTokenCost;
  }
  rounds.push(costs);
}

console.log('algorithm    CPU      of it the loop   against ES256  quartiles');
for (const algorithm of ALGORITHMS) {
  const figure = (pick: (costs: Record<string, IdTokenCost>) => number) => summarize(rounds.map(pick));
  const { median: cpu } = figure((costs) => costs[algorithm]?.cpu ?? Number.NaN);
  const { median: loop } = figure((costs) => costs[algorithm]?.loop ?? Number.NaN);
  const ratio = figure((costs) => (costs[algorithm]?.cpu ?? Number.NaN) / (costs.ES256?.cpu ?? Number.NaN));
  const times = `${cpu.toFixed(0).padStart(6)} µs  ${loop.toFixed(0).padStart(11)} µs`;
  const quartiles = `${ratio.lowerQuartile.toFixed(1)}–${ratio.upperQuartile.toFixed(1)}`;
  console.log(`${algorithm.padEnd(9)} ${times}  ${ratio.median.toFixed(1).padStart(13)}  ${quartiles}`);
}
