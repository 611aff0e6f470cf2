// The modules of Go that tests try, at the versions and sums of go/go.mod and go/go.sum, into the cache of Go, once. By itself: `node
// scripts/client-libraries/go.mjs` prints the Go that builds with them on stdout, and everything else on stderr.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goProgram } from '../go.mjs';
import { mayFetch } from '../tests/fetching.mjs';

/** Finds or fetches them. Answers `{ go }`, the program, or `{ missing }`, a sentence. */
export function goClients() {
  const go = goProgram();
  if (go === undefined) return { missing: 'the client libraries of Go cannot be had: install Go 1.25 or newer' };
  const cwd = join(import.meta.dirname, 'go');
  const env = { ...process.env, ...(!mayFetch() && { GOPROXY: 'off' }) };
  const { status } = spawnSync(go, ['mod', 'download'], { cwd, env, stdio: ['ignore', 2, 2] });
  return status === 0 ? { go } : { missing: 'the client libraries of Go cannot be had: go mod download failed' };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { go, missing } = goClients();
  if (missing !== undefined) console.error(`grantry: ${missing}`);
  else console.log(go);
  process.exitCode = missing === undefined ? 0 : 1;
}
