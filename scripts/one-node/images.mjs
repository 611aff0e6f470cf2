// Images without a registry: stand-ins for the base images, made of Debian's and npm's packages, and grantry's own image,
// which its Dockerfile builds unchanged upon them. buildah makes them in a store of its own; containerd is given copies.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../toolchain.mjs';
import { CONTAINERD_SOCKET, IMAGE_STORE } from './layout.mjs';
import { call, succeeds } from './processes.mjs';

/** What Kubernetes reads before a name that says no registry. */
const UNQUALIFIED = 'docker.io/library/';
const DEBIAN = 'debian:cluster-stand-in';
const NODE_IMAGE = 'node:24-bookworm-slim';
const REDIS_IMAGE = 'redis:7';
export const PAUSE_IMAGE = `${UNQUALIFIED}pause:cluster-stand-in`;
export const COREDNS_IMAGE = `${UNQUALIFIED}coredns:cluster-stand-in`;
const REDIS_COMMAND = ['--entrypoint', '["docker-entrypoint.sh"]', '--cmd', '["redis-server"]'];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** Each image, what it is built on, and what comes on top: `fill` puts it into a folder. */
function baseImages(programs) {
  const place = (name) => (folder) => {
    copyFileSync(join(programs, name), join(folder, name));
    chmodSync(join(folder, name), 0o755);
  };
  return [
    {
      name: 'pause:cluster-stand-in',
      fill: place('pause'),
      config: ['--entrypoint', '["/pause"]', '--user', '65535:65535'],
    },
    { name: 'coredns:cluster-stand-in', fill: place('coredns'), config: ['--entrypoint', '["/coredns"]'] },
    { name: DEBIAN, fill: fillDebian, config: ['--cmd', '["bash"]'] },
    {
      name: NODE_IMAGE,
      from: DEBIAN,
      fill: fillNode,
      // Behind a proxy that signs with a certificate of its own, npm trusts what the machine trusts.
      config: ['--cmd', '["node"]', '--env', `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`],
    },
    {
      name: REDIS_IMAGE,
      from: DEBIAN,
      fill: fillRedis,
      config: [...REDIS_COMMAND, '--workingdir', '/data', '--port', '6379'],
    },
  ];
}

/** Makes the base images that the store lacks, and gives containerd all of them. */
export function loadBaseImages(programs) {
  for (const image of baseImages(programs)) {
    if (!isStored(image.name)) makeImage(image);
    loadImage(image.name);
  }
}

/** Builds grantry's image from the checkout. What the builder says goes to stderr. */
export function buildImage(name) {
  // npm's configuration of the person and of the machine, for this run only: nothing of it stays in a layer.
  const configuration = [
    [join(homedir(), '.npmrc'), '/root/.npmrc'],
    ['/etc/npmrc', '/usr/local/etc/npmrc'],
  ].filter(([file]) => existsSync(file));
  const volumes = configuration.map(([file, inside]) => `--volume=${file}:${inside}:ro`);
  const build = ['bud', '--pull-never', '--layers', '--isolation', 'chroot', ...volumes];
  const [program, ...args] = buildah(...build, '--tag', `${UNQUALIFIED}${name}`, '.');
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 2, 'inherit'] });
  if (status !== 0) throw new Error('buildah could not build the image; its own message is above');
}

/** Gives containerd an image of the store, or one from an archive that `docker save` or `buildah push` wrote. */
export function loadImage(nameOrArchive) {
  if (existsSync(nameOrArchive)) return importArchive(nameOrArchive);
  const name = `${UNQUALIFIED}${nameOrArchive}`;
  if (!isStored(nameOrArchive)) throw new Error(`${nameOrArchive} is neither a file nor an image in ${IMAGE_STORE}`);
  return inScratch((folder) => {
    const archive = join(folder, 'image.tar');
    callBuildah('push', '--quiet', name, `docker-archive:${archive}:${name}`);
    importArchive(archive);
  });
}

/** Whether overlays can be mounted in a folder: not when it lies on an overlay itself, as in a container. */
export function canOverlay(folder) {
  return inScratch((scratch) => {
    const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(scratch, name));
    for (const path of [lower, upper, work, merged]) mkdirSync(path);
    const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    if (!succeeds('mount', ['-t', 'overlay', 'overlay', '-o', options, merged])) return false;
    call('umount', [merged]);
    return true;
  }, folder);
}

function importArchive(archive) {
  call('ctr', ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io', 'images', 'import', archive]);
}

function isStored(name) {
  const [program, ...args] = buildah('inspect', '--type', 'image', `${UNQUALIFIED}${name}`);
  return succeeds(program, args);
}

function makeImage({ name, from, fill, config }) {
  console.error(`grantry: making a stand-in for ${name}, once, in ${IMAGE_STORE}`);
  inScratch((folder) => {
    fill(folder);
    const base = from === undefined ? 'scratch' : `${UNQUALIFIED}${from}`;
    const container = callBuildah('from', '--pull-never', base).trim();
    callBuildah('add', '--quiet', container, `${folder}/`, '/');
    callBuildah('config', ...config, container);
    callBuildah('commit', '--quiet', '--rm', container, `${UNQUALIFIED}${name}`);
  });
}

/** A minimal Debian of this machine's release, from where its own packages come, with a Redis server. */
function fillDebian(folder) {
  const sources = call('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME)', 'Created-By: Packages']);
  const [mirror, release] = sources.split('\n', 1)[0].split(' ');
  const archive = `${folder}.tar`;
  const noManuals = ['doc', 'info', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
  const packages = '--include=ca-certificates,redis-server';
  const source = `deb ${mirror} ${release} main`;
  call('mmdebstrap', ['--quiet', '--mode=root', '--variant=minbase', packages, ...noManuals, release, archive, source]);
  call('tar', ['--extract', '--file', archive, '--directory', folder, '--exclude=./dev/*']);
  rmSync(archive);
}

function fillNode(folder) {
  const [binaries, npm] = [join(folder, 'usr/local/bin'), join(folder, 'usr/local/lib/node_modules/npm')];
  const certificates = join(folder, 'etc/ssl/certs');
  for (const path of [binaries, npm, certificates]) mkdirSync(path, { recursive: true });
  unpackFromNpm(`node-linux-${process.arch}@24`, binaries, ['--strip-components=2', 'package/bin/node']);
  unpackFromNpm('npm@11', npm, ['--strip-components=1']);
  for (const name of ['npm', 'npx']) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(binaries, name));
  copyFileSync(CERTIFICATES, join(folder, CERTIFICATES));
}

/** What users of the image rely on: options alone are for the server, which is not in protected mode. */
function fillRedis(folder) {
  const [binaries, data] = [join(folder, 'usr/local/bin'), join(folder, 'data')];
  for (const path of [binaries, data]) mkdirSync(path, { recursive: true });
  // The user of the image that this one stands for.
  chownSync(data, 999, 999);
  const scripts = {
    'docker-entrypoint.sh': 'case "$1" in -*) set -- redis-server "$@" ;; esac\nexec "$@"',
    'redis-server': 'exec /usr/bin/redis-server "$@" --protected-mode no',
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(binaries, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
}

function unpackFromNpm(name, folder, options) {
  inScratch((scratch) => {
    const file = call('npm', ['pack', name, '--silent', '--pack-destination', scratch]).trim().split('\n').at(-1);
    call('tar', ['--extract', '--gzip', '--file', join(scratch, file), '--directory', folder, ...options]);
  });
}

function inScratch(use, parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, 'grantry-image-'));
  try {
    // What is in it becomes the root of an image, which every user may enter.
    chmodSync(folder, 0o755);
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function callBuildah(...args) {
  const [program, ...all] = buildah(...args);
  return call(program, all);
}

/** The command line of buildah with a store of our own, so that the person's images stay as they are. */
function buildah(...args) {
  mkdirSync(IMAGE_STORE, { recursive: true });
  const driver = canOverlay(IMAGE_STORE) ? 'overlay' : 'vfs';
  const store = ['--root', join(IMAGE_STORE, 'store'), '--runroot', join(IMAGE_STORE, 'run')];
  return ['buildah', ...store, '--storage-driver', driver, ...args];
}
