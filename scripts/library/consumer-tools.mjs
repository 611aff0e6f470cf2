// What the library is tried with besides our own tools: the oldest Node and the oldest TypeScript that it is promised for, from
// the npm registry into our cache, once. By itself: `node scripts/library/consumer-tools.mjs` prints both programs on stdout, a
// line each, and everything else on stderr.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../cache-folder.mjs';
import { requireFetching } from '../tests/fetching.mjs';
import { npm } from './npm.mjs';

/** What `engines` of the packed manifest says. */
export const OLDEST_NODE = '22.10.0';
/** For its types. */
export const OLDEST_TYPESCRIPT = '5.8.3';

/** Finds or installs them. Answers `{ node, tsc }`, a program and a script for Node, or `{ missing }`, a sentence. */
export function consumerTools() {
  const folder = cacheFolder('grantry-consumer-tools', `node-${OLDEST_NODE}-typescript-${OLDEST_TYPESCRIPT}`);
  const isWindows = process.platform === 'win32';
  const platform = `node-${isWindows ? 'win' : process.platform}-${process.arch}`;
  try {
    if (!existsSync(join(folder, 'done'))) {
      requireFetching();
      installInto(folder, platform);
    }
    const modules = join(folder, 'node_modules');
    const node = join(modules, platform, 'bin', isWindows ? 'node.exe' : 'node');
    return { node, tsc: join(modules, 'typescript', 'bin', 'tsc') };
  } catch (error) {
    return { missing: `the oldest Node and TypeScript of the library cannot be had: ${error.message}` };
  }
}

function installInto(folder, platform) {
  const dependencies = { [platform]: OLDEST_NODE, typescript: OLDEST_TYPESCRIPT };
  console.error(`grantry: installing Node ${OLDEST_NODE} and TypeScript ${OLDEST_TYPESCRIPT} with npm`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  npm(['install', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error']);
  // The last step: what was interrupted is done again.
  mkdirSync(join(folder, 'done'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { node, tsc, missing } = consumerTools();
  if (missing !== undefined) console.error(`grantry: ${missing}`);
  else console.log(`${node}\n${tsc}`);
  process.exitCode = missing === undefined ? 0 : 1;
}
