// A program that serves pages, as a process with a folder of its own.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeptProcess } from '../../cluster/setup/kept-process.ts';
import { succeeds, until } from '../../until.ts';

/** A JVM needs long on a busy machine. */
const PATIENCE_MILLISECONDS = 120_000;

interface ProgramStart {
  /** Its arguments. */
  readonly words: readonly string[];
  /** One that it answers. */
  readonly address: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export class ServedProgram {
  /** For its files; removed with it. */
  readonly folder = mkdtempSync(join(tmpdir(), 'grantry-consumer-'));
  readonly #logFile = join(this.folder, 'output.log');
  #process: KeptProcess | undefined;

  /** Starts it, and waits until it answers. */
  async start(program: string, { words, address, environment = {} }: ProgramStart): Promise<void> {
    this.#process = new KeptProcess(program, words, { logFile: this.#logFile, environment });
    const answers = () => {
      if (this.#process?.hasEnded) throw new Error(`${program} has ended: ${this.output}`);
      return succeeds(fetch(address, { redirect: 'manual' }).then((response) => response.arrayBuffer()));
    };
    await until(`${program} answers`, answers, PATIENCE_MILLISECONDS);
  }

  /** What it printed. */
  get output(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  async stop(): Promise<void> {
    await this.#process?.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
