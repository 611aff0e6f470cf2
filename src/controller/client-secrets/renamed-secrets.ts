// The Secrets of a client other than the one that it names now: under an earlier name, or from before the client
// stopped using a generated secret. Their value moves to the new name, and the controller deletes them unless the
// deletion policy is `Retain`. Labels alone do not make a Secret the client's, since a copy has them too: the
// controller deletes only Secrets whose data it wrote itself, according to `managedFields`.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { FIELD_MANAGER } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { labelledClient } from './client-secret-object.ts';
import type { CredentialClient } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';
import type { OwnedSecrets } from './owner-secrets.ts';

export interface RenamedSecretsOptions {
  readonly api: LeaderApi;
  readonly ownedSecrets: OwnedSecrets;
  readonly record: (event: EventFacts) => void;
}

export class RenamedSecrets {
  readonly #options: RenamedSecretsOptions;
  /** The name that this process last wrote, by uid of the client: the cache may not have that Secret yet. */
  readonly #written = new Map<string, string>();
  /** The uids of foreign Secrets that have been reported and still exist, by uid of the client. */
  readonly #reported = new Map<string, ReadonlySet<string>>();

  constructor(options: RenamedSecretsOptions) {
    this.#options = options;
  }

  /** To be called when the Secrets under other names are removed. */
  recordWritten({ uid }: CredentialClient, name: string): void {
    this.#written.set(uid, name);
  }

  /** To be called when a client is deleted. */
  forget(uid: string): void {
    this.#written.delete(uid);
    this.#reported.delete(uid);
  }

  /** The Secret that the client had under another name than `name`, before its owner renamed it. */
  async of(client: CredentialClient, name: string): Promise<KubernetesObject | undefined> {
    const found = await this.#others(client, name);
    // A copy may be outdated, so it is used only where the original is gone.
    return found.find(isWrittenByController) ?? found[0];
  }

  /** Deletes the client's Secrets under other names. @throws StaleReadError when one changed since the read: requeue */
  async remove({ object, client, manifest: { spec } }: CredentialSubject): Promise<void> {
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const kept = needsSecret ? clientSecretName(client.name, spec) : undefined;
    const others = await this.#others(client, kept);
    this.#reportForeign(
      object,
      others.filter((found) => !isWrittenByController(found)),
    );
    for (const found of others.filter(isWrittenByController)) {
      // A client without a generated secret has no deletion policy: the owner reference of the Secret decides.
      if (hasGeneratedSecret(spec) || isOwnedBy(found, client)) await this.#delete(found);
    }
    if (!needsSecret) this.#written.delete(client.uid);
  }

  /** Every Secret of the client's namespace that has the client's labels, except `kept`. */
  async #others(client: CredentialClient, kept: string | undefined): Promise<readonly KubernetesObject[]> {
    const found: KubernetesObject[] = [];
    for (const name of this.#namesOf(client)) {
      if (name === kept) continue;
      const secret = await this.#options.api.get(SECRETS, { namespace: client.namespace, name });
      if (secret !== undefined && isLabelledFor(secret, client)) found.push(secret);
    }
    return found;
  }

  async #delete({ metadata: { namespace = '', name, uid, resourceVersion } }: KubernetesObject): Promise<void> {
    const outcome = await this.#options.api.delete(SECRETS, { namespace, name, uid, resourceVersion });
    if (outcome === 'changed') throw new StaleReadError(`Secret ${namespace}/${name}`);
  }

  /** Reports each Secret once by an Event, and forgets those that are gone. */
  #reportForeign(regarding: KubernetesObject, secrets: readonly KubernetesObject[]): void {
    const { uid } = regarding.metadata;
    const reported = this.#reported.get(uid);
    if (secrets.length === 0) this.#reported.delete(uid);
    else this.#reported.set(uid, new Set(secrets.map(({ metadata }) => metadata.uid)));
    for (const { metadata } of secrets) {
      if (reported?.has(metadata.uid)) continue;
      const note = `The Secret ${quoted(metadata.name)} has the labels of this client, but what is in it was not written by grantry: it is left alone, and does not follow the client.`;
      this.#options.record({ regarding, type: 'Warning', reason: 'SecretLeftAlone', action: 'Remove', note });
    }
  }

  #namesOf(client: CredentialClient): ReadonlySet<string> {
    const written = this.#written.get(client.uid);
    return new Set([...this.#options.ownedSecrets.of(client), ...(written === undefined ? [] : [written])]);
  }
}

/** Whether the labels of a Secret have the name and the uid of this client. */
function isLabelledFor({ metadata }: KubernetesObject, { name, uid }: CredentialClient): boolean {
  const labelled = labelledClient(metadata);
  return labelled?.name === name && labelled.uid === uid;
}

/** Whether `managedFields` names the controller as a manager of the Secret's data. */
function isWrittenByController({ metadata }: KubernetesObject): boolean {
  const { managedFields } = fieldsOf(metadata);
  const entries = (Array.isArray(managedFields) ? managedFields : []).map(fieldsOf);
  return entries.some(({ manager, fieldsV1 }) => manager === FIELD_MANAGER && 'f:data' in fieldsOf(fieldsV1));
}

/** Whether the Secret has an owner reference to the client, so that garbage collection deletes it with the client. */
function isOwnedBy({ metadata: { ownerReferences = [] } }: KubernetesObject, client: CredentialClient): boolean {
  return ownerReferences.some(({ uid }) => uid === client.uid);
}
