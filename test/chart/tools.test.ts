// What README's cluster section takes for granted, fetched by the script that it names.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const LINE = 'eval "$(scripts/cluster tools)"';

it('the line of README for a machine without Helm and kubectl → both are on the PATH of the shell', async () => {
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain(LINE);
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(':') };
  const versions = `${LINE} && command -v helm kubectl && helm version --short && kubectl version --client`;
  const { stdout } = await promisify(execFile)('bash', ['-c', versions], { cwd: ROOT, env });
  const [helm = '', kubectl = '', version, client] = stdout.split('\n');
  expect([dirname(helm), version, client]).toEqual([
    dirname(kubectl),
    expect.stringMatching(/^v4\./),
    expect.stringMatching(/^Client Version: v1\./),
  ]);
});
