// Records the inputs of each client's last successful reconcile, as a fingerprint. While they are unchanged, the
// controller does not read the client's Secret again.

import { clientSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { WithheldSecret } from '../../admission/references/references.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialSubject } from './credential-subject.ts';

interface Reconciled {
  readonly inputs: string;
  readonly generation: number;
  /** Epoch milliseconds; undefined: until something changes. */
  readonly until: number | undefined;
  readonly withheld: WithheldSecret | undefined;
}

export class UnchangedCheck {
  readonly #reconciled = new Map<string, Reconciled>();

  forget(uid: string): void {
    this.#reconciled.delete(uid);
  }

  /**
   * @param secretVersion of the Secret in the owner's namespace; undefined when there is none
   * @param more.until epoch milliseconds; undefined: until something changes
   * @param more.withheld the facts to keep about a Secret that the owner provides
   */
  record(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    { until, withheld }: Partial<Pick<Reconciled, 'until' | 'withheld'>> = {},
  ): void {
    const inputs = fingerprint(subject, secretVersion);
    this.#reconciled.set(subject.client.uid, { inputs, generation: generationOf(subject), until, withheld });
  }

  /** Defined while the inputs are unchanged: the recorded facts, and the milliseconds until the client is due. */
  unchanged(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    now: number,
  ): (Pick<Reconciled, 'withheld'> & { readonly requeueAfter: number | undefined }) | undefined {
    const { inputs, until, withheld } = this.#reconciled.get(subject.client.uid) ?? {};
    if (inputs !== fingerprint(subject, secretVersion) || now >= (until ?? Number.POSITIVE_INFINITY)) return undefined;
    return { withheld, requeueAfter: until === undefined ? undefined : until - now };
  }

  /** Whether the present generation of the client was reconciled: a difference found now is drift. */
  wasReconciled(subject: CredentialSubject): boolean {
    return this.#reconciled.get(subject.client.uid)?.generation === generationOf(subject);
  }
}

function generationOf({ object }: CredentialSubject): number {
  return object.metadata.generation ?? 1;
}

function fingerprint(
  { object, client, manifest, state }: CredentialSubject,
  secretVersion: string | undefined,
): string {
  const { rotateAt, rotateNow } = rotationRequests(object);
  const name = clientSecretName(client.name, manifest.spec);
  return JSON.stringify([object.metadata.generation, rotateAt, rotateNow, state?.revision, secretVersion, name]);
}
