// `npm run test:model -- --seed N --runs M`: the random histories of grants and of client secrets, each M times from seed N.
// Without them: a new seed, which is printed, and as many runs as in `npm test`.

import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, installPackages, modernNode, run } from '../toolchain.mjs';

const options = { seed: { type: 'string' }, runs: { type: 'string' } };

installPackages();
const { seed, runs } = parsed();
const environment = {
  MODEL_SEED: String(randomInt(2 ** 31)),
  ...process.env,
  ...(seed !== undefined && { MODEL_SEED: seed }),
  ...(runs !== undefined && { MODEL_RUNS: runs }),
};
const vitest = join('node_modules', 'vitest', 'vitest.mjs');
const files = [join('test', 'model'), join('test', 'oauth', 'model')];
process.exitCode = run(modernNode(), [vitest, 'run', '--project', 'fast*', '--testTimeout=0', ...files], environment);

function parsed() {
  try {
    const { values } = parseArgs({ options });
    for (const [name, value] of Object.entries(values)) {
      if (!/^[0-9]+$/.test(value)) fail(`--${name} takes a number`);
    }
    return values;
  } catch (error) {
    return fail(error.message);
  }
}
