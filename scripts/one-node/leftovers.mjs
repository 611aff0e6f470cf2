// What pods and the kubelet leave on a machine when their programs end.

import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CONTAINERD_SOCKET, STATE } from './layout.mjs';
import { call, end, isRunning, processesWhere } from './processes.mjs';

/** Kills every container, and waits until the process that watched over each pod is gone. */
export async function endPods() {
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
  return processesWhere((line) => line[0]?.includes('containerd-shim') && line.includes(CONTAINERD_SOCKET));
}

/** What the kubelet puts at places that cannot be chosen: its socket for devices, a link to each container's log. */
export function removeKubeletFiles() {
  rmSync('/var/lib/kubelet/device-plugins/kubelet.sock', { force: true });
  const links = '/var/log/containers';
  for (const name of existsSync(links) ? readdirSync(links) : []) {
    const link = join(links, name);
    if (readlinkSync(link).startsWith(`${STATE}/`)) rmSync(link);
  }
  const folders = ['/var/lib/kubelet/device-plugins', '/var/lib/kubelet', links];
  call('rmdir', ['--ignore-fail-on-non-empty', ...folders], { mayFail: true });
}

/** Unmounts what is mounted in a folder, so that it can be removed. */
export function unmountBelow(folder) {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const places = mounts.map((line) => line.split(' ')[1]).filter((place) => place?.startsWith(`${folder}/`));
  // What was mounted last may hide what was before.
  for (const place of places.toReversed()) call('umount', ['--lazy', place]);
}
