// The JVM with the client library which tests try (`scripts/client-libraries/java.mjs` fetches it at the first use).

import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/client-libraries/java.mjs');
const { status, stdout } = spawnSync(process.execPath, [SCRIPT], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});
const libraries = stdout.trim();

/** As `describe`; skipped where the library cannot be had, unless CI demands it. */
export function describeJava(name: string, suite: () => void): void {
  if (status === 0) describe(name, suite);
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('has the client library of Java', () => {
        throw new Error('it cannot be fetched');
      });
    });
  } else describe.skip(`${name} (the client library of Java cannot be had)`, suite);
}

/** Compiles a program against the library. @param folder where its classes go */
export function compileJava(file: string, folder: string): void {
  execFileSync('javac', ['-proc:none', '-cp', libraries, '-d', folder, file], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** Runs a compiled program with these arguments. @returns what it prints */
export async function runJava(name: string, folder: string, words: readonly string[]): Promise<string> {
  // Only the first, quick compiler of the JVM: the program ends before the second pays.
  const quick = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  const { stdout: printed } = await promisify(execFile)('java', [
    ...quick,
    '-cp',
    `${folder}:${libraries}`,
    name,
    ...words,
  ]);
  return printed.trim();
}
