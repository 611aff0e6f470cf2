// Waiting in real time for what other processes do.

import { setTimeout as sleep } from 'node:timers/promises';

/** Polls every 20 ms. @throws after `limit` ms (default 15 s), naming what was waited for */
export async function until(what: string, holds: () => Promise<boolean> | boolean, limit = 15_000): Promise<void> {
  for (const end = performance.now() + limit; performance.now() < end; await sleep(20)) {
    if (await holds()) return;
  }
  throw new Error(`waited ${limit} ms in vain: ${what}`);
}
