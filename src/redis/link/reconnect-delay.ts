// When a lost connection is tried again. Replicas of grantry lose theirs in the same moment, and must not all come back in one.

/** What the first tries may take at most, doubled with each, and what no try takes longer than; milliseconds. */
const FIRST = 50;
const MOST = 400;

/**
 * Full jitter: anything up to 50 ms at first, up to 400 ms in the end.
 * @param attempt from 1 on
 * @param random from 0 up to 1
 */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  return random() * Math.min(MOST, FIRST * 2 ** Math.min(attempt - 1, 10));
}
