// How the programs of an API server are found and built. Go is a stand-in here, for a real build takes minutes; the cache,
// the lock and the rename are the script's own.

import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
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

  /** A Go that builds, after these lines, programs that only print a version. */
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
      // Go of this machine's own is not to be found, wherever it is.
      env: { PATH: path, GOROOT: join(folder, 'no-go'), XDG_CACHE_HOME: join(folder, 'cache'), ...environment },
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
    // It has these, and no network: of the newest it could only say that it cannot ask.
    program('setup-envtest', `[ "$2" = 1.34.x ] || exit 2; echo ${join(folder, 'bin')}`);
    const { ended, run } = start();
    expect([await ended, run.output]).toEqual([0, `${join(folder, 'bin')}\n`]);
  });

  it('are those of the cache before setup-envtest is asked, and those of KUBEBUILDER_ASSETS before both', async () => {
    installGo();
    expect(await start({ KUBEBUILDER_ASSETS: '' }).ended).toBe(0);
    program('setup-envtest', `echo asked >> ${folder}/asked; echo ${join(folder, 'bin')}`);
    for (const name of PROGRAMS) program(name, 'echo given');
    const cached = start();
    expect([await cached.ended, cached.run.output]).toEqual([0, `${join(cache, 'v1.34.4')}\n`]);
    expect(cached.run.errors).toContain('from the cache');
    const given = start({ KUBEBUILDER_ASSETS: join(folder, 'bin') });
    expect([await given.ended, given.run.output]).toEqual([0, `${join(folder, 'bin')}\n`]);
    expect(given.run.errors).toContain('from KUBEBUILDER_ASSETS');
    expect(existsSync(join(folder, 'asked'))).toBe(false);
    expect(builds()).toBe(PROGRAMS.length);
  });

  it('are built where setup-envtest has none of that version, or not all of them', async () => {
    installGo();
    program('setup-envtest', 'exit 2');
    const none = start();
    expect([await none.ended, none.run.output]).toEqual([0, `${join(cache, 'v1.34.4')}\n`]);
    rmSync(cache, { recursive: true });
    for (const name of PROGRAMS.slice(1)) program(name, 'echo from setup-envtest');
    program('setup-envtest', `echo ${join(folder, 'bin')}`);
    const some = start();
    expect([await some.ended, some.run.output]).toEqual([0, `${join(cache, 'v1.34.4')}\n`]);
    expect(some.run.errors).toContain('from Go modules');
    expect(builds()).toBe(2 * PROGRAMS.length);
  });

  it('are built again where those of the cache do not run on this machine', async () => {
    installGo();
    expect(await start().ended).toBe(0);
    writeFileSync(join(cache, 'v1.34.4', 'etcd'), '#!/bin/sh\nexit 126\n', { mode: 0o755 });
    expect(await start().ended).toBe(0);
    expect(builds()).toBe(PROGRAMS.length + 1);
  });

  it.each([
    ['where there is no Go', undefined],
    ['where Go does not run', 'exit 1'],
  ])('are named as missing %s, with all that can be done about it', async (_, go) => {
    if (go !== undefined) program('go', go);
    // Nothing else, either: a machine has Go where its distribution puts it.
    const bare = { PATH: join(folder, 'bin') };
    const { ended, run } = start(bare);
    expect([await ended, run.output]).toEqual([1, '']);
    expect(run.errors).toMatch(
      /^grantry: kubectl, etcd, kube-apiserver are missing; install Go 1\.24 or newer .*, or install setup-envtest, or point KUBEBUILDER_ASSETS at a folder with kubectl, etcd, kube-apiserver\n$/,
    );
    const node = start(bare, ['--node']);
    expect([await node.ended, node.run.output]).toEqual([1, '']);
    expect(node.run.errors).toMatch(
      /^grantry: kube-controller-manager, .* are missing; install Go 1\.24 or newer .*\n$/,
    );
    expect(existsSync(cache)).toBe(false);
  });

  it('are built with the Go of GOROOT, where none is on the PATH', async () => {
    installGo();
    mkdirSync(join(folder, 'go', 'bin'), { recursive: true });
    renameSync(join(folder, 'bin', 'go'), join(folder, 'go', 'bin', 'go'));
    // Programs of the system's own are needed to build; a Go beside them would be found first, and would not run.
    program('go', 'exit 1');
    expect(await start({ GOROOT: join(folder, 'go') }).ended).toBe(0);
    expect(builds()).toBe(PROGRAMS.length);
  });

  it('are said to be missing with what else can be done, where Go cannot download what they are built from', async () => {
    program('go', 'case $1 in mod) echo no network >&2; exit 1 ;; esac');
    const { ended, run } = start();
    expect([await ended, run.output]).toEqual([1, '']);
    expect(run.errors).toMatch(
      /no network[\s\S]*could not download k8s\.io\/kubernetes; instead, .*setup-envtest.*KUBEBUILDER_ASSETS/,
    );
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
