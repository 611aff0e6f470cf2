// `npm run check` accepts a lock file by which `npm ci` verifies every package, and no other.

import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const HASH = `sha512-${'A'.repeat(86)}==`;

/** A checkout with the lock file of the project and one of an example with these packages. @returns what the check prints of it, and its exit code */
function check(packages: Record<string, object>): { code: number | null; output: string } {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
  copyFileSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'));
  // What npm installed has lock files of its own here and there; the hash of the package holds for those.
  mkdirSync(join(folder, 'node_modules/pkg'), { recursive: true });
  writeFileSync(
    join(folder, 'node_modules/pkg/package-lock.json'),
    '{"packages":{"node_modules/b":{"version":"1.0.0"}}}',
  );
  mkdirSync(join(folder, 'examples/program'), { recursive: true });
  writeFileSync(join(folder, 'examples/program/package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/lint/lock-files.mjs')], {
    encoding: 'utf8',
  });
  return { code: status, output: stdout + stderr };
}

it('a hash for every package → accepted; the project itself, links and bundled packages need none', () => {
  const { code, output } = check({
    '': { name: 'program' },
    'packages/part': { version: '1.0.0' },
    'node_modules/part': { resolved: 'packages/part', link: true },
    'node_modules/a': { version: '1.0.0', integrity: HASH },
    'node_modules/a/node_modules/b': { version: '1.0.0', inBundle: true },
  });
  expect([code, output]).toEqual([0, expect.stringContaining('examples/program/package-lock.json')]);
});

it.each([
  ['no hash', { version: '1.0.0' }],
  ['an optional package without a hash', { version: '1.0.0', optional: true }],
  ['a hash of a broken algorithm', { version: '1.0.0', integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }],
  ['half a hash', { version: '1.0.0', integrity: 'sha512-' }],
  ['a download address', { version: '1.0.0', integrity: HASH, resolved: 'https://packages.example/a.tgz' }],
])('a package with %s, in any lock file of the checkout → refused, by name', (_, entry) => {
  const { code, output } = check({ 'node_modules/a': entry, 'node_modules/b': { version: '1.0.0', integrity: HASH } });
  expect([code, output]).toEqual([1, expect.stringContaining('examples/program/package-lock.json: node_modules/a: ')]);
  expect(output).not.toContain('node_modules/b');
});

it('npm run check reads the lock files', () => {
  expect(readFileSync(join(ROOT, 'scripts/check.mjs'), 'utf8')).toContain("'scripts/lint/lock-files.mjs'");
});
