// The judge of ClientPolicies: which ones count, and what is wrong with the others.

import { CLIENT_POLICY } from '../kinds/client-policy.ts';
import { type Condition, type Fault, failing, readyCondition } from '../kinds/conditions.ts';
import { classOf, readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { policyOf } from './policy.ts';
import type { Policy } from './policy-violations.ts';

/** What a ClientPolicy came to. */
export interface PolicyVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  /** Undefined when even the namespaces it is about cannot be read: then it counts for nothing. */
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
    // A policy whose rules cannot be read still tells whom it is about. It permits them nothing: were it left out, a
    // wider policy or the baseline would take its place.
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
