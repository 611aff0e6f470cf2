// What `npm test` installs by itself, and what it says about the rest.

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const SET_UP = JSON.stringify(join(ROOT, 'scripts/tests/set-up.mjs'));
// The machine of the test may have another user.
const AS_ROOT = `process.getuid = () => 0; const { setUpNeeded } = await import(${SET_UP}); console.log(JSON.stringify(await setUpNeeded()));`;

/** A folder of programs with these, and an apt-get that installs redis-server if it is asked to. */
function machine(...programs: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'set-up-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['sh', 'rm', 'chmod', 'touch', 'cat', ...programs]) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    symlinkSync(found === '' ? '/bin/sh' : found, join(folder, name));
  }
  const apt = join(folder, 'apt-get');
  const install = `case "$*" in *redis-server*) cp="${join(folder, 'redis-server')}"; touch "$cp"; chmod 755 "$cp";; esac`;
  writeFileSync(apt, `#!/bin/sh\necho "$*" >> ${join(folder, 'asked')}\n${install}\n`);
  chmodSync(apt, 0o755);
  return {
    environment: { PATH: folder, HOME: folder },
    asked: () => (existsSync(join(folder, 'asked')) ? readFileSync(join(folder, 'asked'), 'utf8') : ''),
  };
}

const NODE = [process.execPath, '--input-type=module', '--eval', AS_ROOT] as const;

it('given no redis-server and no terminal → it is named, then installed, and no other package is', () => {
  const { environment, asked } = machine('openssl', 'curl');
  const { stdout, stderr } = spawnSync(NODE[0], NODE.slice(1), { env: environment, encoding: 'utf8' });
  expect(stderr.split('\n')[0]).toMatch(/from Debian: redis-server$/);
  expect(asked().match(/ install .*/g)).toEqual([
    expect.stringMatching(/ install .*--no-install-recommends redis-server$/),
  ]);
  expect(JSON.parse(stdout)).toEqual([]);
});

it.each([
  ['n', 0],
  ['y', 1],
])('given no redis-server and %s on a terminal → %i installations', async (answer, installations) => {
  const { environment, asked } = machine('openssl', 'curl');
  const command = NODE.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const child = spawn('/usr/bin/script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...environment, SHELL: '/bin/sh' },
  });
  const printed = text(child.stdout);
  child.stdin.write(`${answer}\n`);
  expect(await printed).toMatch(installations === 0 ? /redis-server is missing; / : /^\[\]/m);
  expect(asked().match(/ install .*/g) ?? []).toHaveLength(installations);
});

it('given all that most tests need → nothing is said and nothing installed', () => {
  const { environment, asked } = machine('openssl', 'curl', 'redis-server');
  const { stdout, stderr } = spawnSync(NODE[0], NODE.slice(1), { env: environment, encoding: 'utf8' });
  expect([stdout, stderr, asked()]).toEqual(['[]\n', '', '']);
});

it('npm test with a file → its tests, and nothing is left out', () => {
  const { CI: _, ...env } = process.env;
  const words = [join(ROOT, 'scripts/test.mjs'), 'test/oauth/values/backoff.test.ts'];
  const { status, stdout } = spawnSync(process.execPath, words, { env, encoding: 'utf8' });
  expect([status, stdout]).toEqual([
    0,
    expect.stringMatching(/Ran:\n {2}test\/oauth\/values: 2\n\n2 passed, 0 failed/),
  ]);
});

it('given a part of CI that there is not → exit code 2', () => {
  expect(spawnSync(join(ROOT, '.ci/run'), ['tests']).status).toBe(2);
});
