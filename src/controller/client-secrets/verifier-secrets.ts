// The verifier Secrets of the release namespace: one for each client with a secret. The controller reads its own writes
// (own-writes.ts), guards each write by revision, uid and resourceVersion, and deletes the verifier Secrets of deleted
// clients.

import { VERIFIER_SECRET_TYPE, verifierSecretName } from '../../admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
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
  type CredentialClient,
  type CredentialState,
  readCredentialState,
  readSecretNames,
  verifierSecret,
} from './credential-state.ts';

export interface VerifierSecretsOptions {
  readonly api: LeaderApi;
  /** Secrets of the release namespace. */
  readonly view: ObjectView;
  readonly releaseNamespace: string;
  readonly className: string;
  /** Whether an OAuthClient with a uid exists, of any class. */
  readonly clientExists: (uid: string) => boolean;
}

export class VerifierSecrets {
  readonly #options: VerifierSecretsOptions;
  readonly #own: OwnWrites;

  constructor(options: VerifierSecretsOptions) {
    this.#options = options;
    this.#own = new OwnWrites(options.view);
  }

  /** The stored state of a client; undefined when there is none, or when it is unreadable. */
  get(uid: string): CredentialState | undefined {
    return readCredentialState(this.#own.get(this.#key(uid)));
  }

  /**
   * The names, newest first and a few at most, under which the controller wrote the client's Secret and has not removed
   * it.
   */
  secretNames(uid: string): readonly string[] {
    return readSecretNames(this.#own.get(this.#key(uid)));
  }

  /** Whether replicas find a client's verifier Secret. They list by label, and a restored Secret may lack labels. */
  isListed(uid: string): boolean {
    const { labels = {} } = this.#own.get(this.#key(uid))?.metadata ?? {};
    return labels[PART_LABEL] === 'verifier' && labels[CLASS_LABEL] === this.#options.className;
  }

  /**
   * Stores a state under optimistic concurrency.
   * @param known the result of `get` that the new state is based on
   * @param secretNames the names to write down; default: those that are
   * @throws KubernetesError `Conflict` and StaleReadError when another state was stored since, StaleReadError when the
   * client no longer exists, before or after the write: requeue
   */
  async put(
    client: CredentialClient,
    state: CredentialState,
    known: CredentialState | undefined,
    secretNames: readonly string[] = this.secretNames(client.uid),
  ): Promise<void> {
    const { api, releaseNamespace, className } = this.#options;
    const key = this.#key(client.uid);
    if (this.get(client.uid)?.revision !== known?.revision) throw new StaleReadError(`Secret ${key}`);
    const present = this.#own.get(key);
    const secret = verifierSecret(client, state, { releaseNamespace, className }, secretNames);
    // The type of a Secret is immutable, and replicas read only Secrets of this type.
    if (present !== undefined && present.type !== VERIFIER_SECRET_TYPE) await this.#delete(key, present);
    const replaced = this.#own.get(key);
    this.#assertClientExists(client);
    if (replaced === undefined) await this.#create(key, secret);
    else {
      const { uid, resourceVersion } = replaced.metadata;
      const metadata = { ...secret.metadata, uid, resourceVersion };
      const data = { ...emptied(replaced), ...fieldsOf(secret.data) };
      await this.#own.write(key, () => api.apply(SECRETS, { ...secret, metadata, data }));
    }
    this.#assertClientExists(client);
  }

  #assertClientExists({ namespace, name, uid }: CredentialClient): void {
    if (!this.#options.clientExists(uid)) throw new StaleReadError(`OAuthClient ${namespace}/${name}`);
  }

  /** Writes down the names of a client's Secrets, where they are others. @throws as `put` */
  async writeDown(client: CredentialClient, secretNames: readonly string[]): Promise<void> {
    const state = this.get(client.uid);
    if (state === undefined || secretNames.join() === this.secretNames(client.uid).join()) return;
    await this.put(client, state, state, secretNames);
  }

  /**
   * Deletes the verifiers of a client; a Secret without verifiers stays while a name other than `given` is written down.
   * @throws as `put` and `remove`
   */
  async clear(client: CredentialClient, given: string): Promise<void> {
    const state = this.get(client.uid);
    if (this.secretNames(client.uid).every((name) => name === given)) await this.remove(client.uid);
    else if (state !== undefined) {
      const { rotatedAt, handled } = state;
      const nothing = { verifiers: [], begunAt: undefined };
      await this.put(client, { ...nothing, rotatedAt, handled, revision: state.revision + 1 }, state);
    }
  }

  /** Deletes the verifiers of a client. @throws StaleReadError when they are not what `get` returned: requeue */
  async remove(uid: string): Promise<void> {
    const key = this.#key(uid);
    const present = this.#own.get(key);
    if (present !== undefined) await this.#delete(key, present);
  }

  /**
   * Deletes the verifiers of a client that is not in the cache, unless the API server has it (stale cache).
   * @throws StaleReadError while a write of them has no result: requeue
   */
  async removeOrphan(uid: string): Promise<void> {
    const key = this.#key(uid);
    // A client may be deleted while its first verifier is on its way.
    if (this.#own.isWriting(key)) throw new StaleReadError(`Secret ${key}`);
    const { labels = {} } = this.#own.get(key)?.metadata ?? {};
    const { [CLIENT_NAMESPACE_LABEL]: namespace, [CLIENT_LABEL]: name } = labels;
    if (namespace !== undefined && name !== undefined) {
      const client = await this.#options.api.get(OAUTH_CLIENTS, { namespace, name });
      if (client?.metadata.uid === uid) return;
    }
    await this.remove(uid);
  }

  /** To be called when the watch reports the deletion of a verifier Secret. */
  gone(key: string, uid: string): void {
    this.#own.gone(key, uid);
  }

  /**
   * The uids of clients of this class that no longer exist but have a verifier Secret.
   * @param clientExists whether an OAuthClient with a uid exists
   * @param isWatched whether a namespace is watched; verifier Secrets of clients in other namespaces are kept
   */
  orphanedUids(clientExists: (uid: string) => boolean, isWatched: (namespace: string) => boolean): readonly string[] {
    const uids: string[] = [];
    for (const object of this.#options.view.objects()) {
      const uid = object.type === VERIFIER_SECRET_TYPE ? uidOfVerifierSecret(object) : undefined;
      const { labels = {} } = object.metadata;
      if (uid === undefined || labels[CLASS_LABEL] !== this.#options.className) continue;
      if (isWatched(labels[CLIENT_NAMESPACE_LABEL] ?? '') && !clientExists(uid)) uids.push(uid);
    }
    return uids;
  }

  async #create(key: string, secret: NewObject): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    try {
      await this.#own.write(key, () => api.create(SECRETS, secret));
    } catch (error) {
      // A Secret without the part label is not watched: restored from a backup, or created by hand.
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

/** The data of a Secret with empty values: a key that a POST created is not removed by an apply that omits it. */
function emptied({ data }: KubernetesObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(fieldsOf(data)).map((key) => [key, '']));
}

/** The uid of the client that a verifier Secret belongs to, from the name of the Secret. */
export function uidOfVerifierSecret({ metadata }: KubernetesObject): string | undefined {
  const prefix = verifierSecretName('');
  return metadata.name.startsWith(prefix) ? metadata.name.slice(prefix.length) : undefined;
}
