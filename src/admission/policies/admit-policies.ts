// The judge of ClientPolicies: which ones apply, and the faults of the others.

import { CLIENT_POLICY } from '../kinds/client-policy.ts';
import { type Condition, type Fault, failing, readyCondition } from '../kinds/conditions.ts';
import { classOf, readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { policyOf } from './policy.ts';
import type { Policy } from './policy-violations.ts';

/** The result of judging one ClientPolicy. */
export interface PolicyVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  /** Undefined when even its namespace selector cannot be read: then it applies to no namespace. */
  readonly policy: Policy | undefined;
  readonly conditions: readonly Condition[];
  readonly faults: readonly Fault<'InvalidManifest'>[];
}

/** Judges every ClientPolicy of this class, in the order given; those of another class are left out. Never throws. */
export function admitPolicies<Source extends SourceObject>(world: {
  readonly className: string;
  readonly unknownFields: UnknownFields;
  readonly policies: readonly Source[];
}): readonly PolicyVerdict<Source>[] {
  const ours = world.policies.filter(({ manifest }) => classOf(manifest) === world.className);
  return ours.map((object) => {
    const { manifest, faults } = readManifest(CLIENT_POLICY[world.unknownFields], object.manifest);
    const scope = manifest ?? readManifest(CLIENT_POLICY.ignore, withoutRules(object.manifest)).manifest;
    const conditions = conditionsOf(object, faults);
    // A policy whose rules cannot be read still selects its namespaces and permits them nothing. Without it, a wider
    // policy or the baseline would apply.
    const policy = scope && { ...policyOf(scope), ...(manifest === undefined && { permissions: undefined }) };
    return { object, policy, faults, conditions };
  });
}

function withoutRules(manifest: unknown): unknown {
  if (typeof manifest !== 'object' || manifest === null) return manifest;
  const { spec } = manifest as { readonly spec?: unknown };
  return typeof spec === 'object' && spec !== null
    ? { ...manifest, spec: { ...spec, allow: {}, limits: {} } }
    : manifest;
}

function conditionsOf({ generation }: SourceObject, faults: readonly Fault<'InvalidManifest'>[]): readonly Condition[] {
  const accepted = failing('Accepted', faults, ['InvalidManifest'], generation) ?? {
    type: 'Accepted',
    status: 'True',
    reason: 'Accepted',
    message: 'Accepted.',
    observedGeneration: generation,
  };
  return [accepted, readyCondition([accepted], generation)];
}
