// Admits ClientPolicies: the policies that apply, and the faults of the others.

import { CLIENT_POLICY, readableSelector } from '../kinds/client-policy.ts';
import { type Condition, type Fault, failing, readyCondition } from '../kinds/conditions.ts';
import { classOf, readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { policyOf } from './policy.ts';
import type { Policy } from './policy-violations.ts';

/** The result of admission for one ClientPolicy. */
export interface PolicyVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  readonly policy: Policy;
  readonly conditions: readonly Condition[];
  readonly faults: readonly Fault<'InvalidManifest'>[];
}

/** Admits every ClientPolicy of this class, in the order given, and skips those of another class. Never throws. */
export function admitPolicies<Source extends SourceObject>(world: {
  readonly className: string;
  readonly unknownFields: UnknownFields;
  readonly policies: readonly Source[];
}): readonly PolicyVerdict<Source>[] {
  const ours = world.policies.filter(({ manifest }) => classOf(manifest) === world.className);
  return ours.map((object) => {
    const { manifest, faults } = readManifest(CLIENT_POLICY[world.unknownFields], object.manifest);
    // An unreadable policy still selects namespaces and permits them nothing: without it the baseline would apply.
    const policy =
      manifest === undefined
        ? { name: object.name, namespaceSelector: readableSelector(object.manifest), permissions: undefined }
        : policyOf(manifest);
    return { object, policy, faults, conditions: conditionsOf(object, policy, faults) };
  });
}

function conditionsOf(
  { generation }: SourceObject,
  policy: Policy,
  faults: readonly Fault<'InvalidManifest'>[],
): readonly Condition[] {
  const fault = failing('Accepted', faults, ['InvalidManifest'], generation);
  const accepted: Condition =
    fault === undefined
      ? { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'Accepted.', observedGeneration: generation }
      : { ...fault, message: `${fault.message} ${consequenceOf(policy)}` };
  return [accepted, readyCondition([accepted], generation)];
}

function consequenceOf({ namespaceSelector: { matchLabels, matchExpressions } }: Policy): string {
  const selectsAll = Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
  const scope = selectsAll ? 'every namespace' : 'the namespaces that match what can be read of its namespaceSelector';
  return `Until this is corrected, the policy permits nothing and applies to ${scope}.`;
}
