// How often a model test runs, and from which seed: both can be set, to repeat a failure or to run more.

import { randomInt } from 'node:crypto';

/**
 * MODEL_SEED and MODEL_RUNS, or what is given.
 * @param name of what is run, for the line with the seed
 * @param seed undefined: a new one each time
 */
export function modelRuns(
  name: string,
  runs: number,
  seed = randomInt(2 ** 31),
): { readonly seed: number; readonly numRuns: number } {
  const chosen = Number(process.env.MODEL_SEED ?? seed);
  console.info(`model run over ${name}: MODEL_SEED=${chosen}`);
  return { seed: chosen, numRuns: Number(process.env.MODEL_RUNS ?? runs) };
}
