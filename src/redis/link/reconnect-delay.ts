// The delay before a lost connection is retried. Replicas lose Redis together: full jitter spreads their reconnects.

import { exponentialBackoff } from '../../oauth/values/backoff.ts';

/** Ceilings of the delay, in milliseconds. */
const RECONNECT = { first: 50, longest: 400 };

/**
 * Between 0 and 50 ms after the first failure, between 0 and 400 ms in the end.
 * @param attempt from 1 on
 * @param random from 0 up to 1
 */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  return random() * exponentialBackoff(RECONNECT, attempt - 1);
}
