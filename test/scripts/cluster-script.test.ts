// How `scripts/cluster` is called, and which cluster it takes. kind and Docker are stand-ins here that note how they were
// called; the cluster of our own is proven by the suite that runs on it (test/e2e/).

import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/cluster');
const NOT_READY = 3;
const USAGE = 2;

describe('scripts/cluster', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'grantry-cluster-script-'));
    mkdirSync(join(folder, 'bin'));
    symlinkSync(process.execPath, join(folder, 'bin', 'node'));
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  function installProgram(name: string, lines: string): void {
    const text = `#!/bin/sh\necho "${name} $*" >> ${folder}/calls\n${lines}\n`;
    writeFileSync(join(folder, 'bin', name), text, { mode: 0o755 });
  }

  /** A kind that has the clusters that were created with it, and a Docker that knows where they are. */
  function installKind(): void {
    installProgram(
      'kind',
      `case "$1 $2" in
        'get clusters') [ ! -e ${folder}/created ] || echo grantry ;;
        'create cluster') echo creating; : > ${folder}/created ;;
      esac`,
    );
    installProgram('docker', 'case $1 in inspect) echo 172.18.0.2 ;; *) echo working ;; esac');
  }

  /** Runs it with only these programs to be found. */
  function cluster(...args: readonly string[]): Promise<{ code: number; output: string; errors: string }> {
    const env = { PATH: join(folder, 'bin'), XDG_CACHE_HOME: join(folder, 'cache'), HOME: folder };
    return new Promise((resolve) => {
      execFile(SCRIPT, args, { env }, (error, output, errors) => {
        resolve({ code: error === null ? 0 : Number(error.code), output, errors });
      });
    });
  }

  /** What a shell does that evaluates the output, as the page says: whether it goes on. */
  function evaluated(line: string): string {
    const env = { PATH: join(folder, 'bin'), XDG_CACHE_HOME: join(folder, 'cache'), HOME: folder };
    const script = `${line} && echo went on || echo stopped`;
    return spawnSync('/bin/sh', ['-c', script], { env, encoding: 'utf8' }).stdout.trim();
  }

  const calls = () => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');

  it.each([[['start']], [['load']], [['load', 'a', 'b']], [['up', 'now']], [['constructor']]])(
    'refuses %j with its usage, and touches nothing',
    async (args) => {
      installKind();
      const { code, output, errors } = await cluster(...args);
      expect([code, output]).toEqual([USAGE, 'false\n']);
      expect(errors).toContain('usage:');
      expect(existsSync(join(folder, 'calls'))).toBe(false);
    },
  );

  it.each(['up', 'status', 'tools now', 'upp', ''])(
    'given a failure of %j → a shell that evaluates it stops',
    (words) => {
      installProgram('kind', '');
      expect(evaluated(`eval "$(${SCRIPT} ${words})"`)).toBe('stopped');
      rmSync(join(folder, 'bin', 'node'));
      expect(evaluated(`eval "$(${SCRIPT} ${words})"`)).toBe('stopped');
    },
  );

  it('given a cluster → the shell has what it needs and goes on', () => {
    installKind();
    expect(evaluated(`eval "$(${SCRIPT} up)" && echo $NODE_ADDRESS`)).toBe('172.18.0.2\nwent on');
  });

  it('names what is missing where it can make no cluster', async () => {
    const { code, output, errors } = await cluster();
    expect([code, output]).toEqual([1, 'false\n']);
    for (const way of ['kind', 'root', 'Debian']) expect(errors).toContain(way);
  });

  it('names Docker where kind is installed without it', async () => {
    installProgram('kind', '');
    const { code, errors } = await cluster('up');
    expect(code).toBe(1);
    expect(errors).toContain('docker is not');
  });

  it('takes kind where it is installed, once, and prints for a shell alone', async () => {
    installKind();
    const kubeconfig = join(folder, 'cache/grantry-cluster/kubeconfig');
    const printed = `export KUBECONFIG=${kubeconfig}\nexport NODE_ADDRESS=172.18.0.2\nexport KUBECTL=kubectl\n`;
    expect(await cluster('status')).toMatchObject({ code: NOT_READY, output: 'false\n' });
    expect(await cluster('load', 'a:b')).toMatchObject({ code: NOT_READY, output: 'false\n' });
    expect(await cluster()).toMatchObject({ code: 0, output: printed });
    expect(await cluster('up')).toMatchObject({ code: 0, output: printed });
    expect(await cluster('status')).toMatchObject({ code: 0, output: printed });
    expect(calls().filter((call) => call.startsWith('kind create'))).toHaveLength(1);
    expect(calls()).toContain('kind load docker-image redis:7 --name grantry');
  });

  it('writes the kubeconfig of a kind cluster again that is up', async () => {
    installKind();
    await cluster();
    rmSync(join(folder, 'calls'));
    await cluster();
    const kubeconfig = join(folder, 'cache/grantry-cluster/kubeconfig');
    expect(calls()).toContain(`kind export kubeconfig --name grantry --kubeconfig ${kubeconfig}`);
  });

  it('builds the image of the checkout and gives it to kind', async () => {
    installKind();
    expect(await cluster('image')).toMatchObject({ code: 0, output: '' });
    const checkout = join(import.meta.dirname, '../..');
    expect(calls().slice(-2)).toEqual([
      `docker build --tag grantry:e2e ${checkout}`,
      'kind load docker-image grantry:e2e --name grantry',
    ]);
  });

  it('says so when a step fails, and does not go on', async () => {
    installKind();
    installProgram('docker', 'exit 7');
    const { code, output, errors } = await cluster('image');
    expect([code, output]).toEqual([1, 'false\n']);
    expect(errors).toContain('docker pull');
    expect(calls().at(-1)).toBe('docker pull redis:7');
  });
});
