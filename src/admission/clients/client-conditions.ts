// The conditions in the status of an OAuthClient, computed from the findings about it. admit-client.ts makes the
// findings.

import {
  ACCEPTED_FAULTS,
  type Condition,
  CREDENTIALS_FAULTS,
  type Fault,
  failing,
  pending,
  RESOLVED_REFS_FAULTS,
} from '../kinds/conditions.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { OAuthClientManifest } from '../kinds/oauth-client.ts';
import type { Credentials } from './credentials.ts';

/** The findings that conditions are computed from. */
interface Found {
  readonly object: ObjectIdentity;
  readonly manifest: OAuthClientManifest | undefined;
  readonly awaitsNamespace: boolean;
  readonly faults: readonly Fault[];
  readonly credentials: Credentials;
}

/** `Accepted`: whether the protocol, the policies and the other clients permit the manifest. */
export function acceptedCondition({ object, manifest, awaitsNamespace, faults }: Found): Condition {
  const observedGeneration = object.generation;
  if (manifest?.spec.suspended === true) {
    const message = 'spec.suspended is true: nothing works for this client.';
    return { type: 'Accepted', status: 'False', reason: 'Suspended', message, observedGeneration };
  }
  const fault = failing('Accepted', faults, ACCEPTED_FAULTS, observedGeneration);
  if (fault !== undefined) return fault;
  if (awaitsNamespace) return pending('Accepted', 'The labels of its namespace are not known yet.', observedGeneration);
  return { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'Accepted.', observedGeneration };
}

const UNREADABLE = 'The manifest cannot be read.';

/** `ResolvedRefs` and `CredentialsReady` while the manifest cannot be read. */
export function unreadableConditions(generation: number): readonly Condition[] {
  return [pending('ResolvedRefs', UNREADABLE, generation), pending('CredentialsReady', UNREADABLE, generation)];
}

/** `ResolvedRefs` and `CredentialsReady`. */
export function referenceConditions({ object, faults, credentials }: Found, accepted: Condition): readonly Condition[] {
  const observedGeneration = object.generation;
  const resolved = failing('ResolvedRefs', faults, RESOLVED_REFS_FAULTS, observedGeneration) ?? {
    type: 'ResolvedRefs',
    status: 'True',
    reason: 'ResolvedRefs',
    message: 'All references are resolved.',
    observedGeneration,
  };
  const credentialFault = failing('CredentialsReady', faults, CREDENTIALS_FAULTS, observedGeneration);
  if (credentialFault !== undefined) return [resolved, credentialFault];
  if (credentials.state === 'ready' || credentials.state === 'assumed') {
    const { reason, message } = credentials;
    return [resolved, { type: 'CredentialsReady', status: 'True', reason, message, observedGeneration }];
  }
  const why = accepted.status === 'True' ? 'The client secret is not there yet.' : 'The client is not accepted.';
  return [resolved, pending('CredentialsReady', why, observedGeneration)];
}
