// Which clients' credentials were in order at the last look, and everything that depended on: while nothing of it changes,
// no Secret has to be read again.

import { clientSecretName } from '../admission/client-secret-manifest.ts';
import type { CredentialSubject } from './credential-subject.ts';
import { rotationRequests } from './rotation-requests.ts';

interface Settled {
  readonly of: string;
  readonly generation: number;
  /** Epoch milliseconds; undefined: until something changes. */
  readonly until: number | undefined;
}

export class SettledCredentials {
  readonly #settled = new Map<string, Settled>();

  forget(uid: string): void {
    this.#settled.delete(uid);
  }

  /** @param secretVersion of the Secret in the owner's namespace; undefined when there is none */
  settle(subject: CredentialSubject, secretVersion: string | undefined, until: number | undefined): void {
    const of = fingerprint(subject, secretVersion);
    this.#settled.set(subject.owner.uid, { of, generation: generationOf(subject), until });
  }

  /** Whether nothing changed since it was settled, and for how many milliseconds that holds; undefined when not. */
  holding(
    subject: CredentialSubject,
    secretVersion: string | undefined,
    now: number,
  ): { readonly again: number | undefined } | undefined {
    const { of, until } = this.#settled.get(subject.owner.uid) ?? {};
    if (of !== fingerprint(subject, secretVersion) || now >= (until ?? Number.POSITIVE_INFINITY)) return undefined;
    return { again: until === undefined ? undefined : until - now };
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
