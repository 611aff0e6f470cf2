// metav1.LabelSelector: selects the namespaces of a policy.

import type { ClientPolicySpec } from '../kinds/client-policy.ts';

/** Whether a label selector (metav1.LabelSelector) selects these labels; an empty one selects all. */
export function matchesSelector(
  selector: ClientPolicySpec['namespaceSelector'],
  labels: Readonly<Record<string, string>>,
): boolean {
  const labelOf = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  const matchesLabels = Object.entries(selector.matchLabels).every(([key, value]) => labelOf(key) === value);
  return (
    matchesLabels &&
    selector.matchExpressions.every(({ key, operator, values }) => {
      const value = labelOf(key);
      if (operator === 'Exists') return value !== undefined;
      if (operator === 'DoesNotExist') return value === undefined;
      const isListed = value !== undefined && values.includes(value);
      return operator === 'In' ? isListed : !isListed;
    })
  );
}
