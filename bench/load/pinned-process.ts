// Programs that are measured or that measure: started on one core, their CPU time read from the kernel, ended by the run.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where servers run, where the load comes from, and both: lists of cores. */
export const SERVER_CORE = '0';
export const LOAD_CORE = '1';
export const BOTH_CORES = '0,1';

const START_MILLISECONDS = 180_000;
const started = new Set<ChildProcess>();
const microsecondsPerTick = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** A program whose CPU time is read. */
export interface PinnedProcess {
  /** CPU time of the process so far, user and system, in microseconds. */
  cpuMicroseconds(): number;
}

/** A server that answers requests at `origin`. */
export interface PinnedServer extends PinnedProcess {
  readonly origin: string;
  /** What it holds of the machine's memory now. */
  residentMegabytes(): number;
  /** Ends it. */
  stop(): Promise<void>;
}

/** With what Node runs grantry's image; the others it is compared with, too. */
export const NODE_OPTIONS: readonly string[] = ['--use-largepages=silent'];

/**
 * Starts a Node program and waits until it answers.
 * @param options.args its file and arguments, given the port it should listen on
 * @param options.probe a path that answers as soon as it is ready
 * @param options.cores default: the servers'
 * @param options.environment variables beside those of this process
 */
export async function startServer({
  args,
  probe,
  cores = SERVER_CORE,
  environment,
}: {
  readonly args: (port: number) => readonly string[];
  readonly probe: string;
  readonly cores?: string;
  readonly environment?: Readonly<Record<string, string>>;
}): Promise<PinnedServer> {
  const port = await freePort();
  const child = start(cores, [process.execPath, ...NODE_OPTIONS, ...args(port)], { output: 'ignore', environment });
  const origin = `http://127.0.0.1:${port}`;
  await answers(`${origin}${probe}`, child);
  return {
    origin,
    cpuMicroseconds: () => cpuMicroseconds(child),
    residentMegabytes: () => residentMegabytes(child),
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      started.delete(child);
    },
  };
}

/** Starts any program. */
export function startProgram(cores: string, command: readonly string[]): PinnedProcess {
  const child = start(cores, command, { output: 'ignore' });
  return { cpuMicroseconds: () => cpuMicroseconds(child) };
}

/** Runs a Node program to its end, with `input` as JSON on its standard input; answers the JSON that it printed. */
export async function runPinned(cores: string, file: string, input: unknown): Promise<unknown> {
  const child = start(cores, [process.execPath, file], { output: 'pipe' });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stdin?.on('error', () => {}).end(JSON.stringify(input));
  const [code] = await once(child, 'close');
  started.delete(child);
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
  return JSON.parse(output);
}

/** Ends every program that still runs. */
export function stopAll(): void {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
}

/** A port that no process listens on right now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

interface Start {
  readonly output: 'ignore' | 'pipe';
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

function start(cores: string, command: readonly string[], { output, environment = {} }: Start): ChildProcess {
  const child = spawn('taskset', ['--cpu-list', cores, ...command], {
    stdio: [output, output, 'inherit'],
    env: { ...process.env, ...environment, NODE_ENV: 'production' },
  });
  started.add(child);
  return child;
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  const until = Date.now() + START_MILLISECONDS;
  while (Date.now() < until && child.exitCode === null) {
    try {
      const response = await fetch(url, { method: 'GET' });
      await response.arrayBuffer();
      return;
    } catch {
      await sleep(50);
    }
  }
  throw new Error(`nothing answers at ${url}`);
}

// proc(5): after the command in parentheses, utime and stime are the 12th and 13th fields, in clock ticks.
function cpuMicroseconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}

function residentMegabytes(child: ChildProcess): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}
