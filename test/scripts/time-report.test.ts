import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

it('a run of two projects → seconds, files and elapsed time of each, and the files in the order of their time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'report-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const waiting = (milliseconds: number) =>
    `import { it } from 'vitest';\nit('waits', () => new Promise((end) => setTimeout(end, ${milliseconds})));\n`;
  writeFileSync(join(folder, 'short.test.js'), waiting(0));
  writeFileSync(join(folder, 'long.test.js'), waiting(1500));
  writeFileSync(join(folder, 'failing.test.js'), 'throw new Error("does not load");\n');
  const project = (name: string, ...files: readonly string[]) => ({ test: { name, include: files } });
  const projects = [project('quick', 'short.test.js'), project('slow', 'long.test.js', 'failing.test.js')];
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify({ test: { projects } })};\n`);
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const report = join(ROOT, 'scripts/tests/time-report.mjs');
  const { stdout } = spawnSync(process.execPath, [vitest, 'run', '--root', folder, `--reporter=${report}`], {
    encoding: 'utf8',
  });
  const lines = stdout.trim().split('\n');
  expect(lines).toEqual([
    'Seconds by project, of all its files and from its first start to its last end:',
    expect.stringMatching(/^ {2}slow: \d+\.\d in 2 files, \d+\.\d elapsed$/),
    expect.stringMatching(/^ {2}quick: \d+\.\d in 1 file, \d+\.\d elapsed$/),
    'Seconds of the 3 slowest files:',
    expect.stringMatching(/^ {2}\d+\.\d long\.test\.js$/),
    expect.stringMatching(/^ {2}\d+\.\d (short|failing)\.test\.js$/),
    expect.stringMatching(/^ {2}\d+\.\d (short|failing)\.test\.js$/),
  ]);
  const [slow, longest] = [lines[1], lines[4]].map((line) => Number(line?.match(/\d+\.\d/)?.[0]));
  expect(slow).toBeGreaterThanOrEqual(1.5);
  expect(longest).toBeGreaterThanOrEqual(1.5);
});
