// `npm run check`: format and lint, types, unused exports and dependencies, the layer table, crds/ against the schemas, the
// generated pages, the list of words, the hashes of packages. Runs all of them, then names those that found something.

import { join } from 'node:path';
import { installPackages, modernNode, root, run } from './toolchain.mjs';

installPackages();
const node = modernNode();

const CHECKS = {
  'format and lint': ['node_modules/@biomejs/biome/bin/biome', 'ci', '.'],
  types: ['node_modules/typescript/bin/tsc', '--project', '.'],
  'unused exports and dependencies': ['node_modules/knip/bin/knip.js'],
  'layer table': ['node_modules/vitest/vitest.mjs', 'run', '--project=fast', 'test/architecture.test.ts'],
  CRDs: ['scripts/crds.ts', '--check'],
  'reference pages': ['scripts/documents/crd-reference.mjs', '--check'],
  'scope page': ['scripts/documents/scope-page.mjs', '--check'],
  words: ['scripts/lint/words.mjs'],
  'hashes of packages': ['scripts/lint/lock-files.mjs'],
};

const found = Object.entries(CHECKS).filter(([name, [tool, ...args]]) => {
  console.log(`\n== ${name}`);
  return run(node, [join(root, tool), ...args]) !== 0;
});

console.log(found.length === 0 ? '\ncheck: all good' : `\ncheck: failed: ${found.map(([name]) => name).join(', ')}`);
process.exitCode = found.length === 0 ? 0 : 1;
