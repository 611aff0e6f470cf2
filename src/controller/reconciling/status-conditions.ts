// Shared by the statuses of all kinds: conditions that keep the time of their last transition, times as Kubernetes
// writes them, and the comparison that keeps a status from being written twice. Pure.

import type { Condition } from '../../admission/kinds/conditions.ts';
import type { TimedCondition } from '../../admission/kinds/crd.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';

/** Members of an object that may be anything. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The condition with its `lastTransitionTime`: that of `before` while its status is the same.
 * @param before the present status
 * @param now epoch milliseconds
 */
export function withTime(condition: Condition, before: unknown, now: number): TimedCondition {
  const known = conditionIn(before, condition.type);
  // A default of the CRD schema has no observedGeneration.
  const isSame = typeof known?.observedGeneration === 'number' && known.status === condition.status;
  const time = isSame && typeof known.lastTransitionTime === 'string' ? known.lastTransitionTime : seconds(now);
  return { ...condition, lastTransitionTime: time };
}

/** The condition of a type in a status that may be anything. */
export function conditionIn(status: unknown, type: string): Fields | undefined {
  const { conditions } = fieldsOf(status);
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  return list.map(fieldsOf).find((condition) => condition.type === type);
}

export function seconds(time: number): string;
export function seconds(time: number | undefined): string | undefined;
export function seconds(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The same without members that are undefined. */
export function withoutUndefined<Members extends object>(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Members;
}

/** Whether two statuses are equal, whatever the order of their fields and conditions. */
export function isSameStatus(one: unknown, other: unknown): boolean {
  return JSON.stringify(canonical(one)) === JSON.stringify(canonical(other));
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical).sort(byType);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, canonical(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function byType(one: unknown, other: unknown): number {
  return String(fieldsOf(one).type) < String(fieldsOf(other).type) ? -1 : 1;
}
