// What is stored of a client, for the condition `Programmed` and for the gate before a new secret is published.

import type { Programmed } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { CredentialState } from '../client-secrets/credential-state.ts';
import { isProgrammedIn, type StoredVersion } from '../replicas/programmed.ts';

/** How long a new secret waits where the replicas cannot be observed: they follow within a second. */
const UNOBSERVED_MILLISECONDS = 5000;

/**
 * A client with its credentials.
 * @param state the credentials as they are stored; undefined for a client that has none
 * @param lastStatus undefined where only what replicas report now applies
 */
export function storedClient(
  { metadata: { uid, generation = 1 } }: KubernetesObject,
  state: CredentialState | undefined,
  lastStatus?: unknown,
): StoredVersion {
  return {
    uid,
    version: `${generation}/${state?.revision ?? ''}`,
    isServedBy: ({ clients }) => {
      const client = clients.get(uid);
      return client?.generation === generation && (state === undefined || client.secretRevision === state.revision);
    },
    wasProgrammed:
      isProgrammedIn(lastStatus, generation) &&
      fieldsOf(fieldsOf(lastStatus).secret).revision === state?.verifiers[0]?.revision,
  };
}

/** Whether a new secret may be published. @param waited since when it was stored, milliseconds */
export function mayPublishSecret({ status, reason }: Programmed, waited: number): boolean {
  if (reason === 'NotObserved') return waited >= UNOBSERVED_MILLISECONDS;
  // A replica that starts now reads the stored state first.
  return status === 'True' || reason === 'NoReplicas';
}
