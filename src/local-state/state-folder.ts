// Whether `.grantry/` is this user's own. One that came with a checkout would hold signing keys that its author has,
// or a link by which grantry would write elsewhere.

import { execFile } from 'node:child_process';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StateError } from './state-error.ts';

/** How long Git may take, in milliseconds. Later the folder is taken for untracked. */
const GIT_TIME_LIMIT = 5000;
/** Bits of a mode that let other users in. */
const OTHERS = 0o077;

/**
 * Refuses a folder that is a link, of another user, open to others, or tracked by Git; one that is not there is fine.
 * @param path the folder
 * @param folders its own folders, which are held to the same, apart from Git
 * @throws StateError with the remedy
 */
export async function requireOwnFolder(path: string, folders: readonly string[]): Promise<void> {
  if (!(await isOwn(path))) return;
  for (const folder of folders) await isOwn(join(path, folder));
  const [tracked] = await trackedFiles(path);
  if (tracked === undefined) return;
  throw new StateError(
    path,
    'is tracked by Git, so others may have its keys; remove it (git rm -r .grantry) and start again',
  );
}

/** Whether it is a folder. @throws StateError where it is another user's work */
async function isOwn(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSymbolicLink()) throw new StateError(path, 'is a link, which is not followed; remove it');
  // Where it cannot be a folder, state is in memory.
  if (!found?.isDirectory()) return false;
  const user = process.getuid?.();
  // Windows has neither of the two.
  if (user === undefined) return true;
  if (found.uid !== user) {
    throw new StateError(
      path,
      `belongs to another user (${found.uid}); remove it, or chown it to you if its keys are yours`,
    );
  }
  if ((found.mode & OTHERS) !== 0) {
    const remedy = 'remove it, or, if its keys are yours, run chmod go= on it';
    throw new StateError(path, `is open to other users; ${remedy}`);
  }
  return true;
}

/** The first tracked files of the folder; none where there is no Git, or no repository. */
async function trackedFiles(path: string): Promise<readonly string[]> {
  // Without this option a program that the configuration of the checkout names would be run.
  const options = ['-c', 'core.fsmonitor=false', '--no-pager'];
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(
    'git',
    [...options, 'ls-files', '-z', '--', '.grantry'],
    { cwd: dirname(path), timeout: GIT_TIME_LIMIT, maxBuffer: 16 * 1024 * 1024 },
    (_error, stdout) => resolve(stdout),
  );
  return (await promise).split('\0').filter((file) => file !== '');
}
