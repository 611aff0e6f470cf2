// The Python that has the client libraries which tests try (`scripts/client-libraries/python.mjs` installs them at the first use).

import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/client-libraries/python.mjs');
const { status, stdout } = spawnSync(process.execPath, [SCRIPT], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});

/** The program. */
export const PYTHON = stdout.trim();

/** As `describe`; skipped where the libraries cannot be had, unless CI demands them. */
export function describePython(name: string, suite: () => void): void {
  if (status === 0) describe(name, suite);
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('has the client libraries of Python', () => {
        throw new Error('they cannot be installed');
      });
    });
  } else describe.skip(`${name} (the client libraries of Python cannot be had)`, suite);
}

/** Runs a program of Python. @returns what it prints */
export async function runPython(program: string, cwd: string): Promise<string> {
  const { stdout: printed } = await promisify(execFile)(PYTHON, ['-c', program], { cwd });
  return printed.trim();
}
