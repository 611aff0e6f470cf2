// Random histories of owners, other parties, networks and machines against the controllers of client secrets.
//
// What it takes to see a guard fail that is taken out, in runs: the write is pinned to a version (owner's Secret 117, verifiers
// 10), the first write is a POST (15), names are written down first (10), a leader goes on with the staged secret (3), it tries
// again with the secret that it could not write (14; of a rotation 269 by seed 2101), replicas accept it first (167), a text that
// another party stages is none (115), a state that replaces a lost one is another (115), a taken name ends nothing (241), a former
// Secret stays for its grace (13), what is under a former name is replaced by a rotation (172), a grace begins with the write
// (1812), the lease is checked before a write (594), what is left over is removed (38), a value is found under a former key (3).
// And in the runs of the scenes: the API server is asked for the client before its verifiers are removed (16), before an orphaned
// Secret is taken over (16), before a request counts (46) and before another name does (18), a copy of another writer stays (3), the
// first verifiers are written by a POST (53).

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { modelRuns } from '../model-runs.ts';
import { HISTORY, type History, run } from './operations.ts';
import { SCENE } from './scenes.ts';

/** What a new seed finds is rarely the fault of the change that runs it: new seeds are for `npm run test:model`. */
const SEED = 12;

describe('any history of clients and their Secrets under two controllers', () => {
  it.each<[string, string, fc.Arbitrary<History>, number]>([
    ['client secrets', 'accepts what can be read, makes one value a rotation, and converges', HISTORY, 300],
    ['client secrets of watches that are behind', 'does so as a leader begins, or an owner changes it', SCENE, 60],
  ])('%s: %s', { timeout: 3_600_000 }, async (name, _, histories, runs) => {
    const property = fc.asyncProperty(fc.nat(), histories, async (seed, history) => {
      expect(await run(seed, history)).toEqual([]);
    });
    // Of a whole stack there is nothing to read, and taking one costs more than a call.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    onTestFinished(() => {
      Error.stackTraceLimit = limit;
    });
    await fc.assert(property, modelRuns(name, runs, SEED));
  });
});
