// The verifier Secrets of the release namespace, read and written by the controller: one for each client with a secret.
// What was just written is known at once. Those of clients that are gone are removed.

import { VERIFIER_SECRET_TYPE, verifierSecretName } from '../../admission/client-secrets/client-verifier.ts';
import { PART_LABEL } from '../../admission/references/secret-parts.ts';
import { KubernetesError, type NewObject } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, OAUTH_CLIENTS, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { OwnWrites } from '../reconciling/own-writes.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import {
  CLASS_LABEL,
  CLIENT_LABEL,
  CLIENT_NAMESPACE_LABEL,
  type CredentialOwner,
  type CredentialState,
  readCredentialState,
  verifierSecret,
} from './credential-state.ts';

export interface VerifierSecretsOptions {
  readonly api: LeaderApi;
  /** Secrets of the release namespace. */
  readonly view: ObjectView;
  readonly releaseNamespace: string;
  readonly className: string;
}

export class VerifierSecrets {
  readonly #options: VerifierSecretsOptions;
  readonly #own: OwnWrites;

  constructor(options: VerifierSecretsOptions) {
    this.#options = options;
    this.#own = new OwnWrites(options.view);
  }

  /** What is kept of a client; undefined when there is nothing, or nothing that can be read. */
  get(uid: string): CredentialState | undefined {
    return readCredentialState(this.#own.get(this.#key(uid)));
  }

  /** Whether replicas find what is kept of a client: they list by label, and a backup may have lost it. */
  isListed(uid: string): boolean {
    const { labels = {} } = this.#own.get(this.#key(uid))?.metadata ?? {};
    return labels[PART_LABEL] === 'verifier' && labels[CLASS_LABEL] === this.#options.className;
  }

  /**
   * @param known what `get` said when this state was decided on: what somebody else stored since is not written over
   * @throws KubernetesError `Conflict` and StaleReadError when it is not that any more: look again
   */
  async put(owner: CredentialOwner, state: CredentialState, known: CredentialState | undefined): Promise<void> {
    const { api, releaseNamespace, className } = this.#options;
    const key = this.#key(owner.uid);
    if (this.get(owner.uid)?.revision !== known?.revision) throw new StaleReadError(`Secret ${key}`);
    const present = this.#own.get(key);
    const secret = verifierSecret(owner, state, { releaseNamespace, className });
    // Its type cannot be changed, and only of this type it counts.
    if (present !== undefined && present.type !== VERIFIER_SECRET_TYPE) await this.#delete(key, present);
    const replaced = this.#own.get(key);
    if (replaced === undefined) {
      await this.#create(key, secret);
      return;
    }
    const { uid, resourceVersion } = replaced.metadata;
    const metadata = { ...secret.metadata, uid, resourceVersion };
    await this.#own.write(key, () => api.apply(SECRETS, { ...secret, metadata }));
  }

  /** Nothing is accepted of this client any more. @throws StaleReadError when it is not what `get` knew: look again */
  async remove(uid: string): Promise<void> {
    const key = this.#key(uid);
    const present = this.#own.get(key);
    if (present !== undefined) await this.#delete(key, present);
  }

  /** Removes what is kept of a client that the watch does not know. The watch may be behind: what the API server says counts. */
  async removeAbandoned(uid: string): Promise<void> {
    const { labels = {} } = this.#own.get(this.#key(uid))?.metadata ?? {};
    const { [CLIENT_NAMESPACE_LABEL]: namespace, [CLIENT_LABEL]: name } = labels;
    if (namespace !== undefined && name !== undefined) {
      const client = await this.#options.api.get(OAUTH_CLIENTS, { namespace, name });
      if (client?.metadata.uid === uid) return;
    }
    await this.remove(uid);
  }

  /** To be called when the watch tells that one is gone. */
  gone(key: string, uid: string): void {
    this.#own.gone(key, uid);
  }

  /**
   * The uids of clients of this class that are gone.
   * @param isLiving whether there is an OAuthClient of a uid
   * @param isWatched whether anything is known of a namespace; of others nothing is removed
   */
  abandoned(isLiving: (uid: string) => boolean, isWatched: (namespace: string) => boolean): readonly string[] {
    const uids: string[] = [];
    for (const object of this.#options.view.objects()) {
      const uid = object.type === VERIFIER_SECRET_TYPE ? uidOfVerifierSecret(object) : undefined;
      const { labels = {} } = object.metadata;
      if (uid === undefined || labels[CLASS_LABEL] !== this.#options.className) continue;
      if (isWatched(labels[CLIENT_NAMESPACE_LABEL] ?? '') && !isLiving(uid)) uids.push(uid);
    }
    return uids;
  }

  async #create(key: string, secret: NewObject): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    try {
      await this.#own.write(key, () => api.create(SECRETS, secret));
    } catch (error) {
      // One without our label, which the watch never tells of: from a backup, or of a human hand.
      const isThere = error instanceof KubernetesError && error.reason === 'AlreadyExists';
      const { name } = secret.metadata;
      if (isThere) await this.#own.write(key, () => api.get(SECRETS, { namespace, name }));
      throw error;
    }
  }

  async #delete(key: string, { metadata }: KubernetesObject): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    const namespace = this.#options.releaseNamespace;
    await this.#own.write(key, async () => {
      const outcome = await this.#options.api.delete(SECRETS, { namespace, name, uid, resourceVersion });
      if (outcome === 'changed') throw new StaleReadError(`Secret ${key}`);
      return undefined;
    });
  }

  #key(uid: string): string {
    return `${this.#options.releaseNamespace}/${verifierSecretName(uid)}`;
  }
}

/** The uid of the client that a verifier Secret is about, by its name. */
export function uidOfVerifierSecret({ metadata }: KubernetesObject): string | undefined {
  const prefix = verifierSecretName('');
  return metadata.name.startsWith(prefix) ? metadata.name.slice(prefix.length) : undefined;
}
