// Images without a registry: buildah makes the base images (base-images.mjs) and grantry's own upon them, from its unchanged
// Dockerfile, in a store that is only for this; containerd is given copies.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { longStep } from '../long-step.mjs';
import { baseImages } from './base-images.mjs';
import { CONTAINERD_SOCKET, IMAGE_STORE } from './layout.mjs';
import { call, succeeds } from './processes.mjs';
import { inScratchFolder } from './scratch-folder.mjs';

/** What Kubernetes reads before a name that says no registry. */
const UNQUALIFIED = 'docker.io/library/';

export function qualified(name) {
  return `${UNQUALIFIED}${name}`;
}

/** Makes the base images that the store lacks, and gives containerd all of them. */
export function loadBaseImages(programs) {
  for (const image of baseImages(programs)) {
    if (!isStored(image.name)) makeImage(image);
    if (image.onNode !== false) loadImage(image.name);
  }
}

/** Builds grantry's image from a checkout. What the builder says goes to stderr. */
export function buildImage(name, folder) {
  // npm's configuration of the person and of the machine, for this run only: nothing of it stays in a layer.
  const configuration = [
    [join(homedir(), '.npmrc'), '/root/.npmrc'],
    ['/etc/npmrc', '/usr/local/etc/npmrc'],
  ].filter(([file]) => existsSync(file));
  const volumes = configuration.map(([file, inside]) => `--volume=${file}:${inside}:ro`);
  const build = ['bud', '--pull-never', '--layers', '--isolation', 'chroot', ...volumes];
  const [program, ...args] = buildah(...build, '--tag', qualified(name), '.');
  const { status } = longStep(`building the image ${name} from ${folder}`, 'one to two minutes', () =>
    spawnSync(program, args, { cwd: folder, stdio: ['ignore', 2, 'inherit'] }),
  );
  if (status !== 0) throw new Error('buildah could not build the image; its own message is above');
}

/** Gives containerd an image of the store, or one from an archive that `docker save` or `buildah push` wrote. */
export function loadImage(nameOrArchive) {
  if (existsSync(nameOrArchive)) return importArchive(nameOrArchive);
  const name = qualified(nameOrArchive);
  if (!isStored(nameOrArchive)) throw new Error(`${nameOrArchive} is neither a file nor an image in ${IMAGE_STORE}`);
  return inScratchFolder((folder) => {
    const archive = join(folder, 'image.tar');
    callBuildah('push', '--quiet', name, `docker-archive:${archive}:${name}`);
    importArchive(archive);
  });
}

/** Whether overlays can be mounted in a folder: not when it lies on an overlay itself, as in a container. */
export function canOverlay(folder) {
  return inScratchFolder((scratch) => {
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
  const [program, ...args] = buildah('inspect', '--type', 'image', qualified(name));
  return succeeds(program, args);
}

function makeImage({ name, from, fill, config }) {
  longStep(`making a stand-in for the image ${name}, once, in ${IMAGE_STORE}`, 'up to a minute', () =>
    inScratchFolder((folder) => {
      fill(folder);
      const base = from === undefined ? 'scratch' : qualified(from);
      const container = callBuildah('from', '--pull-never', base).trim();
      callBuildah('add', '--quiet', container, `${folder}/`, '/');
      callBuildah('config', ...config, container);
      callBuildah('commit', '--quiet', '--rm', container, qualified(name));
    }),
  );
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
