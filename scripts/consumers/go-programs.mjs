// Programs of others in Go, each built from the module in a folder of its name beside this file, which pins what it is made
// of: into our cache, once for each content of that folder.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installGo } from '../apt.mjs';
import { cacheFolder } from '../cache-folder.mjs';
import { goProgram } from '../go.mjs';
import { lock } from '../lock.mjs';
import { longStep } from '../long-step.mjs';

const MODULES = dirname(fileURLToPath(import.meta.url));

/**
 * The path of the program, built where it is missing.
 * @throws an error whose text names what is missing
 */
export async function builtProgram({ name, source }) {
  const program = cacheFolder('grantry-consumers', `${name}-${revisionOf(join(MODULES, name))}`);
  if (existsSync(program)) return program;
  if (goProgram() === undefined) installGo();
  const go = goProgram();
  if (go === undefined) throw new Error(`${name} is built from Go modules, and there is no Go`);
  // One at a time: each keeps all cores busy.
  const unlock = await lock(cacheFolder('grantry-consumers', 'go.lock'), 'another run is building a program in Go');
  try {
    if (!existsSync(program)) await build(go, { name, source }, program);
    return program;
  } finally {
    unlock();
  }
}

/** Changes with each file of a module, and with the machine that it is built for. */
function revisionOf(folder) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of readdirSync(folder).sort()) hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)));
  return hash.digest('hex').slice(0, 12);
}

async function build(go, { name, source }, target) {
  mkdirSync(dirname(target), { recursive: true });
  const folder = mkdtempSync(`${target}.building-`);
  const program = join(folder, name);
  try {
    const code = await longStep(`building ${name} from Go modules, once, into ${target}`, 'one to three minutes', () =>
      compile(go, ['-o', program, source], join(MODULES, name)),
    );
    if (code !== 0) throw new Error(`Go could not build ${name}; its own message is above`);
    renameSync(program, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How fast a program runs does not matter here: this takes about half the time of the compiler's own choice. */
const QUICK_TO_COMPILE = ['-trimpath', '-gcflags', 'all=-N -l -dwarf=false', '-ldflags', '-s -w'];

/** Runs `go build` in the module. Answers the exit code. */
function compile(go, args, cwd) {
  const env = {
    ...process.env,
    CGO_ENABLED: '0',
    GOFLAGS: '-mod=readonly -buildvcs=false',
    GOWORK: 'off',
    PATH: [process.env.PATH, dirname(go)].join(delimiter),
  };
  const child = spawn(go, ['build', ...QUICK_TO_COMPILE, ...args], { cwd, env, stdio: ['ignore', 2, 2] });
  return new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
}
