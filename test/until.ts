// Waiting in real time for what other processes do.

import { setTimeout as sleep } from 'node:timers/promises';

/** Polls every 20 ms, or every `pause`. @throws after `limit` ms (default 15 s), naming what was waited for */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  limit = 15_000,
  pause = 20,
): Promise<void> {
  for (const end = performance.now() + limit; performance.now() < end; await sleep(pause)) {
    if (await holds()) return;
  }
  throw new Error(`waited ${limit} ms in vain: ${what}`);
}

/** Whether this was done; not where it failed. */
export function succeeds(tried: Promise<unknown>): Promise<boolean> {
  return tried.then(
    () => true,
    () => false,
  );
}
