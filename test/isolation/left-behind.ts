// Set-up of the projects whose files share a process: fails a file that leaves the process changed for the files after it.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import { changedSince, processState } from './process-state.ts';

/** How often, each 10 ms later, what the file has ended is given time to close. */
const CLOSING_CHECKS = 200;

let before = processState();

beforeAll(() => {
  before = processState();
});

afterAll(async () => {
  for (let check = 0; check < CLOSING_CHECKS && changedSince(before).length > 0; check++) await sleep(10);
  const changes = changedSince(before);
  if (changes.length > 0) throw new Error(`the file leaves behind: ${changes.join('; ')}`);
});
