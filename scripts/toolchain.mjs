// What every script stands on: the packages of the lock file, and a Node that runs TypeScript.
// Runs on Node 20 and without node_modules. Programs from outside (redis-server, chromium) are tests/set-up.mjs's.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { longStep } from './long-step.mjs';

/** The top of the checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Ends the script with a sentence for a person. */
export function fail(message) {
  console.error(`grantry: ${message}`);
  process.exit(1);
}

/** Runs `npm ci` when node_modules is missing or holds other versions than the lock file. */
export function installPackages() {
  const why = whyInstall();
  if (why === undefined) return;
  // Inside `npm start` and `npm test` npm names its own program; calling it by Node works on Windows too.
  const npm = process.env.npm_execpath;
  // npm would warn of the Node that runs it; the packages need only the one that they install.
  const install = ['ci', '--loglevel=error'];
  const result = longStep(`${why}: installing them by npm ci, once until the lock file changes`, 'half a minute', () =>
    npm === undefined
      ? spawnSync('npm', install, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
      : spawnSync(process.execPath, [npm, ...install], { cwd: root, stdio: 'inherit' }),
  );
  if (result.status !== 0) fail('npm ci failed; its own message is above');
}

function whyInstall() {
  const installedLock = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedLock)) return 'packages are not installed';
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const installed = JSON.parse(readFileSync(installedLock, 'utf8')).packages;
  for (const [path, { version, optional }] of Object.entries(wanted)) {
    if (path === '' || installed[path]?.version === version) continue;
    // A package for another platform is rightly absent; the wrong version of it is not.
    if (optional && installed[path] === undefined) continue;
    return 'installed packages differ from package-lock.json';
  }
  return undefined;
}

/** The path of a Node that runs the TypeScript sources: the running one, if new enough, else the one npm installed. */
export function modernNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 7)) return process.execPath;
  const program = process.platform === 'win32' ? 'node.exe' : 'node';
  const bundled = join(root, 'node_modules', `node-${platformName()}`, 'bin', program);
  if (existsSync(bundled)) return bundled;
  return fail(
    `Node 24.7 or newer is needed. This is Node ${process.versions.node}, and no Node 24 comes with the packages for ` +
      `${platformName()} (they contain one for linux-x64, linux-arm64 and win-x64). Install Node 24 and run this again.`,
  );
}

function platformName() {
  return `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
}

/** Runs a program to its end with everything it prints visible; answers its exit code. */
export function run(program, args, environment = {}) {
  const result = spawnSync(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...environment } });
  if (result.error !== undefined) fail(`${program} did not start: ${result.error.message}`);
  return result.status ?? 128 + constants.signals[result.signal];
}

/** Puts a long-running program in our place: signals go to it, and its end is ours. */
export function become(program, args) {
  const child = spawn(program, args, { cwd: root, stdio: 'inherit' });
  child.on('error', (error) => fail(`${program} did not start: ${error.message}`));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal sends Ctrl-C to the child as well; sent twice it would cut the orderly end short.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  // A signal to npm ends the shell that npm put between us, and the shell passes nothing on.
  const parent = process.ppid;
  const watch = setInterval(() => process.ppid === parent || child.kill('SIGTERM'), 250);
  if (process.env.npm_lifecycle_event === undefined) clearInterval(watch);
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
