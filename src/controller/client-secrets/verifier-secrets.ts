// The verifier Secrets of the release namespace: one for each client that has something stored. Those of deleted
// clients are removed.

import { VERIFIER_SECRET_TYPE, verifierSecretName } from '../../admission/client-secrets/client-verifier.ts';
import { type KubernetesObject, OAUTH_CLIENTS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import { CLASS_LABEL, CLIENT_LABEL, CLIENT_NAMESPACE_LABEL, type CredentialClient } from './credential-state.ts';
import { VerifierSecret, type VerifierSecretOptions } from './verifier-secret.ts';

export interface VerifierSecretsOptions extends VerifierSecretOptions {
  /** Secrets of the release namespace. */
  readonly view: ObjectView;
}

export class VerifierSecrets {
  readonly #options: VerifierSecretsOptions;

  constructor(options: VerifierSecretsOptions) {
    this.#options = options;
  }

  /** That of a client, as the watch has it. */
  of(client: CredentialClient): VerifierSecret {
    return new VerifierSecret(this.#options, client, this.#watched(client.uid));
  }

  /** Deletes the verifiers of a client that is not in the cache, unless the API server has it (stale cache). */
  async removeOrphan(uid: string): Promise<void> {
    const { labels = {} } = this.#watched(uid)?.metadata ?? {};
    const { [CLIENT_NAMESPACE_LABEL]: namespace = '', [CLIENT_LABEL]: name = '' } = labels;
    const orphan = this.of({ namespace, name, uid });
    if (namespace !== '' && name !== '') {
      const client = await this.#options.api.get(OAUTH_CLIENTS, { namespace, name });
      if (client?.metadata.uid === uid) return;
    }
    await orphan.remove();
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

  #watched(uid: string): KubernetesObject | undefined {
    return this.#options.view.get(`${this.#options.releaseNamespace}/${verifierSecretName(uid)}`);
  }
}

/** The uid of the client that a verifier Secret belongs to, from the name of the Secret. */
export function uidOfVerifierSecret({ metadata }: KubernetesObject): string | undefined {
  const prefix = verifierSecretName('');
  return metadata.name.startsWith(prefix) ? metadata.name.slice(prefix.length) : undefined;
}
