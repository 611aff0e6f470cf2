// The conditions of an object: metav1.Condition, the reasons of each type, and Ready computed from the others. The
// writer of the status sets `lastTransitionTime`, which depends on the previous status.

import { type FieldPath, formatPath } from './field-path.ts';

/** A metav1.Condition without `lastTransitionTime`. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** A stable CamelCase word. */
  readonly reason: string;
  /** A sentence for people; never a secret and nothing about another namespace. */
  readonly message: string;
  readonly observedGeneration: number;
}

/**
 * The reasons for which `Accepted` is False because of the manifest. The condition shows the first one in this order.
 * Besides these, `Accepted` is False with `Suspended`, Unknown with `Pending`, True with `Accepted`.
 */
export const ACCEPTED_FAULTS = [
  'InvalidManifest',
  'NamespaceReserved',
  'UnsupportedAuthMethod',
  'UnsupportedPreset',
  'UnsupportedGrantType',
  'GrantNotAllowedForMethod',
  'MissingRedirectUri',
  'InvalidRedirectUri',
  'InvalidScope',
  'InvalidAudience',
  'InvalidTokenSettings',
  'ClientIdNotPermitted',
  'NoMatchingPolicy',
  'PolicyViolation',
  'ClientIdConflict',
  'ClientLimitExceeded',
] as const;

/**
 * The reasons for which `ResolvedRefs` is False: a referenced object is missing or unusable. True with `ResolvedRefs`.
 */
export const RESOLVED_REFS_FAULTS = [
  'SecretNotFound',
  'SecretKeyMissing',
  'ConfigMapNotFound',
  'InvalidJwks',
  'ServiceAccountNotFound',
  'SubjectConflict',
] as const;

/**
 * The reasons for which `CredentialsReady` is False. True with `SecretGenerated`, `SecretAdopted` (an existing Secret
 * of the owner is used) or `NotRequired`; Unknown with `Pending` while a secret is still to be generated or found.
 */
export const CREDENTIALS_FAULTS = [
  'InvalidSecretTemplate',
  'WeakSecret',
  'SecretNotOwned',
  'SecretNotReadable',
  'SecretWriteForbidden',
  'RotationFailed',
  'SecretContested',
] as const;

/**
 * The reasons for which `Accepted` of a ProtectedResource is False. Besides these, it is Unknown with `Pending`, True
 * with `Accepted`.
 */
export const RESOURCE_FAULTS = [
  'InvalidManifest',
  'NamespaceReserved',
  'InvalidResource',
  'InvalidScope',
  'NoMatchingPolicy',
  'PolicyViolation',
  'ResourceConflict',
  'ResourceLimitExceeded',
] as const;

export type ResourceFaultReason = (typeof RESOURCE_FAULTS)[number];

/**
 * The reasons for which `Accepted` of an IdentityProvider is False because of the manifest. Besides these, it is False with
 * `Suspended`, True with `Accepted`.
 */
export const PROVIDER_FAULTS = [
  'InvalidManifest',
  'NamespaceNotHonoured',
  'NameReserved',
  'UnsupportedType',
  'OrganizationsMissing',
  'IssuerTaken',
  'TooManyProviders',
] as const;

/**
 * The reasons for which `ResolvedRefs` of an IdentityProvider is False. True with `ResolvedRefs`, Unknown with `Pending`
 * while the manifest cannot be read.
 */
export const PROVIDER_SECRET_FAULTS = [
  'SecretNotFound',
  'SecretTypeMismatch',
  'SecretKeyMissing',
  'InvalidCertificate',
] as const;

export type ProviderFaultReason = (typeof PROVIDER_FAULTS)[number] | (typeof PROVIDER_SECRET_FAULTS)[number];

export type FaultReason =
  | (typeof ACCEPTED_FAULTS)[number]
  | (typeof RESOLVED_REFS_FAULTS)[number]
  | (typeof CREDENTIALS_FAULTS)[number];

/** One fault that keeps an object from being used, and the field it is in. */
export interface Fault<Reason extends string = FaultReason> {
  readonly path: FieldPath;
  readonly reason: Reason;
  /** A sentence for people; see {@link Condition.message}. */
  readonly message: string;
}

/**
 * Whether the replicas serve the current generation of an object, as the caller observed (`dev`: always `Programmed`).
 */
export interface Programmed {
  readonly status: Condition['status'];
  /** `Programmed`, `NotObserved` (no process queries the replicas), `NoReplicas`, `Pending`. */
  readonly reason: 'Programmed' | 'NotObserved' | 'NoReplicas' | 'Pending';
  readonly message: string;
}

/** Whether the replicas reach the source of an IdentityProvider, as the caller observed. */
export interface Reachable {
  readonly status: Condition['status'];
  /** `DiscoveryFailed` and `IssuerMismatch` are what a replica found; `NotObserved`: none has tried yet. */
  readonly reason: 'Reachable' | 'DiscoveryFailed' | 'IssuerMismatch' | 'NotObserved';
  readonly message: string;
}

/** An Unknown condition: a step before it failed or has not happened yet. */
export function pending(type: string, message: string, observedGeneration: number): Condition {
  return { type, status: 'Unknown', reason: 'Pending', message, observedGeneration };
}

/** The first fault whose reason is in `reasons`, by the order of `reasons`, as a False condition of that type. */
export function failing<Reason extends string>(
  type: string,
  faults: readonly Fault<Reason>[],
  reasons: readonly string[],
  observedGeneration: number,
): Condition | undefined {
  if (faults.length === 0) return undefined;
  for (const reason of reasons) {
    const fault = faults.find((candidate) => candidate.reason === reason);
    if (fault === undefined) continue;
    return { type, status: 'False', reason, message: sentenceOf(fault), observedGeneration };
  }
  return undefined;
}

/** `Ready`: True when all others are, else a copy of the first that is not. */
export function readyCondition(others: readonly Condition[], observedGeneration: number): Condition {
  const first = others.find((condition) => condition.status !== 'True');
  if (first !== undefined) return { ...first, type: 'Ready', observedGeneration };
  return { type: 'Ready', status: 'True', reason: 'Ready', message: 'Ready.', observedGeneration };
}

/** The message of a condition about a fault: `spec.redirectUris[0]: Must be …`. */
function sentenceOf(fault: Fault<string>): string {
  const path = formatPath(fault.path);
  return path === '' ? fault.message : `${path}: ${fault.message}`;
}
