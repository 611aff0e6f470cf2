// Set-up of every project with helpers that inspect or end what tests start: vitest runs it again for each file.

import { afterAll, afterEach } from 'vitest';
import { fileHooks } from './file-hooks.ts';

fileHooks.begin();
afterEach(fileHooks.testEnded);
afterAll(fileHooks.fileEnded);
