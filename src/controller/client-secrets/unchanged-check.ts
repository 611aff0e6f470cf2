// Which clients' credentials were in order at the last look, and everything that depended on: while nothing of it changes,
// no Secret has to be read again.

import { clientSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { WithheldSecret } from '../../admission/references/references.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialSubject } from './credential-subject.ts';

interface Settled {
  readonly of: string;
  readonly generation: number;
  /** Epoch milliseconds; undefined: until something changes. */
  readonly until: number | undefined;
  readonly withheld: WithheldSecret | undefined;
}

export class UnchangedCheck {
  readonly #settled = new Map<string, Settled>();

  forget(uid: string): void {
    this.#settled.delete(uid);
  }

  /**
   * @param secretVersion of the Secret in the owner's namespace; undefined when there is none
   * @param more.until epoch milliseconds; undefined: until something changes
   * @param more.withheld what is to be remembered of a Secret of the owner's own
   */
  settle(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    { until, withheld }: Partial<Pick<Settled, 'until' | 'withheld'>> = {},
  ): void {
    const of = fingerprint(subject, secretVersion);
    this.#settled.set(subject.owner.uid, { of, generation: generationOf(subject), until, withheld });
  }

  /** Whether nothing changed since it was settled, and for how many milliseconds that holds; undefined when not. */
  holding(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    now: number,
  ): (Pick<Settled, 'withheld'> & { readonly again: number | undefined }) | undefined {
    const { of, until, withheld } = this.#settled.get(subject.owner.uid) ?? {};
    if (of !== fingerprint(subject, secretVersion) || now >= (until ?? Number.POSITIVE_INFINITY)) return undefined;
    return { withheld, again: until === undefined ? undefined : until - now };
  }

  /** Whether the client as it stands in its manifest was settled: what is found otherwise somebody else changed. */
  wasSettled(subject: CredentialSubject): boolean {
    return this.#settled.get(subject.owner.uid)?.generation === generationOf(subject);
  }
}

function generationOf({ object }: CredentialSubject): number {
  return object.metadata.generation ?? 1;
}

function fingerprint({ object, owner, manifest, state }: CredentialSubject, secretVersion: string | undefined): string {
  const { rotateAt, rotateNow } = rotationRequests(object);
  const name = clientSecretName(owner.name, manifest.spec);
  return JSON.stringify([object.metadata.generation, rotateAt, rotateNow, state?.revision, secretVersion, name]);
}
