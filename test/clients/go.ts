// The Go that has the client libraries which tests try (`scripts/client-libraries/go.mjs` fetches them at the first use).

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
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

/**
 * Builds the files of a folder into a program in it. Nothing but the libraries that are pinned is to be had.
 * @param lines for a shell, which make `go.mod`
 */
export async function buildGo(
  folder: string,
  { lines, program }: { readonly lines: string; readonly program: string },
): Promise<void> {
  const go = stdout.trim();
  // Go is often not on the PATH, and a cache is a source of modules by itself.
  const PATH = isAbsolute(go) ? [dirname(go), process.env.PATH].join(delimiter) : process.env.PATH;
  const environment = { ...process.env, PATH, GOPROXY: 'off', GOSUMDB: 'off', GOFLAGS: '' };
  await promisify(execFile)('sh', ['-ec', `${lines}\ngo build -o ${program} .`], { cwd: folder, env: environment });
  const [made, pinned] = [join(folder, 'go.sum'), join(LIBRARIES, 'go/go.sum')].map((file) =>
    readFileSync(file, 'utf8'),
  );
  if (made !== pinned) throw new Error('other modules than those that are pinned');
}
