// How long an action waits for Redis, all its scripts together: less than a second. A request may take several actions, one
// after the other: a refresh asks first whose grant it is, where this process does not know.

import type { Clock } from '../../oauth/ports/ports.ts';

/** What it may take, everything included; milliseconds. */
const LIMIT = 800;

/** What taking it back may add to that, where it was done and the request is refused all the same; milliseconds. */
const COMPENSATION_BUDGET_MS = 100;

/** A request that had less time than this says nothing of its server when no answer comes; milliseconds. */
export const MIN_WAIT_FOR_BREAKER_MS = 600;

/** By how much a timer may be too early; milliseconds. */
export const TIMER_SLACK_MS = 2;

/** Monotonic: only distances count here. */
export const STOPWATCH: Clock = { now: () => performance.now() };

/** When an action that begins now gives up: a moment of {@link STOPWATCH}. */
export function newDeadline(): number {
  return STOPWATCH.now() + LIMIT;
}

/** When it is answered at the latest, whatever could be taken back by then. */
export function endOf(deadline: number): number {
  return deadline + COMPENSATION_BUDGET_MS;
}
