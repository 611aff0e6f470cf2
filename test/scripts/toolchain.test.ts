// Which Node runs the scripts. Checked by running one.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const toolchain = join(import.meta.dirname, '../../scripts/toolchain.mjs');

it('a running Node that is new enough is taken, though npm installed one', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'grantry-node-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const node = join(folder, 'node');
  copyFileSync(process.execPath, node);
  const lines = `import { modernNode } from ${JSON.stringify(toolchain)}; process.stdout.write(modernNode());`;
  expect(execFileSync(node, ['--input-type=module', '--eval', lines], { encoding: 'utf8' })).toBe(node);
});
