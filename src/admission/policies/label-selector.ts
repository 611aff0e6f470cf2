// Decides to which namespaces a policy applies, by a label selector (metav1.LabelSelector).

import type { ClientPolicySpec } from '../kinds/client-policy.ts';

/** Whether a label selector matches these labels; an empty selector matches all. */
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
      // NotIn matches a missing label, too, as in Kubernetes.
      const isListed = value !== undefined && values.includes(value);
      return operator === 'In' ? isListed : !isListed;
    })
  );
}
