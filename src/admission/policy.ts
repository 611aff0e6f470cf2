// Which ClientPolicy permits a client. One matching policy must permit all of it; where none matches, a built-in one judges.
// What one policy does not permit is policy-violations.ts.

import { ALLOW_ALL, BASELINE, type ClientPolicyManifest, type DefaultPolicy, permissionsOf } from './client-policy.ts';
import { selects } from './label-selector.ts';
import { type Claim, type Policy, type PolicyFault, policyViolations } from './policy-violations.ts';
import { quoted } from './quoted.ts';

/** What the policies of a class say to a claim. */
export interface ClaimVerdict {
  /** The policy that permits the client, or the one the faults are about; undefined when none applies. */
  readonly policy: string | undefined;
  /** Empty when the client is permitted. */
  readonly faults: readonly PolicyFault[];
  /** How many clients the permitting policies let the namespace have. */
  readonly maxClientsPerNamespace: number;
}

/** The policy of a well-shaped manifest. */
export function policyOf(manifest: ClientPolicyManifest): Policy {
  return {
    name: manifest.metadata.name,
    namespaceSelector: manifest.spec.namespaceSelector,
    permissions: permissionsOf(manifest.spec),
  };
}

/** Judges one client by all policies of its class. */
export function judgeByPolicy(claim: Claim, policies: readonly Policy[], defaultPolicy: DefaultPolicy): ClaimVerdict {
  const matching = policies
    .filter((policy) => selects(policy.namespaceSelector, claim.namespaceLabels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const candidates = matching.length > 0 ? matching : builtIn(defaultPolicy);
  const judged = candidates.map((policy) => ({ policy, faults: policyViolations(claim, policy) }));
  const first = judged[0];
  if (first === undefined) {
    const message = `No ClientPolicy matches the namespace ${quoted(claim.namespace)}, and without one nothing is allowed.`;
    return refused(undefined, [{ path: [], reason: 'NoMatchingPolicy', message }]);
  }
  const permitting = judged.filter(({ faults }) => faults.length === 0).map(({ policy }) => policy);
  const chosen = permitting[0];
  if (chosen === undefined) return refused(first.policy.name, first.faults);
  const limits = permitting.map((policy) => policy.permissions?.limits.maxClientsPerNamespace ?? 0);
  return { policy: chosen.name, faults: [], maxClientsPerNamespace: Math.max(...limits) };
}

function refused(policy: string | undefined, faults: readonly PolicyFault[]): ClaimVerdict {
  return { policy, faults, maxClientsPerNamespace: 0 };
}

const BUILT_IN_NAMES = { Baseline: '(baseline)', AllowAll: '(allow-all)' } as const;

function builtIn(defaultPolicy: DefaultPolicy): readonly Policy[] {
  const everywhere = { matchLabels: {}, matchExpressions: [] };
  if (defaultPolicy === 'Deny') return [];
  const permissions = defaultPolicy === 'AllowAll' ? ALLOW_ALL : BASELINE;
  return [{ name: BUILT_IN_NAMES[defaultPolicy], namespaceSelector: everywhere, permissions }];
}
