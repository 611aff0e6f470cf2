// One client whose credentials are looked at: what is known of it at the beginning of a look, and what became of it.

import { livingVerifiers } from '../../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { OwnFacts } from '../verdicts/judged-clients.ts';
import type { RotationOutcome } from './client-rotation.ts';
import type { CredentialOwner, CredentialState } from './credential-state.ts';

/** An accepted client with its manifest. */
export interface CredentialSubject {
  /** Of the object among all clients. */
  readonly key: string;
  readonly object: KubernetesObject;
  readonly owner: CredentialOwner;
  readonly manifest: OAuthClientManifest;
  readonly verdict: ClientVerdict;
  /** Undefined while it has none. */
  readonly state: CredentialState | undefined;
}

/** What became of a client's credentials. */
export interface CredentialOutcome {
  /** What the client is to be judged by now. */
  readonly facts: Pick<OwnFacts, 'secret' | 'faults'>;
  readonly done: RotationOutcome | 'drift_repaired';
  /** Milliseconds until they are to be looked at again. */
  readonly again: number | undefined;
}

/** Whose credentials an object's are. */
export function ownerOfCredentials({ metadata }: KubernetesObject): CredentialOwner {
  const { namespace = '', name, uid } = metadata;
  return { namespace, name, uid };
}

/** The verifiers that count now. */
export function livingOf(state: CredentialState | undefined, now: number): readonly Uint8Array[] {
  return state === undefined ? [] : livingVerifiers(state, now);
}
