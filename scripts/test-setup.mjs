// The programs that tests need from outside npm: installs what it can (apt, as root, on Debian and its kin), builds the
// API server (kubernetes-assets.mjs), and names what stays missing with the way to get it. By itself: `node
// scripts/test-setup.mjs`.

import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GO_VERSION, kubernetesAssets } from './kubernetes-assets.mjs';

/** One program: the names it goes by, its Debian package, how else to get it, and the vitest project that cannot run without. */
const PROGRAMS = [
  {
    names: ['redis-server'],
    debian: 'redis-server',
    elsewhere: 'install Redis 7 or newer (macOS: brew install redis)',
    project: undefined,
  },
  {
    names: ['openssl'],
    debian: 'openssl',
    elsewhere: 'install OpenSSL (it makes the certificates that TLS to Redis is tried with)',
    project: undefined,
  },
  {
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    debian: 'chromium',
    elsewhere: 'install Chromium or Chrome and put it on the PATH as chromium or google-chrome',
    project: 'browser',
  },
];

/**
 * Installs or builds what is missing, where that can be done. Answers what the tests find in their environment, and what
 * stays missing: a sentence each, with the vitest project that cannot run without it.
 */
export async function setUpPrograms() {
  const programs = installPrograms().map((program) => ({ project: program.project, sentence: explain(program) }));
  const { folder, missing } = await kubernetesAssets({ installGo });
  if (missing !== undefined) programs.push({ project: 'cluster', sentence: missing });
  return { missing: programs, environment: folder === undefined ? {} : { KUBEBUILDER_ASSETS: folder } };
}

/** Answers the programs still missing. */
function installPrograms() {
  const missing = PROGRAMS.filter((program) => !isInstalled(program));
  if (missing.length > 0 && canInstall()) {
    const packages = missing.map((program) => program.debian);
    console.log(`grantry: installing ${packages.join(', ')} with apt-get`);
    // A package list may be old or empty, so it is fetched first.
    apt(['update', '-q']);
    aptInstall(packages);
  }
  return missing.filter((program) => !isInstalled(program));
}

/** What is missing and how to get it, as one sentence. */
function explain(program) {
  const debian = `on Debian and Ubuntu: apt-get install ${program.debian}`;
  return `${program.names[0]} is missing; ${debian}; elsewhere: ${program.elsewhere}`;
}

function isInstalled(program) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return program.names.some((name) => folders.some((folder) => isExecutable(join(folder, name))));
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function canInstall() {
  return process.getuid?.() === 0 && isInstalled({ names: ['apt-get'] });
}

/** Go as the system offers it, unless that is too old for Kubernetes (Debian 12's is). */
function installGo() {
  if (!canInstall()) return;
  apt(['update', '-q']);
  const { stdout } = spawnSync('apt-cache', ['policy', 'golang-go'], { encoding: 'utf8' });
  const offered = Number(stdout?.match(/Candidate: (?:\d+:)?1\.(\d+)/)?.[1] ?? 0);
  if (offered >= Number(GO_VERSION.split('.')[1])) aptInstall(['golang-go']);
}

/** Recommended packages are not needed by tests. */
function aptInstall(packages) {
  apt(['install', '-q', '-y', '--no-install-recommends', ...packages]);
}

// A failure is not fatal here: whether the program is there afterwards decides.
function apt(args) {
  spawnSync('apt-get', args, { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { missing } = await setUpPrograms();
  for (const { sentence } of missing) console.error(`grantry: ${sentence}`);
  if (missing.length === 0) console.log('grantry: every program that the tests need is installed');
  process.exitCode = missing.length === 0 ? 0 : 1;
}
