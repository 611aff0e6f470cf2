// What MONITOR prints of the scripts that servers run: what each was called with and then what it did. Another process
// reads it: one that is busy with it lets its own requests wait.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../until.ts';
import type { RedisServer } from './servers.ts';

/** The keys that a script was called with, and the commands that it gave. */
export interface ScriptCall {
  readonly declared: ReadonlySet<string>;
  readonly commands: (readonly string[])[];
}

export class Monitor {
  readonly #server: RedisServer;
  readonly #file: string;
  readonly #child: ChildProcess;

  private constructor(server: RedisServer) {
    this.#server = server;
    this.#file = join(server.folder, 'monitor');
    const output = openSync(this.#file, 'w');
    this.#child = spawn('redis-cli', ['-p', `${server.port}`, 'MONITOR'], { stdio: ['ignore', output, 'inherit'] });
    closeSync(output);
  }

  /** Answers once it is printing. */
  static async of(server: RedisServer): Promise<Monitor> {
    const monitor = new Monitor(server);
    await until('MONITOR prints', () => monitor.#printed().includes('OK'));
    return monitor;
  }

  /** All calls until now. */
  async calls(): Promise<readonly ScriptCall[]> {
    await this.#server.command('ECHO', 'that is all');
    await until('MONITOR has printed everything', () => this.#printed().includes('"that is all"'));
    const calls: ScriptCall[] = [];
    for (const [, source = '', text = ''] of this.#printed().matchAll(/^\S+ \[\d+ (\S+)\] (.*)$/gm)) {
      const words = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) => word);
      if (source === 'lua') calls.at(-1)?.commands.push(words);
      else if (/^eval/i.test(words[0] ?? '')) {
        calls.push({ declared: new Set(words.slice(3, 3 + Number(words[2]))), commands: [] });
      }
    }
    return calls;
  }

  stop(): void {
    this.#child.kill();
  }

  #printed(): string {
    return readFileSync(this.#file, 'latin1');
  }
}
