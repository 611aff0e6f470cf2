// `npm run check`: format and lint, types, unused exports and dependencies, the layer table. Runs all of them, then
// names those that found something.

import { join } from 'node:path';
import { installPackages, modernNode, run } from './toolchain.mjs';

installPackages();
const node = modernNode();

const CHECKS = {
  'format and lint': ['@biomejs/biome/bin/biome', 'ci', '.'],
  types: ['typescript/bin/tsc', '--project', '.'],
  'unused exports and dependencies': ['knip/bin/knip.js'],
  'layer table': ['vitest/vitest.mjs', 'run', '--project=fast', 'test/architecture.test.ts'],
};

const found = Object.entries(CHECKS).filter(([name, [tool, ...args]]) => {
  console.log(`\n== ${name}`);
  return run(node, [join('node_modules', tool), ...args]) !== 0;
});

console.log(found.length === 0 ? '\ncheck: all good' : `\ncheck: failed: ${found.map(([name]) => name).join(', ')}`);
process.exitCode = found.length === 0 ? 0 : 1;
