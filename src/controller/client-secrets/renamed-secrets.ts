// The Secrets of a client other than the one that it names now: under an earlier name, or from before the client
// stopped using a generated secret. Only a name that the controller wrote down in the verifier Secret counts, since any
// Secret of the namespace can have the labels of the client. The value moves to the new name, and the controller deletes
// the Secret unless the deletion policy is `Retain` or another writer made it, according to `managedFields`.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { labelledClient, ownNames } from './client-secret-object.ts';
import type { CredentialClient } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';

export interface RenamedSecretsOptions {
  readonly api: LeaderApi;
  readonly record: (event: EventFacts) => void;
}

export class RenamedSecrets {
  readonly #options: RenamedSecretsOptions;

  constructor(options: RenamedSecretsOptions) {
    this.#options = options;
  }

  /** The Secret that the client had under another name than `name`, before its owner renamed it. */
  async of(
    subject: Pick<CredentialSubject, 'client' | 'verifiers'>,
    name: string,
  ): Promise<KubernetesObject | undefined> {
    const found = await this.#others(subject, name);
    // A copy may be outdated: it is used only where the original is gone.
    return found.find(isWrittenByController) ?? found[0];
  }

  /**
   * Deletes the client's Secrets under other names.
   * @returns the names that stay written down
   * @throws StaleReadError when a Secret changed since the read: requeue
   */
  async remove(subject: CredentialSubject): Promise<readonly string[]> {
    const { object, client, manifest, verifiers } = subject;
    const { spec } = manifest;
    const known = verifiers.secretNames;
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return known;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const kept = needsSecret ? clientSecretName(client.name, spec) : undefined;
    for (const found of await this.#others(subject, kept)) {
      if (!isWrittenByController(found)) this.#reportForeign(object, found);
      // A client without a generated secret has no deletion policy: the owner reference of the Secret decides.
      else if (hasGeneratedSecret(spec) || isOwnedBy(found, client)) await this.#delete(found);
    }
    return known.filter((name) => name === kept);
  }

  /** The Secrets under the names that are written down, except `kept`, where they still have the client's labels. */
  async #others(
    { client, verifiers }: Pick<CredentialSubject, 'client' | 'verifiers'>,
    kept: string | undefined,
  ): Promise<readonly KubernetesObject[]> {
    const found: KubernetesObject[] = [];
    for (const name of verifiers.secretNames) {
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

  #reportForeign(regarding: KubernetesObject, { metadata }: KubernetesObject): void {
    const note = `The Secret ${quoted(metadata.name)} has the labels of this client, but what is in it was not written by grantry: it is left alone, and does not follow the client.`;
    this.#options.record({ regarding, type: 'Warning', reason: 'SecretLeftAlone', action: 'Remove', note });
  }
}

/** Whether the labels of a Secret have the name and the uid of this client. */
function isLabelledFor({ metadata }: KubernetesObject, { name, uid }: CredentialClient): boolean {
  const labelled = labelledClient(metadata);
  return labelled?.name === name && labelled.uid === uid;
}

/** Whether the controller wrote any of the Secret's data. */
function isWrittenByController(secret: KubernetesObject): boolean {
  return ownNames(secret, 'data').length > 0;
}

/** Whether the Secret has an owner reference to the client, so that garbage collection deletes it with the client. */
function isOwnedBy({ metadata: { ownerReferences = [] } }: KubernetesObject, client: CredentialClient): boolean {
  return ownerReferences.some(({ uid }) => uid === client.uid);
}
