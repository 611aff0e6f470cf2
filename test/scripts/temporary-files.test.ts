// A run of tests leaves nothing in the temporary folder.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../until.ts';

const ROOT = join(import.meta.dirname, '../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

it.each(['end', 'Ctrl-C'] as const)('a run until its %s → its temporary files are removed', async (how) => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-left-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(ROOT, 'test/scripts', `left-${process.pid}-${how}.test.ts`);
  onTestFinished(() => rmSync(file, { force: true }));
  const wait = how === 'end' ? '' : 'await new Promise(() => {});';
  writeFileSync(
    file,
    `import { mkdtempSync } from 'node:fs'; import { tmpdir } from 'node:os'; import { join } from 'node:path'; import { it } from 'vitest';
     it('leaves a folder', async () => { mkdtempSync(join(tmpdir(), 'left-')); ${wait} });`,
  );
  const child = spawn(process.execPath, [VITEST, 'run', '--project=servers', file], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: folder },
    stdio: 'ignore',
  });
  const ended = once(child, 'close');
  const left = () => readdirSync(folder).flatMap((run) => readdirSync(join(folder, run)));
  if (how === 'Ctrl-C') {
    await until('the test has made its folder', () => left().some((name) => name.startsWith('left-')));
    child.kill('SIGINT');
  }
  await ended;
  expect(existsSync(folder) && readdirSync(folder)).toEqual([]);
});
