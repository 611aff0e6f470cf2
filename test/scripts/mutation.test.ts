// `npm run test:mutate`: the faults that no test fails for are reported, and nothing else changes.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const FILE = 'src/oauth/values/pkce.ts';

/** @returns the exit code of the script, and what it prints */
function mutate(...args: readonly string[]): { code: number | null; output: string } {
  // As a person starts it, not from within a run of vitest.
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST') && name !== 'NODE_ENV');
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/mutation/run.mjs'), ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: Object.fromEntries(environment),
  });
  return { code: status, output: stdout + stderr };
}

it('given a file and its tests → the survivors are named, the score is written down, the checkout is as before', {
  timeout: 120_000,
}, () => {
  const before = readFileSync(join(ROOT, FILE), 'utf8');
  const { code, output } = mutate(FILE, '--tests', 'test/oauth/values/pkce.test.ts');
  expect([code, output]).toEqual([0, expect.stringContaining('% Mutation score')]);
  const report = JSON.parse(readFileSync(join(ROOT, 'test-results/mutation/report.json'), 'utf8'));
  const mutants: readonly { readonly status: string; readonly static: boolean }[] = report.files[FILE].mutants;
  const count = (status: string) => mutants.filter((mutant) => mutant.status === status).length;
  expect(count('Killed')).toBeGreaterThan(mutants.length / 2);
  // What a module makes while it loads: the tests of this file notice each such fault.
  const made = mutants.filter((mutant) => mutant.static);
  expect([made.length > 0, made.filter(({ status }) => status !== 'Killed')]).toEqual([true, []]);
  expect(output.split('[Survived]').length - 1).toBe(count('Survived'));
  expect(readFileSync(join(ROOT, FILE), 'utf8')).toBe(before);
  expect(existsSync(join(ROOT, 'test-results/mutation/copies'))).toBe(false);
});

it.each([[[]], [['src/oauth']], [['test/scope-page.test.ts']], [['src/main.ts']], [['--what', FILE]]])(
  'given %j → refused with a sentence, nothing is tried',
  (args) => {
    const { code, output } = mutate(...args);
    expect(code).toBe(1);
    expect(output).toMatch(/^grantry: .+\n$/);
  },
);
