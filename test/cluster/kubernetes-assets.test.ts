// How the programs of an API server are found and built. Go is a stand-in here, for a real build takes minutes; the cache,
// the lock and the rename are the script's own.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../until.ts';

const SCRIPT = join(import.meta.dirname, '../../scripts/kubernetes-assets.mjs');
const PROGRAMS = ['etcd', 'kube-apiserver', 'kubectl'];
const NODE_PROGRAMS = ['coredns', 'kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubelet', 'pause'];

describe('the programs of an API server', () => {
  let folder: string;
  let cache: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'grantry-assets-'));
    cache = join(folder, 'cache', 'grantry-kubernetes');
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'go.mod'), 'module k8s.io/kubernetes\ngo 1.24.0\nrequire k8s.io/api v0.0.0\n');
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  /** A program for the PATH. */
  function program(name: string, lines: string): void {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  }

  /** A Go that builds, after these lines, programs that only tell a version. */
  function installGo(beforeBuild = ''): void {
    program(
      'go',
      `case $1 in
        mod) echo '{"GoMod": "${folder}/go.mod"}' ;;
        build) echo build >> ${folder}/builds
          ${beforeBuild}
          while [ "$1" != -o ]; do shift; done
          printf '#!/bin/sh\\necho stand-in\\n' > "$2"; chmod +x "$2" ;;
      esac`,
    );
  }

  function start(environment: Readonly<Record<string, string>> = {}, args: readonly string[] = []) {
    const path = [join(folder, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter);
    const child = spawn(process.execPath, [SCRIPT, ...args], {
      env: { PATH: path, XDG_CACHE_HOME: join(folder, 'cache'), ...environment },
      detached: true,
    });
    const run = { output: '', errors: '', kill: () => process.kill(-(child.pid ?? 0), 'SIGKILL') };
    child.stdout.on('data', (chunk) => {
      run.output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      run.errors += chunk;
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { ...run, run, ended };
  }

  const builds = () => readFileSync(join(folder, 'builds'), 'utf8').split('\n').length - 1;

  it('are taken from KUBEBUILDER_ASSETS, and nothing else is tried when one is not there', async () => {
    installGo();
    for (const name of PROGRAMS) program(name, 'echo given');
    const given = { KUBEBUILDER_ASSETS: join(folder, 'bin') };
    const complete = start(given);
    expect([await complete.ended, complete.run.output]).toEqual([0, `${join(folder, 'bin')}\n`]);
    rmSync(join(folder, 'bin', 'etcd'));
    const incomplete = start(given);
    expect([await incomplete.ended, incomplete.run.output]).toEqual([1, '']);
    expect(incomplete.run.errors).toContain('etcd');
  });

  it('are not taken from a folder where one does not run', async () => {
    for (const name of PROGRAMS) program(name, name === 'kubectl' ? 'exit 126' : 'echo given');
    const { ended, run } = start({ KUBEBUILDER_ASSETS: join(folder, 'bin') });
    expect(await ended).toBe(1);
    expect(run.errors).toContain('kubectl');
  });

  it('are built once, by one of two runs that start together', async () => {
    installGo('sleep 0.3');
    const both = [start(), start()];
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
    for (const { run } of both) expect(run.output).toBe(`${join(cache, 'v1.34.4')}\n`);
    expect(builds()).toBe(PROGRAMS.length);
    expect(readdirSync(cache)).toEqual(['v1.34.4']);
    expect(await start().ended).toBe(0);
    expect(builds()).toBe(PROGRAMS.length);
  });

  it('are not taken half-built: not after a failure, not after a kill', async () => {
    installGo('case "$*" in *kube-apiserver*) echo no such package >&2; exit 1 ;; esac');
    const failed = start();
    expect([await failed.ended, failed.run.output]).toEqual([1, '']);
    expect(failed.run.errors).toMatch(/no such package[\s\S]*kube-apiserver/);
    expect(readdirSync(cache)).toEqual([]);

    installGo('case "$*" in *kube-apiserver*) touch "$0.reached"; sleep 60 ;; esac');
    const killed = start();
    await until('it builds', () => readdirSync(join(folder, 'bin')).includes('go.reached'));
    killed.run.kill();
    await killed.ended;
    expect(readdirSync(cache)).not.toContain('v1.34.4');

    installGo();
    expect(await start().ended).toBe(0);
    expect(readdirSync(cache)).toEqual(['v1.34.4']);
  });

  it('are what setup-envtest has, where it is installed', async () => {
    for (const name of PROGRAMS) program(name, 'echo from setup-envtest');
    program('setup-envtest', `echo ${join(folder, 'bin')}`);
    const { ended, run } = start();
    expect([await ended, run.output]).toEqual([0, `${join(folder, 'bin')}\n`]);
  });

  it('stand beside those that a node needs besides, of which only what is lacking is built', async () => {
    installGo();
    expect(await start().ended).toBe(0);
    const node = start({}, ['--node']);
    expect([await node.ended, node.run.output]).toEqual([0, `${join(cache, 'v1.34.4')}\n`]);
    const all = readdirSync(join(cache, 'v1.34.4')).sort();
    expect(all).toEqual([...PROGRAMS, ...NODE_PROGRAMS].sort());
    expect(builds()).toBe(all.length);

    rmSync(join(cache, 'v1.34.4', 'kubelet'));
    expect(await start({}, ['--node']).ended).toBe(0);
    expect(await start().ended).toBe(0);
    expect(builds()).toBe(all.length + 1);
  });
});
