// The folder of manifests that a command line names.

import { stat } from 'node:fs/promises';
import { StartError } from '../config/start-error.ts';

/** Resolves when it is a folder. @throws StartError for wrong usage, when there is none */
export async function requireFolder(directory: string): Promise<void> {
  const found = await stat(directory).catch(() => undefined);
  if (found === undefined) throw new StartError(`there is no folder ${directory}`, 2);
  if (!found.isDirectory()) throw new StartError(`${directory} is not a folder`, 2);
}
