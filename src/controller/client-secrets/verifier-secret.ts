// The verifier Secret of one client, as one reconcile knows it: as the watch delivered it, or as it was read, with what
// the reconcile has written since. Every write is pinned to the uid and the version of that.

import { VERIFIER_SECRET_TYPE, verifierSecretName } from '../../admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { PART_LABEL } from '../../admission/references/secret-parts.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import {
  CLASS_LABEL,
  type CredentialClient,
  type CredentialState,
  readCredentialState,
  readSecretNames,
  verifierSecret,
} from './credential-state.ts';

export interface VerifierSecretOptions {
  readonly api: LeaderApi;
  readonly releaseNamespace: string;
  readonly className: string;
  /** Whether an OAuthClient with a uid exists, of any class. */
  readonly clientExists: (uid: string) => boolean;
}

export class VerifierSecret {
  readonly #options: VerifierSecretOptions;
  readonly #client: CredentialClient;
  #present: KubernetesObject | undefined;

  /** @param watched undefined: the watch has none */
  constructor(options: VerifierSecretOptions, client: CredentialClient, watched: KubernetesObject | undefined) {
    this.#options = options;
    this.#client = client;
    this.#present = watched;
  }

  get isThere(): boolean {
    return this.#present !== undefined;
  }

  /** The stored state of the client; undefined when there is none, or when it is unreadable. */
  get state(): CredentialState | undefined {
    return readCredentialState(this.#present);
  }

  /**
   * The names, newest first and a few at most, under which the controller wrote the client's Secret and has not removed
   * it.
   */
  get secretNames(): readonly string[] {
    return readSecretNames(this.#present);
  }

  /** Whether replicas find it. They list by label, and a restored Secret may lack labels. */
  get isListed(): boolean {
    const { labels = {} } = this.#present?.metadata ?? {};
    return labels[PART_LABEL] === 'verifier' && labels[CLASS_LABEL] === this.#options.className;
  }

  /** Reads it from the API server: the watch may be behind, and does not have one without labels. */
  async read(): Promise<void> {
    this.#present = await this.#options.api.get(SECRETS, this.#place);
  }

  /**
   * Stores a state.
   * @param secretNames the names to write down; default: those that are
   * @throws KubernetesError `Conflict` and `AlreadyExists`, and StaleReadError, when it is not what this has, and
   * StaleReadError when the client no longer exists, before or after the write: requeue
   */
  async put(state: CredentialState, secretNames: readonly string[] = this.secretNames): Promise<void> {
    const { api, clientExists } = this.#options;
    const secret = verifierSecret(this.#client, state, this.#options, secretNames);
    // The type of a Secret is immutable, and replicas read only Secrets of this type.
    if (this.#present !== undefined && this.#present.type !== VERIFIER_SECRET_TYPE) await this.remove();
    this.#assertClientExists();
    if (this.#present === undefined) this.#present = await api.create(SECRETS, secret);
    else {
      const { uid, resourceVersion } = this.#present.metadata;
      const metadata = { ...secret.metadata, uid, resourceVersion };
      const data = { ...emptied(this.#present), ...fieldsOf(secret.data) };
      this.#present = await api.apply(SECRETS, { ...secret, metadata, data });
    }
    // A client may be deleted while its first verifier is on its way: what its deletion caused found none to remove.
    if (!clientExists(this.#client.uid)) await this.remove();
    this.#assertClientExists();
  }

  /** Writes down the names of the client's Secrets, where they are others. @throws as `put` */
  async writeDown(secretNames: readonly string[]): Promise<void> {
    const { state } = this;
    if (state !== undefined && secretNames.join() !== this.secretNames.join()) await this.put(state, secretNames);
  }

  /**
   * Removes the verifiers; a Secret without verifiers stays while a name other than `given` is written down.
   * @throws as `put`
   */
  async clear(given: string): Promise<void> {
    const { state } = this;
    if (this.secretNames.every((name) => name === given)) await this.remove();
    else if (state !== undefined) {
      const { rotatedAt, handled } = state;
      const nothing = { verifiers: [], begunAt: undefined };
      await this.put({ ...nothing, rotatedAt, handled, revision: state.revision + 1 });
    }
  }

  /** Deletes it. @throws StaleReadError when it is not what this has: requeue */
  async remove(): Promise<void> {
    if (this.#present === undefined) return;
    const { uid, resourceVersion } = this.#present.metadata;
    const outcome = await this.#options.api.delete(SECRETS, { ...this.#place, uid, resourceVersion });
    if (outcome === 'changed') throw new StaleReadError(`Secret ${this.#place.namespace}/${this.#place.name}`);
    this.#present = undefined;
  }

  #assertClientExists(): void {
    const { namespace, name, uid } = this.#client;
    if (!this.#options.clientExists(uid)) throw new StaleReadError(`OAuthClient ${namespace}/${name}`);
  }

  get #place() {
    return { namespace: this.#options.releaseNamespace, name: verifierSecretName(this.#client.uid) };
  }
}

/** The data of a Secret with empty values: a key that a POST created is not removed by an apply that omits it. */
function emptied({ data }: KubernetesObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(fieldsOf(data)).map((key) => [key, '']));
}
