// What the scripts install for themselves, as root on Debian and its kin: packages by apt-get, and whether a program is
// there. Runs on Node 20.

import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { GO_VERSION } from './kubernetes-assets.mjs';
import { longStep } from './long-step.mjs';

/** Whether one of these programs is on the PATH; root's programs are found without root's PATH. */
export function isInstalled(...names) {
  const path = [process.env.PATH ?? '', '/usr/sbin', '/sbin'].join(delimiter);
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return names.some((name) => folders.some((folder) => isExecutable(join(folder, name))));
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function canInstall() {
  return process.getuid?.() === 0 && isInstalled('apt-get');
}

/**
 * Fetches the list of packages, for it may be old or empty, and installs these without what they only recommend. What
 * apt-get prints goes to stderr. A failure is not fatal here: whether the programs are there afterwards decides.
 */
export function installPackagesOfDebian(packages) {
  longStep(`installing ${packages.join(', ')} with apt-get`, 'one to three minutes', () => {
    apt(['update', '-q']);
    apt(['install', '-q', '-y', '--no-install-recommends', ...packages]);
  });
}

/** Go as the system offers it, unless that is too old for Kubernetes (Debian 12's is). */
export function installGo() {
  if (!canInstall()) return;
  apt(['update', '-q']);
  const { stdout } = spawnSync('apt-cache', ['policy', 'golang-go'], { encoding: 'utf8' });
  const offered = Number(stdout?.match(/Candidate: (?:\d+:)?1\.(\d+)/)?.[1] ?? 0);
  if (offered >= Number(GO_VERSION.split('.')[1])) installPackagesOfDebian(['golang-go']);
}

// Debian's packages start their services when they are installed, unless this program forbids it; tests start their own. One
// that an administrator wrote stays as it is. The shell removes ours, also after Ctrl-C. Another apt may hold the lock, as that of
// a system in its first minutes does: it is waited for, ten minutes at most.
const WITHOUT_SERVICES = `
  policy=/usr/sbin/policy-rc.d
  if ! [ -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM HUP
    printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy"
  fi
  apt-get -o DPkg::Lock::Timeout=600 "$@"
`;

function apt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('sh', ['-c', WITHOUT_SERVICES, 'sh', ...args], { stdio: ['ignore', 2, 'inherit'], env });
}
