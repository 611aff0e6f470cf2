// Unhandled exceptions and rejections, which would end a process.

import { setTimeout as sleep } from 'node:timers/promises';

const EVENTS = ['uncaughtException', 'unhandledRejection'] as const;

/** Everything unheard while `work` runs, and shortly after it. */
export async function unheardDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const unheard: unknown[] = [];
  const hear = (error: unknown) => void unheard.push(error);
  // Vitest's own listeners would end the run before a test can report.
  const others = EVENTS.map((event) => [event, process.listeners(event as 'uncaughtException')] as const);
  for (const event of EVENTS) process.removeAllListeners(event).on(event, hear);
  try {
    await work();
    await sleep(100);
  } finally {
    for (const [event, listeners] of others) {
      process.off(event, hear);
      for (const listener of listeners) process.on(event, listener);
    }
  }
  return unheard;
}
