// The skew between the clock of this process and those of the Redis servers. Watermarks and the ages of grants are
// times of the servers; the tokens of machines and sign-ins are dated by the local clock, and count as that much older
// or newer.

/** The skew that does no harm, in milliseconds: a process that starts waits for as long. */
export const TOLERATED_SKEW = 2000;

/**
 * The least skew that one answer proves: milliseconds by which the local clock is ahead, behind where negative.
 * @param time of the server
 * @param asked when the request was sent and when it was answered, by the local clock
 */
export function skewOf(time: number, { begin, end }: { readonly begin: number; readonly end: number }): number {
  return Math.max(begin - time, 0) + Math.min(end - time, 0);
}

/**
 * The largest of them; 0 where it does no harm. A harmful skew counts as harmful until it is below half of what is
 * tolerated, so that a skew at the limit does not alternate.
 */
export function harmfulSkew(skews: readonly number[], { wasHarmful }: { readonly wasHarmful: boolean }): number {
  const tolerated = wasHarmful ? TOLERATED_SKEW / 2 : TOLERATED_SKEW;
  const largest = skews.reduce((most, skew) => (Math.abs(skew) > Math.abs(most) ? skew : most), 0);
  return Math.abs(largest) > tolerated ? largest : 0;
}
