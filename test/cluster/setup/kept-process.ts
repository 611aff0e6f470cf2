// A server program as a child process that ends for certain: by `kill()`, when we exit, and also when we are killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

export interface KeptProcessOptions {
  /** What it prints is appended to this file. */
  readonly logFile: string;
  /** Variables beside those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A program from its start to its end. */
export class KeptProcess {
  readonly #name: string;
  readonly #logFile: string;
  readonly #child: ChildProcess;
  readonly #guard: ChildProcess;
  readonly #endWithUs = () => this.#child.kill('SIGKILL');

  /** Starts it. */
  constructor(program: string, args: readonly string[], { logFile, environment = {} }: KeptProcessOptions) {
    this.#name = program;
    this.#logFile = logFile;
    const env = { ...process.env, ...environment };
    this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    this.#child.on('error', () => {});
    const log = createWriteStream(logFile, { flags: 'a' });
    this.#child.stdout?.pipe(log, { end: false });
    this.#child.stderr?.pipe(log, { end: false });
    this.#child.once('close', () => log.end());
    // No handler can clean up after a SIGKILL. The guard reads a pipe that only we hold: its end is ours.
    this.#guard = spawn('sh', ['-c', `read -r _; kill -9 ${this.#child.pid}`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    // It ends before the process it guards is reaped, so it never kills another that got the same number.
    this.#child.once('exit', () => this.#guard.kill('SIGKILL'));
    process.on('exit', this.#endWithUs);
  }

  get hasEnded(): boolean {
    return this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** @throws when it has ended by itself, with where to look */
  assertRuns(): void {
    if (this.hasEnded) throw new Error(`${this.#name} ended at once; its last words are in ${this.#logFile}`);
  }

  /** SIGSTOP: it keeps its connections and says nothing. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** SIGKILL, and waits for its end. */
  async kill(): Promise<void> {
    process.off('exit', this.#endWithUs);
    if (this.hasEnded) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
