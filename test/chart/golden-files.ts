// The form of the golden files: a base in full, and for each other rendering a diff against it, object by object, in which a line
// added to one object of the base moves no other hunk. rendering.test.ts compares them.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import type { Manifest } from '../cluster/setup/cluster.ts';

/** The file with the order of the objects, first in a diff: the lines added and removed are the objects added and removed. */
const ORDER = '(objects)';

/** A unified diff of the objects of two renderings, each a file `Kind/namespace/name`; of a removed object only the name. */
export function diffOf(base: string, rendering: string, show: string): string {
  return inFolder((folder) => {
    writeObjects(join(folder, 'base'), base);
    writeObjects(join(folder, show), rendering);
    const format = [
      '--no-color',
      '--no-ext-diff',
      '--no-renames',
      '--no-prefix',
      '--patience',
      '--unified=2',
      '--diff-filter=d',
    ];
    // The hashes of an index line change with every line of the base.
    return git(folder, ['diff', '--no-index', ...format, 'base', show]).replaceAll(/^index .*\n/gm, '');
  });
}

/** The rendering that a diff makes of its base. @throws when the diff is of another base */
export function patched(base: string, diff: string): string {
  return inFolder((folder) => {
    writeObjects(folder, base);
    git(folder, ['apply'], diff);
    const order = readFileSync(join(folder, ORDER), 'utf8').trimEnd().split('\n');
    return order.map((path) => `---\n${readFileSync(join(folder, path), 'utf8')}`).join('');
  });
}

function writeObjects(folder: string, rendering: string): void {
  const objects = rendering
    .split(/^---\n/m)
    .filter((text) => text !== '')
    .map((text) => {
      const { kind, metadata } = parse(text) as Manifest;
      return { path: [kind, metadata.namespace, metadata.name].filter(Boolean).join('/'), text };
    });
  const order = objects.map(({ path }) => `${path}\n`).join('');
  for (const { path, text } of [{ path: ORDER, text: order }, ...objects]) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    // Of two objects of one name the second would replace the first.
    writeFileSync(file, text, { flag: 'wx' });
  }
}

function inFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-golden-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** git without the configuration of the user, the system, and a repository above. 1 is the exit code of a diff with differences. */
function git(folder: string, args: readonly string[], input = ''): string {
  const env = {
    PATH: process.env.PATH,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: dirname(folder),
  };
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: folder, env, input, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0 && !(args[0] === 'diff' && status === 1)) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout;
}
