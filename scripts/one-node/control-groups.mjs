// The control group below which a one-node cluster has its pods. A kubelet ends what it does not know in its own group, so
// the usual one would not do beside another kubelet.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { CONTROL_GROUP } from './layout.mjs';

const MOUNT = '/sys/fs/cgroup';
const CONTROLLERS_OF_V2 = join(MOUNT, 'cgroup.controllers');

/** Of each core, in processes: all pods together have as much time as so many, where a new group has that of one. */
const WEIGHT_OF_A_CORE = 4;

export function makeControlGroups() {
  for (const hierarchy of hierarchies()) mkdirSync(join(hierarchy, CONTROL_GROUP), { recursive: true });
  weigh();
  if (!existsSync(CONTROLLERS_OF_V2)) return;
  // Version 2: a group has the controllers that the one above it hands down.
  for (const controller of readFileSync(CONTROLLERS_OF_V2, 'utf8').trim().split(' ')) {
    for (const group of [MOUNT, join(MOUNT, CONTROL_GROUP)]) handDown(controller, group);
  }
}

/** On a node all that is not a pod is a group of its own, too; here each process beside the pods counts by itself. */
function weigh() {
  const processes = WEIGHT_OF_A_CORE * cpus().length;
  const [file, weight] = existsSync(CONTROLLERS_OF_V2)
    ? [join(MOUNT, CONTROL_GROUP, 'cpu.weight'), 100 * processes]
    : [join(MOUNT, 'cpu', CONTROL_GROUP, 'cpu.shares'), 1024 * processes];
  try {
    writeFileSync(file, String(weight));
  } catch {
    // The pods have less time beside a busy machine, and all the rest of it.
  }
}

/** Removes the group and what is left below it; nothing runs in them any more. */
export function removeControlGroups() {
  for (const hierarchy of hierarchies()) {
    const group = join(hierarchy, CONTROL_GROUP);
    if (existsSync(group)) removeTree(group);
  }
}

/** Version 1 has one for each kind of limit, and with it may stand version 2's, which then limits nothing. */
function hierarchies() {
  if (existsSync(CONTROLLERS_OF_V2)) return [MOUNT];
  const folders = readdirSync(MOUNT, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.map(({ name }) => join(MOUNT, name));
}

function handDown(controller, group) {
  try {
    writeFileSync(join(group, 'cgroup.subtree_control'), `+${controller}`);
  } catch {
    // The kubelet says which one it cannot do without.
  }
}

/** A group is a folder whose files cannot be removed, and go with it. */
function removeTree(group) {
  for (const entry of readdirSync(group, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(group, entry.name));
  }
  rmdirSync(group);
}
