// Set-up of the projects whose files share a process: fails a file that leaves the process changed for the files after it.

import { afterAll, beforeAll } from 'vitest';
import { changedSince, processState } from './process-state.ts';

let before = processState();

beforeAll(() => {
  before = processState();
});

afterAll(() => {
  const changes = changedSince(before);
  if (changes.length > 0) throw new Error(`the file leaves behind: ${changes.join('; ')}`);
});
