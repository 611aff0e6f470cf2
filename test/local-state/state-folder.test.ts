// A hostile checkout: what of `.grantry` may have come with it.

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StateFiles } from '../../src/local-state/state-files.ts';

let directory: string;
let outside: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'grantry-checkout-'));
  outside = await mkdtemp(join(tmpdir(), 'grantry-outside-'));
  await writeFile(join(outside, 'mine'), 'a file of the user\n', { mode: 0o600 });
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await Promise.all([directory, outside].map((folder) => rm(folder, { recursive: true })));
});

const path = (name = '') => join(directory, '.grantry', name);
const mine = () => readFile(join(outside, 'mine'), 'utf8');
const git = (...args: readonly string[]) => execFileSync('git', ['-C', directory, ...args], { stdio: 'pipe' });

describe('the state folder of a checkout', () => {
  it.each(['', 'secrets', 'keys'])(
    'that has a link at .grantry/%s → refused, and nothing is written there',
    async (name) => {
      if (name !== '') await mkdir(path(), { mode: 0o700 });
      await symlink(outside, path(name));
      await expect(StateFiles.open(directory)).rejects.toThrow(/is a link/);
      expect(() => execFileSync('ls', [join(outside, '.gitignore')], { stdio: 'pipe' })).toThrow();
    },
  );

  it('whose .gitignore is a link → refused, and the file that it leads to stays as it was', async () => {
    await mkdir(path(), { mode: 0o700 });
    await symlink(join(outside, 'mine'), path('.gitignore'));
    await expect(StateFiles.open(directory)).rejects.toThrow(/\.gitignore is a link/);
    expect(await mine()).toBe('a file of the user\n');
  });

  it('with a link for a key, a secret or the marks → not read, and not written through', async () => {
    const state = await StateFiles.open(directory);
    for (const name of ['pepper', 'keys/a.pem', 'revoked-tokens']) await symlink(join(outside, 'mine'), path(name));
    await expect(state.keep('pepper', () => 'made')).rejects.toThrow(/is a link/);
    await expect(state.read('keys/a.pem')).rejects.toThrow(/is a link/);
    await expect(state.append('revoked-tokens', 'line')).rejects.toThrow(/is a link/);
    await symlink(join(outside, 'mine'), path(`keys/b.pem.${process.pid}.new`));
    await expect(state.replace('keys/b.pem', 'text')).rejects.toThrow(/is a link/);
    expect(await mine()).toBe('a file of the user\n');
  });

  it.each([0o750, 0o701, 0o707])('with the mode %o → refused with the remedy, until that is done', async (mode) => {
    await StateFiles.open(directory);
    await chmod(path(), mode);
    await expect(StateFiles.open(directory)).rejects.toThrow(/open to other users; .*chmod go=/);
    execFileSync('chmod', ['go=', path()]);
    expect((await StateFiles.open(directory)).memoryReason).toBeUndefined();
  });

  it('of another user → refused with the remedy', async () => {
    await StateFiles.open(directory);
    vi.spyOn(process, 'getuid').mockReturnValue((process.getuid?.() ?? 0) + 1);
    await expect(StateFiles.open(directory)).rejects.toThrow(/belongs to another user .*chown/);
  });

  it('that Git tracks → refused with the remedy, until that is done', async () => {
    git('init', '-q');
    const state = await StateFiles.open(directory);
    await state.keep('pepper', () => 'made');
    expect((await StateFiles.open(directory)).memoryReason).toBeUndefined();
    git('add', '-f', '.grantry/pepper');
    await expect(StateFiles.open(directory)).rejects.toThrow(/tracked by Git.*git rm -r \.grantry/);
    git('rm', '-q', '-r', '-f', '.grantry');
    expect((await StateFiles.open(directory)).memoryReason).toBeUndefined();
  });

  it('whose configuration names a program for Git to run → it is not run', async () => {
    git('init', '-q');
    await StateFiles.open(directory);
    const program = join(directory, 'program.sh');
    await writeFile(program, `#!/bin/sh\necho ran >> ${join(outside, 'mine')}\n`, { mode: 0o700 });
    git('config', 'core.fsmonitor', program);
    git('config', 'core.pager', program);
    // The configuration is one that works.
    git('ls-files', '--', '.grantry');
    expect(await mine()).toContain('ran');
    await writeFile(join(outside, 'mine'), '');
    await StateFiles.open(directory);
    expect(await mine()).toBe('');
  });

  it('where there is no Git → served', async () => {
    git('init', '-q');
    await (await StateFiles.open(directory)).keep('pepper', () => 'made');
    git('add', '-f', '.grantry/pepper');
    vi.stubEnv('PATH', outside);
    expect((await StateFiles.open(directory)).memoryReason).toBeUndefined();
  });
});
