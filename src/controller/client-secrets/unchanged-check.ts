// Records the inputs of each client's last successful reconcile, as a fingerprint. While they are unchanged, the
// controller does not read the client's Secret again.

import { clientSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { WithheldSecret } from '../../admission/references/references.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialSubject } from './credential-subject.ts';

interface Reconciled {
  readonly inputs: string;
  readonly generation: number;
  /** When the client is due again, in epoch milliseconds; undefined when only a change makes it due. */
  readonly dueAt: number | undefined;
  readonly withheld: WithheldSecret | undefined;
}

export class UnchangedCheck {
  readonly #reconciled = new Map<string, Reconciled>();

  forget(uid: string): void {
    this.#reconciled.delete(uid);
  }

  /**
   * Records a reconcile that succeeded.
   * @param secretVersion the resourceVersion of the Secret in the owner's namespace; undefined when there is none
   * @param dueAt when the client is due again, in epoch milliseconds; undefined when only a change makes it due
   * @param withheld the facts to keep about a Secret that the owner provides
   */
  record(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    { dueAt, withheld }: Partial<Pick<Reconciled, 'dueAt' | 'withheld'>> = {},
  ): void {
    const inputs = fingerprint(subject, secretVersion);
    this.#reconciled.set(subject.client.uid, { inputs, generation: generationOf(subject), dueAt, withheld });
  }

  /**
   * The recorded facts and the milliseconds until the client is due; undefined when the inputs have changed or the
   * client is due.
   */
  unchanged(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    now: number,
  ): (Pick<Reconciled, 'withheld'> & { readonly requeueAfter: number | undefined }) | undefined {
    const { inputs, dueAt, withheld } = this.#reconciled.get(subject.client.uid) ?? {};
    if (inputs !== fingerprint(subject, secretVersion) || now >= (dueAt ?? Number.POSITIVE_INFINITY)) return undefined;
    return { withheld, requeueAfter: dueAt === undefined ? undefined : dueAt - now };
  }

  /** Whether the present generation of the client was reconciled, so that a difference found now is drift. */
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
  // A state that replaces a lost one may have the same revision.
  const newest = state?.verifiers[0] && Buffer.from(state.verifiers[0].verifier).toString('base64url');
  const inputs = [object.metadata.generation, rotateAt, rotateNow, state?.revision, newest, secretVersion, name];
  return JSON.stringify(inputs);
}
