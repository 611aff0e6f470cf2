// The input and the outcome of reconciling one client's credentials.

import { activeVerifiers } from '../../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { ClientFacts } from '../../admission/clients/client-set.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { RotationOutcome } from './client-rotation.ts';
import type { CredentialClient, CredentialState } from './credential-state.ts';
import type { VerifierSecret } from './verifier-secret.ts';

/** An accepted client with its manifest. */
export interface CredentialSubject {
  /** `<namespace>/<name>` of the object. */
  readonly key: string;
  readonly object: KubernetesObject;
  readonly client: CredentialClient;
  readonly manifest: OAuthClientManifest;
  readonly verdict: ClientVerdict;
  readonly verifiers: VerifierSecret;
  /** What it held when it was read: undefined while the client has no stored credentials. */
  readonly state: CredentialState | undefined;
}

/** The outcome of reconciling a client's credentials. */
export interface CredentialOutcome {
  /** The facts for the client's next verdict. */
  readonly facts: Pick<ClientFacts, 'secret' | 'faults'> & Partial<Pick<ClientFacts, 'configMap'>>;
  readonly done: RotationOutcome | 'drift_repaired';
  /** Milliseconds until the next reconcile; undefined when only a change causes one. */
  readonly requeueAfter: number | undefined;
}

/** With the stored credentials as the reconcile left them. */
export interface StoredOutcome extends CredentialOutcome {
  readonly state: CredentialState | undefined;
}

/** The namespace, name and uid of an OAuthClient. */
export function credentialClientOf({ metadata }: KubernetesObject): CredentialClient {
  const { namespace = '', name, uid } = metadata;
  return { namespace, name, uid };
}

/** The stored credentials of a client that are accepted now: verifiers that have not expired, and keys. */
export function storedFacts(
  state: CredentialState | undefined,
  now: number,
): Pick<ClientFacts, 'verifiersOf' | 'jwksOf'> {
  const verifiers = state === undefined ? [] : activeVerifiers(state, now);
  return { verifiersOf: () => verifiers, jwksOf: () => state?.jwks };
}
