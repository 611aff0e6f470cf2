// Schedules the status write of a client's last use: each client has a time of day of its own, so that many statuses do
// not all change at midnight.

import { hash } from 'node:crypto';

const DAY_MILLISECONDS = 86_400_000;

/** Milliseconds until the time of day of this client; 0 once it has come today. @param now epoch milliseconds */
export function untilLastUsedReport(uid: string, now: number): number {
  const share = hash('sha256', uid, 'buffer').readUInt32BE(0) / 2 ** 32;
  return Math.max(0, Math.ceil(share * DAY_MILLISECONDS) - (now % DAY_MILLISECONDS));
}
