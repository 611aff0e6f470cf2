// The commands that README shows for a cluster: the suite runs them as they are printed.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const HEADING = '## On your cluster';

export interface ReadmeCommands {
  /** Make a cluster, install grantry, apply the examples: one command each. */
  readonly install: readonly string[];
  /** What gets a token: lines of one script. */
  readonly token: string;
}

/** @throws when README has no such blocks */
export function readmeCommands(): ReadmeCommands {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
  const [, below = ''] = readme.split(`${HEADING}\n`);
  const [section = ''] = below.split('\n## ', 1);
  const [install, token] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
  if (install === undefined || token === undefined) throw new Error(`README.md: no two blocks below "${HEADING}"`);
  return { install: install.replaceAll('\\\n', ' ').split('\n').filter(Boolean), token };
}
