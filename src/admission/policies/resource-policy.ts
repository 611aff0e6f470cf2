// Decides which ClientPolicy permits a ProtectedResource: its identifier and the scopes that it declares. As with clients,
// one matching policy must permit all of it.

import type { DefaultPolicy } from '../kinds/client-policy.ts';
import type { Fault } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import { applicablePolicies, noMatchingPolicy } from './policy.ts';
import { listFault, type Policy, rulesIn, unreadable } from './policy-violations.ts';

/** The part of a resource that policies govern. */
export interface ResourcePolicyRequest {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** The identifier, given or derived. */
  readonly identifier: string;
  /** The names of the scopes, in the order of the manifest. */
  readonly scopes: readonly string[];
}

export type ResourcePolicyFault = Fault<'NoMatchingPolicy' | 'PolicyViolation'>;

/** The verdict of the policies of a class on the request of a resource. */
export interface ResourceRequestVerdict {
  /** Empty when the resource is permitted. */
  readonly faults: readonly ResourcePolicyFault[];
  /** Whether a policy of the namespace lists the identifier letter by letter. */
  readonly isListed: boolean;
  /** How many resources the permitting policies let the namespace have. */
  readonly maxResourcesPerNamespace: number;
}

/** Validates the request of one resource against all policies of its class. */
export function validateResourceAgainstPolicies(
  request: ResourcePolicyRequest,
  policies: readonly Policy[],
  defaultPolicy: DefaultPolicy,
): ResourceRequestVerdict {
  const applicable = applicablePolicies(request, policies, defaultPolicy);
  const results = applicable.map((policy) => ({ policy, faults: violationsOf(request, policy) }));
  const permitting = results.filter(({ faults }) => faults.length === 0).map(({ policy }) => policy.permissions);
  const [refusal] = results;
  return {
    faults: permitting.length > 0 ? [] : (refusal?.faults ?? [noMatchingPolicy(request.namespace)]),
    isListed: applicable.some(({ permissions }) => permissions?.allow.resources.includes(request.identifier)),
    maxResourcesPerNamespace: Math.max(
      0,
      ...permitting.map((permissions) => permissions?.limits.maxResourcesPerNamespace ?? 0),
    ),
  };
}

function violationsOf(
  { namespace, identifier, scopes }: ResourcePolicyRequest,
  policy: Policy,
): readonly ResourcePolicyFault[] {
  const { permissions } = policy;
  if (permissions === undefined) return [{ ...unreadable(policy), reason: 'PolicyViolation' }];
  const rules = rulesIn(namespace, policy, permissions);
  const refused = (path: FieldPath, message: string | undefined): readonly ResourcePolicyFault[] =>
    message === undefined ? [] : [{ path, reason: 'PolicyViolation', message }];
  return [
    ...refused(['spec', 'resource'], listFault(rules, 'resources', 'The resource', identifier)),
    ...scopes.flatMap((scope, index) =>
      refused(['spec', 'scopes', index, 'name'], listFault(rules, 'scopes', 'The scope', scope)),
    ),
  ];
}
