// The commands that documents show for a cluster: the suite runs them as they are printed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

export interface ReadmeCommands {
  /** Make a cluster, install grantry, apply the examples: one command each, as it stands there. */
  readonly install: readonly string[];
  /** What gets a token: lines of one script. */
  readonly token: string;
}

/** What README shows under "On your cluster". @throws when it has no such blocks */
export function readmeCommands(): ReadmeCommands {
  const [install = '', token = ''] = shellBlocks('README.md', 'On your cluster', 2);
  return { install: install.trimEnd().split(/(?<!\\)\n/), token };
}

/** The blocks for a shell below a heading. @throws unless there are `count` */
export function shellBlocks(document: string, heading: string, count: number): readonly string[] {
  const [, below = ''] = readFileSync(join(ROOT, document), 'utf8').split(`## ${heading}\n`);
  const [section = ''] = below.split('\n## ', 1);
  const blocks = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
  if (blocks.length !== count) throw new Error(`${document}: ${blocks.length} blocks below "${heading}", not ${count}`);
  return blocks;
}

/** Runs lines in a shell until one fails, and then ends what they left in the background. @returns what they printed */
export async function runPrinted(lines: string, folder: string = ROOT): Promise<string> {
  const shell = spawn('bash', ['-e', '-c', lines], { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let [output, errors] = ['', ''];
  shell.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  shell.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const closed = once(shell, 'close');
  const [code] = await once(shell, 'exit');
  endGroup(shell.pid);
  await closed;
  if (code !== 0) throw new Error(`a command of these ended with ${code}:\n${lines}\n${output}${errors}`);
  return output;
}

/** What a shell leaves behind has its process group. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid);
  } catch (error) {
    // Nothing was left.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
