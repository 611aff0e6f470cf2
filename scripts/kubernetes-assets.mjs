// Kubernetes' programs. Those of an API server for tests (etcd, kube-apiserver, kubectl) are in one folder, in this order
// KUBEBUILDER_ASSETS, our cache outside the checkout, that of setup-envtest, a build from Go modules into our cache.
// Those that a node needs besides (one-node/) are always our own build, in the cache.
// By itself: `node scripts/kubernetes-assets.mjs` prints the API server's folder on stdout, with `--node` that of the node's
// programs; everything else goes to stderr.

import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from './cache-folder.mjs';
import { goProgram } from './go.mjs';
import { lock } from './lock.mjs';
import { longStep } from './long-step.mjs';

const VERSION = '1.34.4';
/** What this Kubernetes is built with, or a newer one. */
export const GO_VERSION = '1.24';
/** Staging modules (k8s.io/api …) carry Kubernetes' version with a leading 0. */
const STAGING_VERSION = VERSION.replace(/^1\./, '0.');

/** Where the Go files of our own are. */
const OWN_SOURCES = join(dirname(fileURLToPath(import.meta.url)), 'one-node');
/** The CoreDNS that this Kubernetes is released with. */
export const COREDNS_VERSION = '1.12.1';

/** Each program, the package or the file of ours that it is built from, and how it says its version. */
const API_SERVER = [
  { name: 'kubectl', source: 'k8s.io/kubernetes/cmd/kubectl', version: ['version', '--client'] },
  { name: 'etcd', source: 'go.etcd.io/etcd/server/v3', version: ['--version'] },
  { name: 'kube-apiserver', source: 'k8s.io/kubernetes/cmd/kube-apiserver', version: ['--version'] },
];
const NODE = [
  ...['kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'].map((name) => ({
    name,
    source: `k8s.io/kubernetes/cmd/${name}`,
    version: ['--version'],
  })),
  { name: 'coredns', source: 'coredns.go', version: ['-version'] },
  { name: 'pause', source: 'pause.go', version: ['-v'] },
];

const HOW_TO_BUILD = `install Go ${GO_VERSION} or newer (they are then built from Go modules, once, in about 5 minutes)`;
const HOW_TO_GET_API_SERVER =
  `${HOW_TO_BUILD}, or install setup-envtest, or point KUBEBUILDER_ASSETS at a folder with ` +
  `${API_SERVER.map(({ name }) => name).join(', ')}`;

/**
 * Finds or builds the programs of an API server. Answers `{ folder }`, or `{ missing }`: a sentence that names what is
 * missing. `installGo` is called when they have to be built and there is no Go.
 */
export async function kubernetesAssets({ installGo } = {}) {
  const given = process.env.KUBEBUILDER_ASSETS;
  if (given !== undefined && given !== '') {
    const lacking = lackingIn(given, API_SERVER);
    if (lacking === undefined) return took(given, 'KUBEBUILDER_ASSETS');
    return { missing: `KUBEBUILDER_ASSETS is ${given}, but ${lacking}` };
  }
  const cached = programsFolder();
  if (lackingIn(cached, API_SERVER) === undefined) return took(cached, 'the cache');
  const envtest = setupEnvtest();
  if (envtest !== undefined) return took(envtest, 'setup-envtest');
  const missing = await build(cached, API_SERVER, { installGo, orElse: HOW_TO_GET_API_SERVER });
  return missing === undefined ? took(cached, 'Go modules') : { missing };
}

/** Finds or builds what a node needs besides the API server's programs; answers like `kubernetesAssets`. */
export async function nodePrograms({ installGo } = {}) {
  const folder = programsFolder();
  if (lackingIn(folder, NODE) === undefined) return { folder };
  const missing = await build(folder, NODE, { installGo, orElse: HOW_TO_BUILD });
  return missing === undefined ? { folder } : { missing };
}

function took(folder, from) {
  const [etcd, kubernetes] = ['etcd', 'kube-apiserver'].map((name) =>
    versionOf(
      folder,
      API_SERVER.find((program) => program.name === name),
    ),
  );
  console.error(`grantry: ${kubernetes} with ${etcd} from ${from}: ${folder}`);
  return { folder };
}

function programsFolder() {
  return cacheFolder('grantry-kubernetes', `v${VERSION}`);
}

/** What keeps a folder from being used, or undefined. A program counts when it runs: it may be for another machine. */
function lackingIn(folder, programs) {
  for (const program of programs) {
    if (!existsSync(join(folder, program.name))) return `${program.name} is not in it`;
    if (versionOf(folder, program) === undefined) return `${program.name} in it does not run on this machine`;
  }
  return undefined;
}

function versionOf(folder, { name, version }) {
  const { status, stdout } = spawnSync(join(folder, name), version, { encoding: 'utf8' });
  return status === 0 ? stdout.split('\n', 1)[0] : undefined;
}

function setupEnvtest() {
  const minor = VERSION.split('.').slice(0, 2).join('.');
  // With a `!` it would ask for the newest, also where no network is and it has one that will do.
  const { status, stdout } = spawnSync('setup-envtest', ['use', `${minor}.x`, '--print', 'path'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const folder = status === 0 ? stdout.trim() : '';
  return folder !== '' && lackingIn(folder, API_SERVER) === undefined ? folder : undefined;
}

/**
 * Builds into a temporary folder and moves each program to `target` when all are built: no process sees a part of one.
 * Answers a sentence when it cannot.
 */
async function build(target, programs, { installGo, orElse }) {
  if (goProgram() === undefined) installGo?.();
  const go = goProgram();
  const names = programs.map(({ name }) => name).join(', ');
  if (go === undefined) return `${names} are missing; ${orElse}`;
  const unlock = await lock(`${target}.lock`, 'another run is building Kubernetes');
  const folder = `${target}.building-${process.pid}`;
  try {
    // Another run may have built them while we waited for it.
    const lacking = programs.filter((program) => lackingIn(target, [program]) !== undefined);
    // What runs left behind that were killed.
    const left = readdirSync(dirname(target)).filter((name) => name.startsWith(`${basename(target)}.building-`));
    for (const name of left) rmSync(join(dirname(target), name), { recursive: true, force: true });
    if (lacking.length === 0) return undefined;
    mkdirSync(folder);
    const failure = await longStep(
      `building Kubernetes ${VERSION} (${lacking.map(({ name }) => name).join(', ')}) from Go modules, once, into ${target}`,
      'eight to twenty minutes',
      () => buildPrograms(go, folder, lacking),
    );
    if (failure !== undefined) return `${failure}; instead, ${orElse}`;
    mkdirSync(target, { recursive: true });
    for (const { name } of lacking) renameSync(join(folder, name), join(target, name));
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    unlock();
  }
}

/** Answers a sentence when a program cannot be built. */
async function buildPrograms(go, folder, programs) {
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
  const modules = { kubernetes: join(folder, 'kubernetes'), own: join(folder, 'own') };
  for (const path of Object.values(modules)) mkdirSync(path);
  const kubernetesModule = readFileSync(JSON.parse(module.stdout).GoMod, 'utf8');
  writeFileSync(join(modules.kubernetes, 'go.mod'), goModule(kubernetesModule));
  writeFileSync(join(modules.own, 'go.mod'), ownModule());
  for (const { name, source } of programs) {
    const started = Date.now();
    const own = source.endsWith('.go');
    if (own) copyFileSync(join(OWN_SOURCES, source), join(modules.own, source));
    const options = { cwd: own ? modules.own : modules.kubernetes, env: environment };
    const code = await compile(go, ['-o', join(folder, name), source], options, name);
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

/** CoreDNS has a module of its own: it wants other versions of Kubernetes' packages. */
function ownModule() {
  const lines = ['module node', `go ${GO_VERSION}.0`, `require github.com/coredns/coredns v${COREDNS_VERSION}`, ''];
  return lines.join('\n');
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const find = process.argv[2] === '--node' ? nodePrograms : kubernetesAssets;
  const { folder, missing } = await find();
  if (folder === undefined) console.error(`grantry: ${missing}`);
  else console.log(folder);
  process.exitCode = folder === undefined ? 1 : 0;
}
