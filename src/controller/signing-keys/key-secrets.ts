// The key Secrets of the release namespace as one reconcile read them, with what it has written since. Every write is
// pinned to the version that it replaces.

import { createHash } from 'node:crypto';
import {
  KEY_SECRET_TYPE,
  keySecretData,
  keySecretMetadata,
  keySecretName,
  readKeySecret,
  type StoredKey,
} from '../../admission/keys/key-secret.ts';
import type { SigningKeyManifest } from '../../admission/kinds/signing-key.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';

/** The labels and annotations that the owner of a ring wants on its Secrets. */
export type KeySecretTemplate = SigningKeyManifest['spec']['secretTemplate'];

export interface KeySecretsOptions {
  readonly api: LeaderApi;
  readonly releaseNamespace: string;
  /** Secrets of the release namespace, those of keys at least. */
  readonly objects: Iterable<KubernetesObject>;
  /** Whether they were read for this reconcile: a watch may be behind. */
  readonly areCurrent: boolean;
}

/** The digest of the template that was last written: the cache keeps only annotations of grantry. */
const TEMPLATE_ANNOTATION = 'grantry.dev/secret-template';
const NO_TEMPLATE: KeySecretTemplate = { labels: {}, annotations: {} };

export class KeySecrets {
  readonly #options: KeySecretsOptions;
  /** By name. */
  readonly #objects = new Map<string, KubernetesObject>();

  constructor(options: KeySecretsOptions) {
    this.#options = options;
    // A watch also has a verifier Secret for each of many clients.
    for (const object of options.objects) {
      if (object.type === KEY_SECRET_TYPE) this.#objects.set(object.metadata.name, object);
    }
  }

  get areCurrent(): boolean {
    return this.#options.areCurrent;
  }

  /** Every key there is, or those of one ring. */
  keys(signingKeyName?: string): readonly StoredKey[] {
    const keys = [...this.#objects.values()].flatMap((object) => readKeySecret(object) ?? []);
    return keys.filter((key) => signingKeyName === undefined || key.signingKeyName === signingKeyName);
  }

  /**
   * Creates a key Secret without the template, which `put` adds: an apply does not remove fields that the POST wrote.
   * @throws KubernetesError `AlreadyExists` when there is a Secret of this name: requeue
   */
  async make(key: StoredKey, pem: string): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    const name = keySecretName(key);
    const secret = {
      metadata: { name, namespace, ...metadataOf(key, NO_TEMPLATE) },
      type: KEY_SECRET_TYPE,
      immutable: true,
      data: keySecretData(pem),
    };
    this.#objects.set(name, await api.create(SECRETS, secret));
  }

  /** Writes the present state of a key. @throws KubernetesError `Conflict` when it changed meanwhile: requeue */
  async put(key: StoredKey, template: KeySecretTemplate = NO_TEMPLATE): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    const name = keySecretName(key);
    const present = this.#objects.get(name);
    if (present === undefined) return;
    const { uid, resourceVersion } = present.metadata;
    const metadata = { name, namespace, uid, resourceVersion, ...metadataOf(key, template) };
    this.#objects.set(name, await api.apply(SECRETS, { metadata }));
  }

  /** The keys whose Secrets were written with another template. */
  withOtherTemplate(keys: readonly StoredKey[], template: KeySecretTemplate): readonly StoredKey[] {
    return keys.filter((key) => templateOf(this.#objects.get(keySecretName(key))) !== digestOf(template));
  }

  /** @throws StaleReadError when it changed meanwhile: requeue */
  async remove(key: StoredKey): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    const name = keySecretName(key);
    const present = this.#objects.get(name);
    if (present === undefined) return;
    const { uid, resourceVersion } = present.metadata;
    const outcome = await api.delete(SECRETS, { namespace, name, uid, resourceVersion });
    if (outcome === 'changed') throw new StaleReadError(`Secret ${namespace}/${name}`);
    this.#objects.delete(name);
  }
}

function metadataOf(key: StoredKey, template: KeySecretTemplate) {
  const { labels, annotations } = keySecretMetadata(key);
  const digest = digestOf(template);
  return {
    labels: { ...template.labels, ...labels },
    annotations: { ...template.annotations, ...annotations, ...(digest !== '' && { [TEMPLATE_ANNOTATION]: digest }) },
  };
}

/** The empty string for an empty template. */
function digestOf({ labels, annotations }: KeySecretTemplate): string {
  const entries = [labels, annotations].map((map) => Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
  if (entries.every(({ length }) => length === 0)) return '';
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, 16);
}

function templateOf(object: KubernetesObject | undefined): string {
  return object?.metadata.annotations?.[TEMPLATE_ANNOTATION] ?? '';
}
