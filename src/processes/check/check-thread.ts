// The worker thread in which `grantry check` reads and validates, so that check-in-thread.ts can end it at any time.

import { parentPort, workerData } from 'node:worker_threads';
import { type CheckInput, checkPaths } from './check.ts';

parentPort?.postMessage(await checkPaths(workerData as CheckInput));
