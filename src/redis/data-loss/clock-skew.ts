// How far the clock of this process is from those of the servers of Redis. A watermark is a time of theirs, and so is the age of a
// grant; the tokens of machines and sign-ins are dated by ours. What is made here counts as that much older or newer.

/** How much does no harm, in milliseconds: whoever starts waits for that. */
export const TOLERATED_SKEW = 2000;

/**
 * Milliseconds by which our clock is ahead for sure, behind where negative.
 * @param time what a server said
 * @param asked when it was asked and had answered, by our clock
 */
export function skewOf(time: number, { begin, end }: { readonly begin: number; readonly end: number }): number {
  return Math.max(begin - time, 0) + Math.min(end - time, 0);
}

/**
 * The largest of them; 0 where that does no harm. Once harmful, it counts as such until it is below half of what is tolerated:
 * at the border it would be now this, now that.
 */
export function harmfulSkew(skews: readonly number[], { wasHarmful }: { readonly wasHarmful: boolean }): number {
  const tolerated = wasHarmful ? TOLERATED_SKEW / 2 : TOLERATED_SKEW;
  const largest = skews.reduce((most, skew) => (Math.abs(skew) > Math.abs(most) ? skew : most), 0);
  return Math.abs(largest) > tolerated ? largest : 0;
}
