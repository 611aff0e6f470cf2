// Reads and writes the key Secrets of the release namespace, with read-your-writes over the watch.

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
import { type KubernetesObject, objectKey, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { OwnWrites } from '../reconciling/own-writes.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';

/** The labels and annotations that the owner of a ring wants on its Secrets. */
export type KeySecretTemplate = SigningKeyManifest['spec']['secretTemplate'];

export interface KeySecretsOptions {
  readonly api: LeaderApi;
  /** Secrets of the release namespace. */
  readonly view: ObjectView;
  readonly releaseNamespace: string;
}

/** The digest of the template that was last written: the cache keeps only annotations of grantry. */
const TEMPLATE_ANNOTATION = 'grantry.dev/secret-template';
const NO_TEMPLATE: KeySecretTemplate = { labels: {}, annotations: {} };

export class KeySecrets {
  readonly #options: KeySecretsOptions;
  readonly #own: OwnWrites;
  /** Keys of the Secrets that this process made and the watch may not have delivered yet. */
  readonly #made = new Set<string>();

  constructor(options: KeySecretsOptions) {
    this.#options = options;
    this.#own = new OwnWrites(options.view);
  }

  /** Every key there is, or those of one ring. */
  keys(signingKeyName?: string): readonly StoredKey[] {
    const names = new Set(this.#made);
    // The view also holds a verifier Secret for each of many clients.
    for (const { type, metadata } of this.#options.view.objects()) {
      if (type === KEY_SECRET_TYPE) names.add(objectKey(metadata));
    }
    return [...names].flatMap((name) => {
      const object = this.#own.get(name);
      const key = object && readKeySecret(object);
      return key !== undefined && (signingKeyName === undefined || key.signingKeyName === signingKeyName) ? key : [];
    });
  }

  /** To be called when the watch delivers the deletion of a Secret. */
  gone(name: string, uid: string): void {
    this.#own.gone(name, uid);
    this.#made.delete(name);
  }

  /**
   * Creates a key Secret without the template, which `put` adds: an apply does not remove fields that the POST wrote.
   * @throws KubernetesError `AlreadyExists` when there is a Secret of this name: requeue
   */
  async make(key: StoredKey, pem: string): Promise<void> {
    const { api, releaseNamespace: namespace } = this.#options;
    const secret = {
      metadata: { name: keySecretName(key), namespace, ...metadataOf(key, NO_TEMPLATE) },
      type: KEY_SECRET_TYPE,
      immutable: true,
      data: keySecretData(pem),
    };
    await this.#own.write(this.#nameOf(key), () => api.create(SECRETS, secret));
    this.#made.add(this.#nameOf(key));
  }

  /** Writes the present state of a key. @throws KubernetesError `Conflict` when it changed meanwhile: requeue */
  async put(key: StoredKey, template: KeySecretTemplate = NO_TEMPLATE): Promise<void> {
    const name = this.#nameOf(key);
    const present = this.#own.get(name);
    if (present === undefined) return;
    const { name: ownName, namespace, uid, resourceVersion } = present.metadata;
    const metadata = {
      name: ownName,
      uid,
      resourceVersion,
      ...metadataOf(key, template),
      ...(namespace !== undefined && { namespace }),
    };
    await this.#own.write(name, () => this.#options.api.apply(SECRETS, { metadata }));
  }

  /** The keys whose Secrets were written with another template. */
  withOtherTemplate(keys: readonly StoredKey[], template: KeySecretTemplate): readonly StoredKey[] {
    return keys.filter((key) => templateOf(this.#own.get(this.#nameOf(key))) !== digestOf(template));
  }

  /** @throws StaleReadError when it changed meanwhile: requeue */
  async remove(key: StoredKey): Promise<void> {
    const name = this.#nameOf(key);
    const present = this.#own.get(name);
    if (present === undefined) return;
    const { api, releaseNamespace: namespace } = this.#options;
    const { uid, resourceVersion } = present.metadata;
    await this.#own.write(name, async () => {
      const outcome = await api.delete(SECRETS, { namespace, name: present.metadata.name, uid, resourceVersion });
      if (outcome === 'changed') throw new StaleReadError(`Secret ${name}`);
      return undefined;
    });
  }

  #nameOf(key: StoredKey): string {
    return objectKey({ namespace: this.#options.releaseNamespace, name: keySecretName(key) });
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
