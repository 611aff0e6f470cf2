// The client libraries of Python that tests try, from PyPI into a virtual environment in our cache, once. By itself: `node
// scripts/client-libraries/python.mjs` prints the Python that has them on stdout, and everything else on stderr.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../cache-folder.mjs';
import { longStep } from '../long-step.mjs';
import { requireFetching } from '../tests/fetching.mjs';

/** Each with its version; what they need comes with them. */
const LIBRARIES = [
  'Authlib==1.9.10',
  'Flask==3.1.3',
  'PyJWT[crypto]==2.15.1',
  'fastapi==0.165.0',
  'requests==2.34.2',
  'requests-oauth2client==1.8.0',
  'uvicorn==0.54.0',
];

/** Changes with the list above. */
const REVISION = createHash('sha256').update(JSON.stringify(LIBRARIES)).digest('hex').slice(0, 12);

/** Finds or installs them. Answers `{ python }`, the program that imports them, or `{ missing }`, a sentence. */
export function pythonClients() {
  const folder = cacheFolder('grantry-python', REVISION);
  const python = join(folder, 'bin', 'python3');
  try {
    if (!existsSync(join(folder, 'done'))) {
      requireFetching();
      installInto(folder);
    }
    return { python };
  } catch (error) {
    return { missing: `the client libraries of Python cannot be had: ${error.message}` };
  }
}

function installInto(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  longStep(`installing ${LIBRARIES.join(', ')} with pip into ${folder}`, 'half a minute', () => {
    run('python3', ['-m', 'venv', folder]);
    run(join(folder, 'bin', 'python3'), ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...LIBRARIES]);
  });
  // The last step: what was interrupted is done again.
  mkdirSync(join(folder, 'done'));
}

function run(program, words) {
  const { status, error } = spawnSync(program, words, { stdio: ['ignore', 2, 2] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${words.slice(0, 3).join(' ')} ended with ${status}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { python, missing } = pythonClients();
  if (missing !== undefined) console.error(`grantry: ${missing}`);
  else console.log(python);
  process.exitCode = missing === undefined ? 0 : 1;
}
