// The one-node cluster as a whole: what the machine must have, the order in which its programs start and end, and what is
// left when it is down, which is nothing but the images and programs that took long to make.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { canInstall, installGo, installPackagesOfDebian, isInstalled } from '../apt.mjs';
import { kubernetesAssets, nodePrograms } from '../kubernetes-assets.mjs';
import { kubeconfig, makeCertificates } from './certificates.mjs';
import { controlPlaneFlags, dnsObjects, nodeFiles, nodeFlags } from './configuration.mjs';
import { buildImage, COREDNS_IMAGE, canOverlay, loadBaseImages, loadImage, PAUSE_IMAGE } from './images.mjs';
import { CONTAINERD_SOCKET, inState, KUBECONFIG, NODE, NODE_ADDRESS, STATE } from './layout.mjs';
import { closeNetwork, hasOtherKubernetes, openNetwork } from './network.mjs';
import { call, end, isRunning, start, stop, succeeds, waitFor } from './processes.mjs';

/** Programs by the Debian package that brings them. */
const PACKAGES = {
  buildah: 'buildah',
  containerd: 'containerd',
  ip: 'iproute2',
  iptables: 'iptables',
  mmdebstrap: 'mmdebstrap',
  openssl: 'openssl',
  runc: 'runc',
};
const CONTROL_PLANE = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const ON_NODE = ['containerd', 'kubelet', 'kube-proxy'];

/** The cluster, to be used like kind's (../kind.mjs). */
export const oneNode = { whyNot, exists, isReady, up, facts, image, load: loadImage, down };

/** Why this machine cannot be a node, as a sentence; undefined when it can. */
function whyNot() {
  if (process.platform === 'linux' && canInstall()) return undefined;
  return 'a cluster of its own programs needs root on Debian (or its kin); elsewhere, install kind and Docker';
}

/** Whether it was started and not taken down; its programs may have been killed since. */
function exists() {
  return existsSync(STATE);
}

/** Whether every program of it runs and the node takes pods. */
function isReady() {
  return (
    exists() && [...CONTROL_PLANE, ...ON_NODE].every(isRunning) && nodeIsReady(readFileSync(inState('kubectl'), 'utf8'))
  );
}

/** Starts it, unless it runs. What a killed one left behind is removed first. */
async function up() {
  if (isReady()) return;
  if (exists()) await down();
  installTools();
  const programs = await findPrograms();
  if (hasOtherKubernetes()) throw new Error('another Kubernetes has its rules in the firewall of this machine');
  for (const name of ['processes', 'logs', 'cni', 'kubelet'])
    mkdirSync(inState(name), { recursive: true, mode: 0o700 });
  writeFileSync(inState('kubectl'), programs.kubectl);
  makeCertificates();
  openNetwork();
  await startControlPlane(programs);
  await startNode(programs);
  const dns = dnsObjects(COREDNS_IMAGE);
  call(programs.kubectl, [`--kubeconfig=${KUBECONFIG}`, 'apply', '-f', '-'], { input: dns });
  await waitFor('the cluster’s DNS', 'kubelet', () => dnsIsReady(programs.kubectl));
}

/** What a person and a script need to know of a cluster that runs. */
function facts() {
  return { kubeconfig: KUBECONFIG, nodeAddress: NODE_ADDRESS, kubectl: readFileSync(inState('kubectl'), 'utf8') };
}

/** Builds grantry's image and gives it to the node; the other images that the chart uses are there from the start. */
function image(name) {
  buildImage(name);
  loadImage(name);
}

/** Ends every program, waiting for each, and removes what they and their pods left on the machine. */
async function down() {
  if (!exists()) return;
  for (const name of ['kubelet', 'kube-proxy']) await stop(name);
  await endPods();
  for (const name of ['containerd', ...CONTROL_PLANE.toReversed()]) await stop(name);
  const { folder } = await nodePrograms({ installGo });
  closeNetwork(folder === undefined ? undefined : join(folder, 'kube-proxy'));
  removeControlGroups();
  removeLogLinks();
  for (const path of mountsBelow(STATE).toReversed()) call('umount', ['--lazy', path]);
  rmSync(STATE, { recursive: true, force: true });
  rmSync(KUBECONFIG, { force: true });
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
  const paths = { containerd: 'containerd', folder: node.folder };
  for (const name of ['etcd', 'kube-apiserver', 'kubectl']) paths[name] = join(apiServer.folder, name);
  for (const name of ['kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy']) {
    paths[name] = join(node.folder, name);
  }
  return paths;
}

async function startControlPlane(programs) {
  for (const holder of ['controller-manager', 'scheduler', 'proxy', 'kubelet']) {
    writeFileSync(inState(`${holder}.kubeconfig`), kubeconfig(holder), { mode: 0o600 });
  }
  mkdirSync(dirname(KUBECONFIG), { recursive: true });
  writeFileSync(KUBECONFIG, kubeconfig('admin'), { mode: 0o600 });
  const flags = controlPlaneFlags();
  for (const name of CONTROL_PLANE) {
    start(name, programs[name], flags[name]);
    if (name !== 'kube-apiserver') continue;
    const ready = [`--kubeconfig=${KUBECONFIG}`, 'get', '--raw', '/readyz'];
    await waitFor('the API server', name, () => succeeds(programs.kubectl, ready));
  }
}

async function startNode(programs) {
  const snapshotter = canOverlay(STATE) ? 'overlayfs' : 'native';
  const files = nodeFiles({ pauseImage: PAUSE_IMAGE, snapshotter });
  for (const [name, text] of Object.entries(files)) writeFileSync(inState(name), text);
  const flags = nodeFlags();
  start('containerd', programs.containerd, flags.containerd);
  await waitFor('containerd', 'containerd', () => succeeds('ctr', ['--address', CONTAINERD_SOCKET, 'version']));
  loadBaseImages(programs.folder);
  start('kubelet', programs.kubelet, flags.kubelet);
  start('kube-proxy', programs['kube-proxy'], flags['kube-proxy']);
  await waitFor('the node', 'kubelet', () => nodeIsReady(programs.kubectl));
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

/** Kills every container, and waits until the process that watched over each pod is gone. */
async function endPods() {
  const ctr = (...args) =>
    call('ctr', ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io', ...args], { mayFail: true });
  const containers = isRunning('containerd') ? ctr('containers', 'list', '--quiet').split('\n').filter(Boolean) : [];
  if (containers.length > 0) {
    ctr('tasks', 'delete', '--force', ...containers);
    ctr('containers', 'delete', ...containers);
  }
  for (const pid of shims()) await end(pid, () => shims().includes(pid));
}

/** The processes that containerd put over the pods of this cluster, known by its socket. */
function shims() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandLine(pid).includes(CONTAINERD_SOCKET))
    .filter((pid) => commandLine(pid)[0]?.includes('containerd-shim'))
    .map(Number);
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** The control groups of pods are empty now; one that is not belongs to somebody else, and stays. */
function removeControlGroups() {
  const hierarchies = readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name, 'kubepods'));
  for (const path of ['/sys/fs/cgroup/kubepods', ...hierarchies]) {
    if (existsSync(path)) removeEmptyFolders(path);
  }
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeEmptyFolders(join(folder, entry.name));
  }
  try {
    rmdirSync(folder);
  } catch (error) {
    if (error.code !== 'EBUSY') throw error;
  }
}

/** The kubelet puts a link to each container's log at a place that cannot be chosen. */
function removeLogLinks() {
  const folder = '/var/log/containers';
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const link = join(folder, name);
    if (readlinkSync(link).startsWith(`${STATE}/`)) rmSync(link);
  }
}

/** The places below a folder at which something is mounted, outer ones first. */
function mountsBelow(folder) {
  const places = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return places.filter((place) => place.startsWith(`${folder}/`));
}
