// How a command ends: the errors that are for the user become lines of stderr and exit codes.

import { StateError } from '../../local-state/state-error.ts';
import { ConfigurationError } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';

export interface ProcessOptions {
  /** The command, as its lines name it: `grantry server`. */
  readonly command: string;
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Runs a command to its end.
 * @returns the exit code of `run`; 2 for an invalid configuration, with a line for each fault; the code of a StartError;
 *   1 where `.grantry/` cannot be used
 * @throws every other error
 */
export async function runProcess({ command, stderr }: ProcessOptions, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ConfigurationError) {
      for (const fault of error.faults) stderr.write(`${command}: ${fault}\n`);
      return 2;
    }
    if (!(error instanceof StartError || error instanceof StateError)) throw error;
    stderr.write(`${command}: ${error.message}\n`);
    return error instanceof StartError ? error.code : 1;
  }
}
