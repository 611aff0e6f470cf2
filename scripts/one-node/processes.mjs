// The long-running programs of a one-node cluster: started apart from the shell, each with its log and a file that says
// which process it is; ended by that file, waiting for the end.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inState } from './layout.mjs';

/** Root's programs (iptables, modprobe) are not on the PATH of every user. */
const ENVIRONMENT = { ...process.env, PATH: [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter) };

/** Runs a program to its end and answers what it printed; throws what it complained of, unless `mayFail`. */
export function call(program, args, { mayFail = false, input } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    env: ENVIRONMENT,
    input: input ?? '',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0 && !mayFail) {
    throw new Error(`${program} ${args.slice(0, 4).join(' ')} failed: ${(error?.message ?? stderr).trim()}`);
  }
  return stdout ?? '';
}

/** Whether a program that is run to its end succeeds. */
export function succeeds(program, args) {
  return spawnSync(program, args, { stdio: 'ignore', env: ENVIRONMENT }).status === 0;
}

/** Starts a program that stays when this script ends. Flags are `{name: value}`. */
export function start(name, program, flags) {
  const log = openSync(logFile(name), 'a');
  const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log, log], env: ENVIRONMENT, cwd: '/' });
  // Why it did not start is in what `waitFor` says.
  child.on('error', () => undefined);
  child.unref();
  if (child.pid === undefined) throw new Error(`${program} could not be started`);
  writeFileSync(processFile(name), `${child.pid} ${startedAt(child.pid)}`);
}

export function isRunning(name) {
  return processOf(name) !== undefined;
}

/** Ends a program and waits until it is gone; what does not end in 20 s is killed. */
export async function stop(name) {
  const pid = processOf(name);
  if (pid !== undefined) await end(pid, () => processOf(name) !== undefined);
  rmSync(processFile(name), { force: true });
}

/** Ends a process and waits until `isThere` denies it. */
export async function end(pid, isThere) {
  signal(pid, 'SIGTERM');
  for (let i = 0; i < 200 && isThere(); i++) await sleep(100);
  for (; isThere(); await sleep(100)) signal(pid, 'SIGKILL');
}

/** The processes of the machine whose command line, cut into its parts, is like that. */
export function processesWhere(isWanted) {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return processes.filter((pid) => isWanted(commandLine(pid))).map(Number);
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Polls until `holds`; throws when that takes longer than it should, or when one of the programs it takes has ended. */
export async function waitFor(what, programs, holds) {
  const deadline = Date.now() + 180_000;
  while (!holds()) {
    for (const name of programs) mustRun(name);
    if (Date.now() > deadline) throw new Error(`${what} took longer than 3 minutes; see ${inState('logs')}`);
    await sleep(200);
  }
}

/** Throws when a program has ended, which it does when another one has its port, with the end of its log. */
export function mustRun(name) {
  if (isRunning(name)) return;
  const end = readFileSync(logFile(name), 'utf8').split('\n').slice(-6).join('\n');
  throw new Error(`${name} has ended; its log ends with\n${end}`);
}

function logFile(name) {
  return inState('logs', `${name}.log`);
}

function processFile(name) {
  return inState('processes', name);
}

/** The number of the process that was started under this name, if it is still that process. */
function processOf(name) {
  if (!existsSync(processFile(name))) return undefined;
  const [pid, started] = readFileSync(processFile(name), 'utf8').split(' ');
  return startedAt(pid) === started ? Number(pid) : undefined;
}

/** The moment a process started, in the kernel's own count: with it a number that was given again is recognised. */
function startedAt(pid) {
  try {
    // The name of the program, in parentheses, may hold spaces.
    const [state, ...rest] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return state === 'Z' ? undefined : rest[18];
  } catch {
    return undefined;
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
