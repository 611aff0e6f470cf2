// The hook that pre-commit finds in a clone of this repository, run as pre-commit runs it: the entry of the clone, in
// another repository.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { folderOfTest, machineClient } from '../manifests/a-folder.ts';

const clone = join(import.meta.dirname, '../..');

interface Hook {
  readonly id: string;
  readonly entry: string;
  readonly language: string;
  readonly pass_filenames: boolean;
}
const hooks: readonly Hook[] = parse(readFileSync(join(clone, '.pre-commit-hooks.yaml'), 'utf8'));

/** Runs the hook in a repository with these files. */
async function commit(
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<{ readonly code: number; readonly output: string }> {
  const folder = await folderOfTest(files);
  const [hook] = hooks;
  // `script` is a program of the clone, and no names of files are added to its arguments.
  expect(hook).toMatchObject({ id: 'grantry-check', language: 'script', pass_filenames: false });
  return await new Promise((resolve) => {
    execFile(join(clone, hook?.entry ?? ''), args, { cwd: folder }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
        output: stdout + stderr,
      });
    });
  });
}

const GOOD = machineClient('job', '  scopes: [default/read]\n');
const WRONG = machineClient('job', '  scopes: [other/read]\n');

it('lets good manifests be committed', async () => {
  expect(await commit({ 'clients/job.yaml': GOOD })).toEqual({ code: 0, output: expect.stringContaining('no faults') });
});

it('refuses a fault, and says where it is', async () => {
  const { code, output } = await commit({ 'clients/job.yaml': WRONG });
  expect(code).toBe(1);
  expect(output).toContain('clients/job.yaml:');
  expect(output).toContain('PolicyViolation');
});

it('checks the folders that its arguments name, with the policies of others', async () => {
  const policy = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: wide}
spec:
  namespaceSelector: {}
  allow: {scopes: ['**']}
`;
  const files = { 'clients/job.yaml': WRONG, 'policies/wide.yaml': policy, 'chart/broken.yaml': '{{ not: yaml' };
  expect(await commit(files)).toMatchObject({ code: 1 });
  expect(await commit(files, ['clients', '--policies', 'policies'])).toMatchObject({ code: 0 });
});
