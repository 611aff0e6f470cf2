// The Go that comes with this machine, which others' programs are built with and their modules fetched by.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** A Go that runs; undefined where there is none. */
export function goProgram() {
  // Where it says itself that it is, or where its own installer puts it, which is often not on the PATH.
  const installed = join(process.env.GOROOT || '/usr/local/go', 'bin', 'go');
  return ['go', installed].find((go) => spawnSync(go, ['version']).status === 0);
}
