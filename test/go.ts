// Go, as tests of programs in it find it.

import { spawnSync } from 'node:child_process';

/** The program; undefined where there is none. */
export const GO_PROGRAM = ['go', '/usr/local/go/bin/go'].find(
  (program) => spawnSync(program, ['version']).status === 0,
);
