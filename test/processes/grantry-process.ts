// The real program as a child process: its output, its end, and what a shell makes of what it prints.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../free-port.ts';

const ROOT = join(import.meta.dirname, '../..');
const GRANTRY = [join(ROOT, 'src/main.ts')];
/** A program starts without the variables of this process, but for these; compiled code of the run makes its start quick. */
const PASSED_ON = ['PATH', 'NODE_COMPILE_CACHE'];
const PATIENCE_MILLISECONDS = 45_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Ends every process of a test that still runs. */
export async function endProcesses(): Promise<void> {
  for (const child of running) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

export interface ProcessOptions {
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Run as this user and group; only root can. */
  readonly uid?: number;
  /** What Node runs, seen from the root. Default: grantry. */
  readonly program?: readonly string[];
}

/** A started program: `grantry`, or another one. */
export class GrantryProcess {
  output = '';
  errors = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;

  constructor(
    args: readonly string[],
    { cwd = ROOT, environment, stdin, uid, program = GRANTRY }: ProcessOptions = {},
  ) {
    this.#child = spawn(process.execPath, [...program, ...args], {
      cwd,
      env: { ...Object.fromEntries(PASSED_ON.map((name) => [name, process.env[name]])), ...environment },
      ...(uid !== undefined && { uid, gid: uid }),
    });
    running.add(this.#child);
    this.#child.stdout?.on('data', (chunk) => {
      this.output += chunk;
    });
    this.#child.stderr?.on('data', (chunk) => {
      this.errors += chunk;
    });
    this.#child.stdin?.end(stdin ?? '');
    this.#ended = once(this.#child, 'close').then(([code]) => {
      running.delete(this.#child);
      return code as number | null;
    });
  }

  /** The exit code; null when a signal killed it. */
  async ended(): Promise<number | null> {
    return await this.#ended;
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#child.kill(signal);
    return await this.#ended;
  }

  /** Sends a signal that does not end it, such as SIGSTOP. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Waits until the output holds a match, and answers it. */
  printed(pattern: RegExp): Promise<RegExpMatchArray> {
    return this.#matchIn(() => this.output, pattern);
  }

  /** The same for its error output. */
  printedError(pattern: RegExp): Promise<RegExpMatchArray> {
    return this.#matchIn(() => this.errors, pattern);
  }

  async #matchIn(text: () => string, pattern: RegExp): Promise<RegExpMatchArray> {
    const begin = performance.now();
    for (;;) {
      const match = text().match(pattern);
      if (match !== null) return match;
      const late = performance.now() - begin > PATIENCE_MILLISECONDS;
      if (late || this.#child.exitCode !== null) {
        throw new Error(`no ${pattern} in:\n${this.output}\n${this.errors}`);
      }
      await sleep(5);
    }
  }
}

/** Runs a command to its end. */
export async function grantry(args: readonly string[], options: ProcessOptions = {}) {
  const started = new GrantryProcess(args, options);
  const code = await started.ended();
  return { code, output: started.output, errors: started.errors };
}

/**
 * `grantry dev` on a free port, ready to be used. The port is none that the system hands out: of those, another process may
 * have got it, for a connection of its own, by the time that the test starts grantry there again.
 */
export async function startDev(directory: string, args: readonly string[] = [], options: ProcessOptions = {}) {
  const grantry = new GrantryProcess(['dev', directory, '--port', `${await freePort()}`, ...args], options);
  const [, issuer = ''] = await grantry.printed(/Issuer +(\S+)/);
  const [, admin = ''] = await grantry.printed(/Admin +(http:\S+)\/readyz/);
  // A further replica on one Redis has the issuer of the first, and a port of its own.
  const [, address = issuer] = grantry.output.match(/Replica +(http:\S+)/) ?? [];
  return { grantry, issuer, admin, address };
}

/** What a POSIX shell prints for a line. */
export async function shell(line: string, cwd = ROOT): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', line], { cwd });
  return stdout;
}

/** A form posted to a path, with the JSON it is answered with. */
export async function post(url: string, form: Readonly<Record<string, string>>, basic?: string) {
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(form),
    headers: basic === undefined ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A port that another process listens on. */
export async function takenPort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    [Symbol.dispose]: () => {
      server.close();
    },
  };
}
