// The Secrets that a client has beside the one it names now: under the name it had before, or from before it went without a
// generated secret. Their value moves to the new name, and they are removed unless they are to outlive the client. Labels
// alone make no Secret the client's: whoever copies one copies them too, so only what we wrote ourselves is removed.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { FIELD_MANAGER } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { ownerOf } from './client-secret-object.ts';
import type { CredentialOwner } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';
import type { OwnedSecrets } from './owner-secrets.ts';

export interface RenamedSecretsOptions {
  readonly api: LeaderApi;
  readonly ownedSecrets: OwnedSecrets;
  readonly record: (event: EventFacts) => void;
}

export class RenamedSecrets {
  readonly #options: RenamedSecretsOptions;
  /** The name that this process last wrote, by uid of the client: the watch may not have told of it yet. */
  readonly #written = new Map<string, string>();
  /** The Secrets of others that were there last and are told of, by uid of the client and theirs. */
  readonly #leftAlone = new Map<string, ReadonlySet<string>>();

  constructor(options: RenamedSecretsOptions) {
    this.#options = options;
  }

  /** To be called when everything under other names is removed. */
  wrote({ uid }: CredentialOwner, name: string): void {
    this.#written.set(uid, name);
  }

  /** To be called when a client is gone. */
  forget(uid: string): void {
    this.#written.delete(uid);
    this.#leftAlone.delete(uid);
  }

  /** The Secret under another name than this that the client had before its owner renamed it. */
  async of(owner: CredentialOwner, name: string): Promise<KubernetesObject | undefined> {
    const found = await this.#besides(owner, name);
    // A copy may be old: it serves only where the one that was copied is gone.
    return found.find(isOurWork) ?? found[0];
  }

  /** @throws StaleReadError when one changed while it was to be removed: look again */
  async remove({ object, owner, manifest: { spec } }: CredentialSubject): Promise<void> {
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const kept = needsSecret ? clientSecretName(owner.name, spec) : undefined;
    const besides = await this.#besides(owner, kept);
    this.#leaveAlone(
      object,
      besides.filter((found) => !isOurWork(found)),
    );
    for (const found of besides.filter(isOurWork)) {
      // A client that generates no secret has no policy for one any more: the Secret alone tells.
      if (hasGeneratedSecret(spec) || goesWith(found, owner)) await this.#delete(found);
    }
    if (!needsSecret) this.#written.delete(owner.uid);
  }

  /** Every Secret of the client's namespace but one that says by its labels that it is the client's. */
  async #besides(owner: CredentialOwner, kept: string | undefined): Promise<readonly KubernetesObject[]> {
    const found: KubernetesObject[] = [];
    for (const name of this.#namesOf(owner)) {
      if (name === kept) continue;
      const secret = await this.#options.api.get(SECRETS, { namespace: owner.namespace, name });
      if (secret !== undefined && isLabelledFor(secret, owner)) found.push(secret);
    }
    return found;
  }

  async #delete({ metadata: { namespace = '', name, uid, resourceVersion } }: KubernetesObject): Promise<void> {
    const outcome = await this.#options.api.delete(SECRETS, { namespace, name, uid, resourceVersion });
    if (outcome === 'changed') throw new StaleReadError(`Secret ${namespace}/${name}`);
  }

  /** Says so once of each, and remembers no more of them than there are. */
  #leaveAlone(regarding: KubernetesObject, secrets: readonly KubernetesObject[]): void {
    const { uid } = regarding.metadata;
    const told = this.#leftAlone.get(uid);
    if (secrets.length === 0) this.#leftAlone.delete(uid);
    else this.#leftAlone.set(uid, new Set(secrets.map(({ metadata }) => metadata.uid)));
    for (const { metadata } of secrets) {
      if (told?.has(metadata.uid)) continue;
      const note = `The Secret ${quoted(metadata.name)} has the labels of this client, but what is in it was not written by grantry: it is left alone, and does not follow the client.`;
      this.#options.record({ regarding, type: 'Warning', reason: 'SecretLeftAlone', action: 'Remove', note });
    }
  }

  #namesOf(owner: CredentialOwner): ReadonlySet<string> {
    const written = this.#written.get(owner.uid);
    return new Set([...this.#options.ownedSecrets.of(owner), ...(written === undefined ? [] : [written])]);
  }
}

/** Whether a Secret says by name and uid that it is this client's. */
function isLabelledFor({ metadata }: KubernetesObject, { name, uid }: CredentialOwner): boolean {
  const owner = ownerOf(metadata);
  return owner?.name === name && owner.uid === uid;
}

/** Whether the API server names us as who wrote something of its data. */
function isOurWork({ metadata }: KubernetesObject): boolean {
  const { managedFields } = fieldsOf(metadata);
  const entries = (Array.isArray(managedFields) ? managedFields : []).map(fieldsOf);
  return entries.some(({ manager, fieldsV1 }) => manager === FIELD_MANAGER && 'f:data' in fieldsOf(fieldsV1));
}

/** Whether it was to be removed with the client. */
function goesWith({ metadata: { ownerReferences = [] } }: KubernetesObject, owner: CredentialOwner): boolean {
  return ownerReferences.some(({ uid }) => uid === owner.uid);
}
