// `scripts/consumers/consumer-programs.mjs` with a Go of the test's own, and without the programs that it needs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/consumers/consumer-programs.mjs');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'grantry-consumer-programs-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** With an empty cache at first, and no program on the PATH but those in the folder. */
function run(name: string) {
  const env = { PATH: folder, GOROOT: folder, XDG_CACHE_HOME: join(folder, 'cache') };
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, name], { encoding: 'utf8', env });
  return { status, program: stdout.trim(), errors: stderr.split('\n') };
}

/** A `go` that notes each build, in a shell without other programs. */
function writeGo(...build: readonly string[]): void {
  const lines = ['#!/bin/sh', '[ "$1" = version ] && exit 0', `echo "$*" >>${folder}/builds`, ...build, ''];
  writeFileSync(join(folder, 'go'), lines.join('\n'), { mode: 0o755 });
}

const builds = () => readFileSync(join(folder, 'builds'), 'utf8').trim().split('\n').length;

it('given two runs → one build, and the same program', () => {
  // The file after `-o` is the last word but one.
  writeGo('while [ $# -gt 2 ]; do shift; done', 'echo built >"$1"');
  const first = run('kubelogin');
  expect(first).toMatchObject({ status: 0 });
  expect(readFileSync(first.program, 'utf8')).toBe('built\n');
  expect(run('kubelogin')).toEqual({ status: 0, program: first.program, errors: [''] });
  expect(builds()).toBe(1);
});

it('given a build that fails → a failure, nothing in the cache, and another build at the next run', () => {
  writeGo('exit 1');
  for (const _ of [1, 2]) expect(run('kubelogin')).toMatchObject({ status: 1, program: '' });
  expect(readdirSync(join(folder, 'cache/grantry-consumers'))).toEqual([]);
  expect(builds()).toBe(2);
});

it.each(['go-oidc', 'spring-boot', 'no-such-program'])('given a machine without what %s needs → a failure', (name) => {
  const { status, program, errors } = run(name);
  expect({ status, program, lines: errors.length }).toEqual({ status: 1, program: '', lines: 2 });
});
