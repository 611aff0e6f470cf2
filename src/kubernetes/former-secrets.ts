// The Secrets that a client has beside the one it names now: under the name it had before, or from before it went without a
// generated secret. Their value moves to the new name, and they are removed unless they are to outlive the client.

import { clientSecretName } from '../admission/client-secret-manifest.ts';
import { SECRET_METHODS } from '../oauth/client-auth/index.ts';
import { ownerOf } from './client-secret-object.ts';
import type { CredentialOwner } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';
import type { LeadersApi } from './leaders-api.ts';
import type { OwnedSecrets } from './owner-secrets.ts';
import { type KubernetesObject, SECRETS } from './resources.ts';

export interface FormerSecretsOptions {
  readonly api: LeadersApi;
  readonly ownedSecrets: OwnedSecrets;
}

export class FormerSecrets {
  readonly #options: FormerSecretsOptions;
  /** The name that this process last wrote, by uid of the client: the watch may not have told of it yet. */
  readonly #written = new Map<string, string>();

  constructor(options: FormerSecretsOptions) {
    this.#options = options;
  }

  /** To be called when everything under other names is removed. */
  wrote({ uid }: CredentialOwner, name: string): void {
    this.#written.set(uid, name);
  }

  /** To be called when a client is gone. */
  forget(uid: string): void {
    this.#written.delete(uid);
  }

  /** Whether the client has any Secret. */
  has(owner: CredentialOwner): boolean {
    return this.#options.ownedSecrets.of(owner).length > 0;
  }

  /** The Secret under another name than this that the client had before its owner renamed it. */
  async of(owner: CredentialOwner, name: string): Promise<KubernetesObject | undefined> {
    for (const other of this.#namesOf(owner)) {
      if (other === name) continue;
      const found = await this.#options.api.get(SECRETS, { namespace: owner.namespace, name: other });
      if (found !== undefined && isWrittenFor(found, owner)) return found;
    }
    return undefined;
  }

  async remove({ owner, manifest: { spec } }: CredentialSubject): Promise<void> {
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return;
    const { api } = this.#options;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const kept = needsSecret ? clientSecretName(owner.name, spec) : undefined;
    for (const name of [...this.#namesOf(owner)].filter((each) => each !== kept)) {
      const at = { namespace: owner.namespace, name };
      const found = await api.get(SECRETS, at);
      if (found === undefined || !isWrittenFor(found, owner)) continue;
      const { uid, resourceVersion } = found.metadata;
      await api.delete(SECRETS, { ...at, uid, resourceVersion });
    }
    if (!needsSecret) this.forget(owner.uid);
  }

  #namesOf(owner: CredentialOwner): ReadonlySet<string> {
    const written = this.#written.get(owner.uid);
    return new Set([...this.#options.ownedSecrets.of(owner), ...(written === undefined ? [] : [written])]);
  }
}

/** Whether a Secret says by name and uid that it is this client's: what only one that we wrote does unless somebody lies. */
function isWrittenFor({ metadata }: KubernetesObject, { name, uid }: CredentialOwner): boolean {
  const owner = ownerOf(metadata);
  return owner?.name === name && owner.uid === uid;
}
