// The Go that has the client libraries which tests try (`scripts/client-libraries/go.mjs` fetches them at the first use).

import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';

const LIBRARIES = join(import.meta.dirname, '../../scripts/client-libraries');
const { status, stdout } = spawnSync(process.execPath, [join(LIBRARIES, 'go.mjs')], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});

/** As `describe`; skipped where the libraries cannot be had, unless CI demands them. */
export function describeGo(name: string, suite: () => void): void {
  if (status === 0) describe(name, suite);
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('has the client libraries of Go', () => {
        throw new Error('they cannot be fetched');
      });
    });
  } else describe.skip(`${name} (the client libraries of Go cannot be had)`, suite);
}

/** Builds the files of a folder into a program in it. Nothing but the libraries and their sums is taken. */
export async function buildGo(folder: string, program: string): Promise<void> {
  for (const file of ['go.mod', 'go.sum']) copyFileSync(join(LIBRARIES, 'go', file), join(folder, file));
  const words = ['build', '-mod=readonly', '-o', program, '.'];
  await promisify(execFile)(stdout.trim(), words, { cwd: folder });
}
