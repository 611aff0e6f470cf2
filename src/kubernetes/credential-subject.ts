// One client whose credentials are looked at: what is known of it at the beginning of a look, and what became of it.

import type { ClientVerdict } from '../admission/admit-client.ts';
import { livingVerifiers } from '../admission/client-verifier.ts';
import type { OAuthClientManifest } from '../admission/oauth-client.ts';
import type { RotationOutcome } from './client-rotation.ts';
import type { CredentialOwner, CredentialState } from './credential-state.ts';
import type { OwnFacts } from './judged-clients.ts';
import type { KubernetesObject } from './resources.ts';

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
