// npm for scripts: the one that runs them, else the one on the PATH.

import { spawnSync } from 'node:child_process';

/** Runs npm with all that it prints on stderr. @throws Error where it does not end well */
export function npm(words) {
  const own = process.env.npm_execpath;
  const options = { stdio: ['ignore', 2, 2], shell: own === undefined && process.platform === 'win32' };
  const { status, error } =
    own === undefined ? spawnSync('npm', words, options) : spawnSync(process.execPath, [own, ...words], options);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ${words[0]} ended with ${status}`);
}
