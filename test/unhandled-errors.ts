// Unhandled exceptions and rejections, which would end a process.

import { setTimeout as sleep } from 'node:timers/promises';

const EVENTS = ['uncaughtException', 'unhandledRejection'] as const;

/** The unhandled errors while `work` runs, and for 100 ms after it. */
export async function unhandledErrorsDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const record = (error: unknown) => void errors.push(error);
  // Vitest's own listeners would end the run before a test can report.
  const others = EVENTS.map((event) => [event, process.listeners(event as 'uncaughtException')] as const);
  for (const event of EVENTS) process.removeAllListeners(event).on(event, record);
  try {
    await work();
    await sleep(100);
  } finally {
    for (const [event, listeners] of others) {
      process.off(event, record);
      for (const listener of listeners) process.on(event, listener);
    }
  }
  return errors;
}
