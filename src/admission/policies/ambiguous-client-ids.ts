// The entries of `allow.clientIds` by which two namespaces could claim one client id, and the report of them. The
// policy applies nevertheless: such namespaces share these ids. client-uniqueness.ts decides which client has an id.

import type { Condition } from '../kinds/conditions.ts';
import { NAMESPACE_VARIABLE } from '../kinds/glob.ts';
import { quoted } from '../kinds/quoted.ts';
import type { Policy } from './policy-violations.ts';

/** One entry of `allow.clientIds`. */
export interface ClientIdEntry {
  readonly index: number;
  readonly pattern: string;
}

const NAME_LABEL = 'kubernetes.io/metadata.name';
/** A message names no more: a policy may have a hundred entries. */
const MOST_NAMED = 5;

/**
 * The entries that two of the selected namespaces could both match. An entry with `${namespace}` is decided by its form,
 * also while no two such namespaces exist: a tenant may be able to create the second.
 * @param selected how many namespaces the policy selects, of those that the caller knows
 */
export function ambiguousClientIds(
  { namespaceSelector, permissions }: Policy,
  selected: number,
): readonly ClientIdEntry[] {
  if (permissions === undefined || permissions.allow.clientIds.length === 0) return [];
  const { matchLabels, matchExpressions } = namespaceSelector;
  const named = [
    ...(matchLabels[NAME_LABEL] === undefined ? [] : [1]),
    ...matchExpressions.flatMap(({ key, operator, values }) =>
      key === NAME_LABEL && operator === 'In' ? [values.length] : [],
    ),
  ];
  const most = Math.min(...named);
  if (most < 2) return [];
  const selectsAll = Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
  const selectsSeveral = selected > 1 || selectsAll || most < Infinity;
  return permissions.allow.clientIds
    .map((pattern, index) => ({ index, pattern }))
    .filter(({ pattern }) => isShared(pattern) && (selectsSeveral || pattern.includes(NAMESPACE_VARIABLE)));
}

/** The condition of a policy with such entries; undefined without any. */
export function ambiguityCondition(
  entries: readonly ClientIdEntry[],
  observedGeneration: number,
): Condition | undefined {
  if (entries.length === 0) return undefined;
  const named = entries.slice(0, MOST_NAMED).map(({ pattern }) => quoted(pattern));
  const more = entries.length > MOST_NAMED ? ` and ${entries.length - MOST_NAMED} more` : '';
  const message = `${ambiguityMessage(entries)} In allow.clientIds: ${named.join(', ')}${more}.`;
  return { type: 'AmbiguousClientIds', status: 'True', reason: 'SharedByNamespaces', message, observedGeneration };
}

/** The sentence about these entries, and the remedy. */
export function ambiguityMessage(entries: readonly ClientIdEntry[]): string {
  const hasVariable = entries.some(({ pattern }) => pattern.includes(NAMESPACE_VARIABLE));
  const remedy = hasVariable
    ? ` Only _ or ~ ends a namespace for certain: ${NAMESPACE_VARIABLE}_* is never shared.`
    : '';
  return `Two of the selected namespaces could claim the same client id, and the first one has it.${remedy}`;
}

/** Whether some id matches the pattern for two namespaces. */
function isShared(pattern: string): boolean {
  const hasStar = pattern.includes('*');
  if (!pattern.includes(NAMESPACE_VARIABLE)) return !hasStar || !pattern.includes('.');
  // Without a star the length of the id determines that of the namespace; a glob permits no id with a dot.
  if (!hasStar || pattern.includes('.')) return false;
  const head = pattern.slice(0, pattern.indexOf('*')).split(NAMESPACE_VARIABLE);
  const tail = pattern.slice(pattern.lastIndexOf('*') + 1).split(NAMESPACE_VARIABLE);
  // The id starts with the head. A character that no namespace holds, anywhere behind the variable, determines where
  // the namespace ends; the same holds in front of the variable in the tail.
  return !head.slice(1).some(endsNamespace) && !tail.slice(0, -1).some(endsNamespace);
}

/** Whether a text holds a character that no namespace (RFC 1123 label) holds. */
function endsNamespace(text: string): boolean {
  return /[^a-z0-9-]/.test(text);
}
