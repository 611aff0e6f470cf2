// The cluster of `scripts/cluster` where kind is installed: a Kubernetes in a Docker container, whose images are pulled.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isInstalled } from '../apt.mjs';
import { cacheFolder } from '../cache-folder.mjs';

const NAME = 'grantry';
const KUBECONFIG = cacheFolder('grantry-cluster', 'kubeconfig');

/** The cluster, to be used like the one of our own (one-node/node.mjs). */
export const kind = { whyNot, isReady, up, facts, image, load, down };

/** What keeps kind from being used, as a sentence; undefined when nothing does. */
function whyNot() {
  if (!isInstalled('kind')) return 'kind is not installed';
  return isInstalled('docker') ? undefined : 'kind is installed, but docker is not';
}

function isReady() {
  return answer('kind', 'get', 'clusters').split('\n').includes(NAME);
}

function up() {
  mkdirSync(dirname(KUBECONFIG), { recursive: true });
  if (isReady()) return execute('kind', 'export', 'kubeconfig', '--name', NAME, '--kubeconfig', KUBECONFIG);
  execute('kind', 'create', 'cluster', '--name', NAME, '--kubeconfig', KUBECONFIG, '--wait', '180s');
  execute('docker', 'pull', 'redis:7');
  load('redis:7');
}

function facts() {
  const address = '{{.NetworkSettings.Networks.kind.IPAddress}}';
  return {
    kubeconfig: KUBECONFIG,
    nodeAddress: answer('docker', 'inspect', '--format', address, `${NAME}-control-plane`).trim(),
    kubectl: 'kubectl',
  };
}

function image(name, folder) {
  execute('docker', 'build', '--tag', name, folder);
  load(name);
}

function load(nameOrArchive) {
  const kindOfImage = nameOrArchive.endsWith('.tar') ? 'image-archive' : 'docker-image';
  execute('kind', 'load', kindOfImage, nameOrArchive, '--name', NAME);
}

function down() {
  if (isReady()) execute('kind', 'delete', 'cluster', '--name', NAME, '--kubeconfig', KUBECONFIG);
  rmSync(KUBECONFIG, { force: true });
}

/** Runs a program; what it prints goes to stderr, for stdout is for the person's shell. */
function execute(program, ...args) {
  const { status } = spawnSync(program, args, { stdio: ['ignore', 2, 'inherit'] });
  if (status !== 0) throw new Error(`${program} ${args.slice(0, 2).join(' ')} failed; its own message is above`);
}

function answer(program, ...args) {
  return spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).stdout ?? '';
}
