// The command `grantry check`: a whole check, in a thread that is ended when it takes too long or too much memory. So no
// manifests of a pull request can hold a pipeline for hours. check.ts reads, validates and writes.

import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import type { CheckInput, CheckReport } from './check.ts';

/** A few times what the largest folder that is read at all (64 MiB) takes on one core. */
const TIME_LIMIT_MILLISECONDS = 300_000;

// In this folder, with the extension of this file: `.ts` in a checkout, `.js` in a build.
const THREAD = new URL(import.meta.url.replace(/check-in-thread(\.[jt]s)$/, 'check-thread$1'));

export interface CheckOptions extends Omit<CheckInput, 'stdin' | 'now'> {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Counted from the end of standard input. Default: five minutes. */
  readonly timeLimitMilliseconds?: number;
}

/** Checks and prints. @returns 0; 1 when there is a fault, a warning with `strict`, or the time is over; 2 when a path cannot be found */
export async function check({ stdin, stdout, stderr, timeLimitMilliseconds, ...rest }: CheckOptions): Promise<number> {
  const isStdinGiven = [...rest.paths, rest.policies].includes('-');
  const input: CheckInput = { ...rest, now: Date.now(), stdin: isStdinGiven ? await text(stdin) : '' };
  const report = await reportOf(input, timeLimitMilliseconds ?? TIME_LIMIT_MILLISECONDS);
  stderr.write(report.stderr);
  stdout.write(report.stdout);
  return report.code;
}

async function reportOf(input: CheckInput, timeLimit: number): Promise<CheckReport> {
  const { promise, resolve, reject } = Promise.withResolvers<CheckReport>();
  const thread = new Worker(THREAD, { workerData: input });
  // Imported only here: the thread loads the validation.
  const giveUp = (limit: string) => resolve(import('./check.ts').then(({ endedCheck }) => endedCheck(input, limit)));
  const timer = setTimeout(() => giveUp(`${timeLimit / 1000} seconds`), timeLimit);
  thread.once('message', resolve).once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') giveUp('memory');
    else reject(error);
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}
