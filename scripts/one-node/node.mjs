// The one-node cluster as a whole: what the machine must have, the order in which its programs start and end, and what is
// left when it is down, which is nothing but the images and programs that took long to make.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { canInstall, installGo, installPackagesOfDebian, isInstalled } from '../apt.mjs';
import { kubernetesAssets, nodePrograms } from '../kubernetes-assets.mjs';
import { longStep } from '../long-step.mjs';
import { COREDNS_IMAGE, PAUSE_IMAGE } from './base-images.mjs';
import { kubeconfig, makeCertificates } from './certificates.mjs';
import { controlPlaneFlags, nodeFiles, nodeFlags, noIssuers } from './configuration.mjs';
import { makeControlGroups, removeControlGroups } from './control-groups.mjs';
import { dnsObjects } from './dns.mjs';
import { buildImage, canOverlay, loadBaseImages, loadImage, qualified } from './images.mjs';
import {
  AUTHENTICATION_CONFIG,
  CONTAINERD_SOCKET,
  IMAGE_STORE,
  inState,
  KUBECONFIG,
  NODE,
  NODE_ADDRESS,
  STATE,
} from './layout.mjs';
import { endPods, removeKubeletFiles, unmountBelow } from './leftovers.mjs';
import { closeNetwork, hasOthersRules, openNetwork } from './network.mjs';
import { call, isRunning, mustRun, processesWhere, start, stop, succeeds, waitFor } from './processes.mjs';

/** The Debian package of each program. */
const PACKAGES = {
  buildah: 'buildah',
  containerd: 'containerd',
  ip: 'iproute2',
  iptables: 'iptables',
  mmdebstrap: 'mmdebstrap',
  nft: 'nftables',
  openssl: 'openssl',
  runc: 'runc',
};
/** Where a cluster that is up notes the path of each of its programs. */
const PROGRAMS = inState('programs.json');
const PRIVATE = { recursive: true, mode: 0o700 };
const CONTROL_PLANE = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const EVERY_PROGRAM = [...CONTROL_PLANE, 'containerd', 'kubelet', 'kube-proxy'];

/** The cluster, to be used like kind's (../clusters/kind.mjs). */
export const oneNode = { whyNot, isWanted, isReady, up, facts, image, load: loadImage, down };

/** Why this machine cannot be a node, as a sentence; undefined when it can. */
function whyNot() {
  if (process.platform === 'linux' && canInstall()) return undefined;
  return 'a cluster of its own programs needs root on Debian (or its kin); elsewhere, install kind and Docker';
}

/** Whether this person started it and has not taken it down. */
function isWanted() {
  return exists() && existsSync(KUBECONFIG);
}

/** Whether it was started and not taken down; its programs may have been killed since. */
function exists() {
  return existsSync(STATE);
}

/** Whether every program of it runs and the node takes pods. */
function isReady() {
  return exists() && EVERY_PROGRAM.every(isRunning) && nodeIsReady(programsInUse().kubectl);
}

/** Starts it, unless it runs. What a killed one left behind is removed first. */
async function up() {
  if (isReady()) return;
  if (exists()) await down();
  installTools();
  const programs = await findPrograms();
  if (hasOtherKubernetes()) throw new Error('another Kubernetes runs on this machine; two would disturb each other');
  for (const name of ['processes', 'logs', 'cni', 'kubelet']) mkdirSync(inState(name), PRIVATE);
  writeFileSync(PROGRAMS, JSON.stringify(programs));
  makeCertificates();
  makeControlGroups();
  openNetwork();
  await longStep('starting the control plane', 'ten seconds', () => startControlPlane(programs));
  await longStep('starting the node', 'up to a minute', () => startNode(programs));
  const dns = JSON.stringify(dnsObjects(COREDNS_IMAGE));
  call(programs.kubectl, [`--kubeconfig=${KUBECONFIG}`, 'apply', '-f', '-'], { input: dns });
  await longStep('waiting for the DNS of the cluster', 'half a minute', () =>
    waitFor('the cluster’s DNS', EVERY_PROGRAM, () => dnsIsReady(programs.kubectl)),
  );
  EVERY_PROGRAM.forEach(mustRun);
}

/** What a person and a script need to know of a cluster that runs. */
function facts() {
  const { kubectl } = programsInUse();
  // One that an older checkout started has no such file.
  const authenticationConfig = existsSync(AUTHENTICATION_CONFIG) ? AUTHENTICATION_CONFIG : undefined;
  return { kubeconfig: KUBECONFIG, nodeAddress: NODE_ADDRESS, kubectl, authenticationConfig };
}

/** Builds grantry's image from a checkout and gives it to the node; the other images that the chart uses are there from the start. */
function image(name, folder) {
  buildImage(name, folder);
  loadImage(name);
}

/** Ends every program, waiting for each, and removes what they and their pods left on the machine. */
async function down() {
  if (!exists()) return;
  for (const name of ['kubelet', 'kube-proxy']) await stop(name);
  await endPods();
  for (const name of ['containerd', ...CONTROL_PLANE.toReversed()]) await stop(name);
  closeNetwork(programsInUse()?.['kube-proxy']);
  removeControlGroups();
  removeKubeletFiles();
  for (const folder of [STATE, IMAGE_STORE]) unmountBelow(folder);
  rmSync(STATE, { recursive: true, force: true });
  rmSync(KUBECONFIG, { force: true });
}

/** The path of each program by its name; undefined when `up` did not come so far. */
function programsInUse() {
  return existsSync(PROGRAMS) ? JSON.parse(readFileSync(PROGRAMS, 'utf8')) : undefined;
}

function installTools() {
  const isMissing = ([program]) => !isInstalled(program);
  const missing = Object.entries(PACKAGES).filter(isMissing);
  const plugins = existsSync('/usr/lib/cni/ptp') ? [] : ['containernetworking-plugins'];
  const packages = [...missing.map(([, name]) => name), ...plugins];
  if (packages.length > 0) installPackagesOfDebian(packages);
  const still = Object.entries(PACKAGES).filter(isMissing);
  if (still.length > 0) throw new Error(`apt-get did not install ${still.map(([, name]) => name).join(', ')}`);
}

/** The path of each program by its name. */
async function findPrograms() {
  const apiServer = await kubernetesAssets({ installGo });
  const node = await nodePrograms({ installGo });
  const missing = apiServer.missing ?? node.missing;
  if (missing !== undefined) throw new Error(missing);
  const own = ['kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy', 'coredns', 'pause'];
  const paths = [
    ...['etcd', 'kube-apiserver', 'kubectl'].map((name) => [name, join(apiServer.folder, name)]),
    ...own.map((name) => [name, join(node.folder, name)]),
  ];
  return Object.fromEntries(paths);
}

/** A kubelet takes files at places that cannot be chosen, and kube-proxy's rules have fixed names. */
function hasOtherKubernetes() {
  return hasOthersRules() || processesWhere(([program]) => program?.split('/').at(-1) === 'kubelet').length > 0;
}

async function startControlPlane(programs) {
  for (const holder of ['controller-manager', 'scheduler', 'proxy', 'kubelet']) {
    writeFileSync(inState(`${holder}.kubeconfig`), kubeconfig(holder), { mode: 0o600 });
  }
  mkdirSync(dirname(KUBECONFIG), { recursive: true });
  writeFileSync(KUBECONFIG, kubeconfig('admin'), { mode: 0o600 });
  writeFileSync(AUTHENTICATION_CONFIG, noIssuers(), { mode: 0o600 });
  const flags = controlPlaneFlags();
  for (const name of CONTROL_PLANE) {
    start(name, programs[name], flags[name]);
    if (name !== 'kube-apiserver') continue;
    const ready = [`--kubeconfig=${KUBECONFIG}`, 'get', '--raw', '/readyz'];
    await waitFor('the API server', ['etcd', name], () => succeeds(programs.kubectl, ready));
    // A foreign etcd at our port would have served it as well.
    mustRun('etcd');
  }
}

async function startNode(programs) {
  const snapshotter = canOverlay(STATE) ? 'overlayfs' : 'native';
  const files = nodeFiles({ pauseImage: qualified(PAUSE_IMAGE), snapshotter });
  for (const [name, text] of Object.entries(files)) writeFileSync(inState(name), text);
  const flags = nodeFlags();
  start('containerd', 'containerd', flags.containerd);
  await waitFor('containerd', ['containerd'], () => succeeds('ctr', ['--address', CONTAINERD_SOCKET, 'version']));
  loadBaseImages(programs);
  start('kubelet', programs.kubelet, flags.kubelet);
  start('kube-proxy', programs['kube-proxy'], flags['kube-proxy']);
  await waitFor('the node', ['kubelet'], () => nodeIsReady(programs.kubectl));
}

function nodeIsReady(kubectl) {
  const path = `jsonpath={.status.conditions[?(@.type=="Ready")].status}`;
  const args = [`--kubeconfig=${KUBECONFIG}`, '--request-timeout=5s', 'get', 'node', NODE, '-o', path];
  return call(kubectl, args, { mayFail: true }) === 'True';
}

function dnsIsReady(kubectl) {
  const path = 'jsonpath={.status.readyReplicas}';
  const args = [`--kubeconfig=${KUBECONFIG}`, '--namespace=kube-system', 'get', 'deployment', 'coredns', '-o', path];
  return call(kubectl, args, { mayFail: true }) === '1';
}
