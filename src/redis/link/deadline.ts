// The time limit of an action on Redis, all its scripts together: less than a second. A request may take several
// actions, one after the other: a refresh first reads the subject of the grant, where this process does not know it.

import type { Clock } from '../../oauth/ports/ports.ts';

/** The time that an action may take, everything included; milliseconds. */
const LIMIT = 800;

/** What compensation may add to that, where the action was done and the request is refused all the same; milliseconds. */
const COMPENSATION_BUDGET_MS = 100;

/** A request that waited for less than this and got no answer is no failure for the circuit breaker; milliseconds. */
export const MIN_WAIT_FOR_BREAKER_MS = 600;

/** By how much a timer may fire too early; milliseconds. */
export const TIMER_SLACK_MS = 2;

/** Monotonic: only distances count here. */
export const STOPWATCH: Clock = { now: () => performance.now() };

/** The deadline of an action that begins now: a moment of {@link STOPWATCH}. */
export function newDeadline(): number {
  return STOPWATCH.now() + LIMIT;
}

/** When the action is answered at the latest, with or without compensation. */
export function endOf(deadline: number): number {
  return deadline + COMPENSATION_BUDGET_MS;
}
