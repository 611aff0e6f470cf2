// How long is waited for what takes its time in a cluster, and why. These limits assert nothing: what holds is noticed at
// once, and on a machine of two cores with more to do than it can everything takes ten times as long. The limit of a whole
// test is as long as those waits in it together that can be long.

/** A process starts, reads what there is, and says what it waits for. */
export const STARTS = 40_000;
/** A reflector that was refused or not answered asks again after 30 s at the latest. */
export const ASKS_AGAIN = 50_000;
/** A leader that is gone is missed when its lease is over, 15 s later; its heir then begins with all there is. */
export const TAKES_OVER = 60_000;
