// A real Kubernetes API server for tests: the folder that holds etcd, kube-apiserver and kubectl. In this order it is
// KUBEBUILDER_ASSETS, our cache outside the checkout, what setup-envtest brings, a build from Go modules into the cache.
// By itself: `node scripts/kubernetes-assets.mjs` prints the folder on stdout, and everything else on stderr.

import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const VERSION = '1.34.4';
/** What this Kubernetes is built with, or a newer one. */
export const GO_VERSION = '1.24';
/** Staging modules (k8s.io/api …) carry Kubernetes' version with a leading 0. */
const STAGING_VERSION = VERSION.replace(/^1\./, '0.');

/** Each program, the package it is built from, and how it says its version. */
const PROGRAMS = [
  { name: 'kubectl', module: 'k8s.io/kubernetes/cmd/kubectl', version: ['version', '--client'] },
  { name: 'etcd', module: 'go.etcd.io/etcd/server/v3', version: ['--version'] },
  { name: 'kube-apiserver', module: 'k8s.io/kubernetes/cmd/kube-apiserver', version: ['--version'] },
];

const HOW_TO_GET_IT =
  `install Go ${GO_VERSION} or newer (they are then built from Go modules, once, in about 5 minutes), or install setup-envtest, ` +
  `or point KUBEBUILDER_ASSETS at a folder with ${PROGRAMS.map(({ name }) => name).join(', ')}`;

/**
 * Finds or builds the programs. Answers `{ folder }`, or `{ missing }`: a sentence that names what is missing.
 * `installGo` is called when they have to be built and there is no Go.
 */
export async function kubernetesAssets({ installGo } = {}) {
  const given = process.env.KUBEBUILDER_ASSETS;
  if (given !== undefined && given !== '') {
    const lacking = lackingIn(given);
    if (lacking === undefined) return took(given, 'KUBEBUILDER_ASSETS');
    return { missing: `KUBEBUILDER_ASSETS is ${given}, but ${lacking}` };
  }
  const cached = cacheFolder();
  if (lackingIn(cached) === undefined) return took(cached, 'the cache');
  const envtest = setupEnvtest();
  if (envtest !== undefined) return took(envtest, 'setup-envtest');
  return await build(cached, installGo);
}

function took(folder, from) {
  const kubernetes = versionOf(folder, 'kube-apiserver');
  console.error(`grantry: ${kubernetes} with ${versionOf(folder, 'etcd')} from ${from}: ${folder}`);
  return { folder };
}

function cacheFolder() {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(caches, 'grantry-kubernetes', `v${VERSION}`);
}

/** What keeps a folder from being used, or undefined. A program counts when it runs: it may be for another machine. */
function lackingIn(folder) {
  for (const { name } of PROGRAMS) {
    if (!existsSync(join(folder, name))) return `${name} is not in it`;
    if (versionOf(folder, name) === undefined) return `${name} in it does not run on this machine`;
  }
  return undefined;
}

function versionOf(folder, name) {
  const { version } = PROGRAMS.find((program) => program.name === name);
  const { status, stdout } = spawnSync(join(folder, name), version, { encoding: 'utf8' });
  return status === 0 ? stdout.split('\n', 1)[0] : undefined;
}

function setupEnvtest() {
  const minor = VERSION.split('.').slice(0, 2).join('.');
  const { status, stdout } = spawnSync('setup-envtest', ['use', `${minor}.x!`, '--print', 'path'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const folder = status === 0 ? stdout.trim() : '';
  return folder !== '' && lackingIn(folder) === undefined ? folder : undefined;
}

/** Builds into a folder of our own and renames it to `target` when it is whole: nobody ever sees a part of it. */
async function build(target, installGo) {
  if (goProgram() === undefined) installGo?.();
  const go = goProgram();
  if (go === undefined) return { missing: `etcd, kube-apiserver and kubectl are missing; ${HOW_TO_GET_IT}` };
  const unlock = await lock(`${target}.lock`);
  const folder = `${target}.building-${process.pid}`;
  try {
    // Another run may have built them while we waited for it.
    if (lackingIn(target) === undefined) return took(target, 'the cache');
    // What runs left behind that were killed.
    const left = readdirSync(dirname(target)).filter((name) => name.startsWith(`${basename(target)}.building-`));
    for (const name of left) rmSync(join(dirname(target), name), { recursive: true, force: true });
    mkdirSync(folder);
    console.error(`grantry: building Kubernetes ${VERSION} from Go modules, once, into ${target}`);
    const failure = await buildPrograms(go, folder);
    if (failure !== undefined) return { missing: `${failure}; instead, ${HOW_TO_GET_IT}` };
    rmSync(target, { recursive: true, force: true });
    renameSync(folder, target);
    return took(target, 'Go modules');
  } finally {
    rmSync(folder, { recursive: true, force: true });
    unlock();
  }
}

function goProgram() {
  // Where Go's own installer puts it, which is often not on the PATH.
  return ['go', '/usr/local/go/bin/go'].find((go) => spawnSync(go, ['version']).status === 0);
}

/** Answers a sentence when a program cannot be built. */
async function buildPrograms(go, folder) {
  const environment = {
    ...process.env,
    CGO_ENABLED: '0',
    GOFLAGS: '-mod=mod -buildvcs=false',
    GOWORK: 'off',
    PATH: [process.env.PATH, dirname(go)].join(delimiter),
  };
  const module = spawnSync(go, ['mod', 'download', '-json', `k8s.io/kubernetes@v${VERSION}`], {
    cwd: tmpdir(),
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (module.status !== 0) return 'Go could not download k8s.io/kubernetes';
  writeFileSync(join(folder, 'go.mod'), goModule(readFileSync(JSON.parse(module.stdout).GoMod, 'utf8')));
  for (const { name, module: path } of PROGRAMS) {
    const started = Date.now();
    const code = await compile(go, ['-o', join(folder, name), path], { cwd: folder, env: environment }, name);
    if (code !== 0) return `Go could not build ${name}; its own message is above`;
    console.error(`grantry: built ${name} in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  return undefined;
}

/**
 * A module that builds Kubernetes' commands. Kubernetes' own go.mod takes its staging modules from its source tree, which
 * a module that requires it has to replace by the published ones; etcd is the one that this Kubernetes is tested with.
 */
function goModule(kubernetesModule) {
  const staging = kubernetesModule.matchAll(/^\s*(k8s\.io\/\S+) v0\.0\.0(?:\s|$)/gm);
  const replaced = [...new Set([...staging].map(([, path]) => path))];
  const [, goVersion] = kubernetesModule.match(/^go (\S+)$/m);
  return [
    'module assets',
    `go ${goVersion}`,
    `require k8s.io/kubernetes v${VERSION}`,
    ...replaced.map((path) => `replace ${path} => ${path} v${STAGING_VERSION}`),
    '',
  ].join('\n');
}

/** Runs `go build`; every 15 s it says how far it is. Answers the exit code. */
function compile(go, args, options, name) {
  const stamp = {
    // Without it the API server calls itself v0.0.0, which clients and Helm charts refuse.
    gitVersion: `v${VERSION}`,
    gitMajor: VERSION.split('.')[0],
    gitMinor: VERSION.split('.')[1],
    gitTreeState: 'clean',
  };
  const flags = Object.entries(stamp).map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`);
  const child = spawn(go, ['build', '-v', '-trimpath', '-ldflags', ['-s', '-w', ...flags].join(' '), ...args], {
    ...options,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let [packages, tail] = [0, ''];
  child.stderr.setEncoding('utf8').on('data', (text) => {
    packages += text.split('\n').length - 1;
    tail = (tail + text).slice(-4000);
  });
  const say = () => console.error(`grantry: building ${name}: ${packages} packages downloaded or compiled`);
  const progress = setInterval(say, 15_000);
  return new Promise((resolve) => {
    child.on('error', (error) => console.error(`grantry: ${go}: ${error.message}`));
    child.on('close', (code) => {
      clearInterval(progress);
      if (code !== 0) console.error(tail);
      resolve(code);
    });
  });
}

/**
 * Waits for other runs that build. It only saves their double work: what keeps a half-built folder from being taken is
 * the rename, so a lock whose process is gone, or that is an hour old, is passed over.
 */
async function lock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}-${process.pid}`;
  writeFileSync(mine, String(process.pid));
  for (let said = false; !tryLink(mine, file); await sleep(500)) {
    if (isStale(file)) rmSync(file, { force: true });
    else if (!said) console.error('grantry: another run is building Kubernetes; waiting for it');
    said = true;
  }
  rmSync(mine);
  return () => rmSync(file, { force: true });
}

/** A link, unlike a new file, has its content from the first moment. */
function tryLink(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function isStale(file) {
  try {
    if (Date.now() - statSync(file).mtimeMs > 3_600_000) return true;
    process.kill(Number(readFileSync(file, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { folder, missing } = await kubernetesAssets();
  if (folder === undefined) console.error(`grantry: ${missing}`);
  else console.log(folder);
  process.exitCode = folder === undefined ? 1 : 0;
}
