// Decides which ClientPolicy permits a client. One matching policy must permit the whole client; where none matches, a
// built-in policy applies. The violations of a single policy: policy-violations.ts.

import {
  ALLOW_ALL,
  BASELINE,
  type ClientPolicyManifest,
  type DefaultPolicy,
  permissionsOf,
} from '../kinds/client-policy.ts';
import { quoted } from '../kinds/quoted.ts';
import { matchesSelector } from './label-selector.ts';
import { type Policy, type PolicyFault, type PolicyRequest, policyViolations } from './policy-violations.ts';

/** The verdict of the policies of a class on the request of a client. */
export interface RequestVerdict {
  /** The policy that permits the client, or the one the faults are about; undefined when none applies. */
  readonly policy: string | undefined;
  /** Empty when the client is permitted. */
  readonly faults: readonly PolicyFault[];
  /** How many clients the permitting policies let the namespace have. */
  readonly maxClientsPerNamespace: number;
  /** How many bytes the permitting policies let the namespace have in the store without a person. */
  readonly maxState: number;
}

/** The policy of a well-shaped manifest. */
export function policyOf(manifest: ClientPolicyManifest): Policy {
  return {
    name: manifest.metadata.name,
    namespaceSelector: manifest.spec.namespaceSelector,
    permissions: permissionsOf(manifest.spec),
  };
}

/** Validates the request of one client against all policies of its class. */
export function validateAgainstPolicies(
  request: PolicyRequest,
  policies: readonly Policy[],
  defaultPolicy: DefaultPolicy,
): RequestVerdict {
  let chosen: Policy | undefined;
  let refusal: RequestVerdict | undefined;
  let maxClientsPerNamespace = 0;
  let maxState = 0;
  for (const policy of applicablePolicies(request, policies, defaultPolicy)) {
    const faults = policyViolations(request, policy);
    if (faults.length > 0) refusal ??= refused(policy.name, faults);
    else {
      chosen ??= policy;
      const limits = policy.permissions?.limits;
      maxClientsPerNamespace = Math.max(maxClientsPerNamespace, limits?.maxClientsPerNamespace ?? 0);
      maxState = Math.max(maxState, limits?.maxState ?? 0);
    }
  }
  if (chosen !== undefined) return { policy: chosen.name, faults: [], maxClientsPerNamespace, maxState };
  if (refusal !== undefined) return refusal;
  return refused(undefined, [noMatchingPolicy(request.namespace)]);
}

/** The fault where no policy applies to a namespace. */
export function noMatchingPolicy(namespace: string): PolicyFault & { readonly reason: 'NoMatchingPolicy' } {
  const message = `No ClientPolicy matches the namespace ${quoted(namespace)}, and without one nothing is allowed.`;
  return { path: [], reason: 'NoMatchingPolicy', message };
}

/** The policies that apply to a namespace, sorted by name: of several refusals, the same one is always reported. */
export function applicablePolicies(
  { namespaceLabels }: Pick<PolicyRequest, 'namespaceLabels'>,
  policies: readonly Policy[],
  defaultPolicy: DefaultPolicy,
): readonly Policy[] {
  const matching = policies.filter((policy) => matchesSelector(policy.namespaceSelector, namespaceLabels));
  if (matching.length === 0) return BUILT_IN[defaultPolicy];
  return matching.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function refused(policy: string | undefined, faults: readonly PolicyFault[]): RequestVerdict {
  return { policy, faults, maxClientsPerNamespace: 0, maxState: 0 };
}

/** The name of the policy that applies where no ClientPolicy does; no ClientPolicy can have it. */
export const BASELINE_POLICY = '(baseline)';

const EVERYWHERE = { matchLabels: {}, matchExpressions: [] };

/** The policies that apply where none of the cluster matches. */
const BUILT_IN: Readonly<Record<DefaultPolicy, readonly Policy[]>> = {
  Baseline: [{ name: BASELINE_POLICY, namespaceSelector: EVERYWHERE, permissions: BASELINE }],
  AllowAll: [{ name: '(allow-all)', namespaceSelector: EVERYWHERE, permissions: ALLOW_ALL }],
  Deny: [],
};
