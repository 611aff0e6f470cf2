// The Secrets of a client other than the one that it names now: under a former name, or from before the client stopped
// using a generated secret. Only a name that the controller wrote down in the verifier Secret is used, since any Secret of
// the namespace can have the labels of the client. The controller deletes such a Secret once its value is not accepted
// any more, unless the deletion policy is `Retain` or another writer made it, according to `managedFields`.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { labelledClient, ownNames } from './client-secret-object.ts';
import type { CredentialClient } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';
import { deleteSecret } from './owner-secrets.ts';
import { holdsSecretOf } from './secret-matching.ts';

export interface FormerSecretsOptions {
  readonly api: LeaderApi;
  readonly record: (event: EventFacts) => void;
}

export class FormerSecrets {
  readonly #options: FormerSecretsOptions;

  constructor(options: FormerSecretsOptions) {
    this.#options = options;
  }

  /**
   * Deletes the client's Secrets under other names whose value is not accepted any more.
   * @param subject with the state that is stored now
   * @returns the names that stay written down
   * @throws StaleReadError when a Secret changed since the read: requeue
   */
  async remove(subject: CredentialSubject): Promise<readonly string[]> {
    const { client, manifest, verifiers } = subject;
    const { spec } = manifest;
    const known = verifiers.secretNames;
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return known;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const given = needsSecret ? clientSecretName(client.name, spec) : undefined;
    const kept: string[] = [];
    for (const name of known) {
      if (name === given || (await this.#isKept(subject, name))) kept.push(name);
    }
    return kept;
  }

  /** Whether one under a former name holds a secret that does not expire. @param given the name that the client gives */
  async holdCurrent(subject: CredentialSubject, given: string): Promise<boolean> {
    const { client, state, verifiers } = subject;
    const current = state?.verifiers.filter(({ expiresAt }) => expiresAt === undefined) ?? [];
    for (const name of verifiers.secretNames) {
      if (name === given) continue;
      const found = await this.#options.api.get(SECRETS, { namespace: client.namespace, name });
      const isOwn = found !== undefined && isLabelledFor(found, client);
      if (isOwn && holdsSecretOf(current, subject, found)) return true;
    }
    return false;
  }

  /** Whether the Secret under a former name stays written down, with the secrets of the client that it may hold. */
  async #isKept(subject: CredentialSubject, name: string): Promise<boolean> {
    const { object, client, manifest, state } = subject;
    const isGenerated = hasGeneratedSecret(manifest.spec);
    const found = await this.#options.api.get(SECRETS, { namespace: client.namespace, name });
    if (found === undefined || !isLabelledFor(found, client)) {
      // A former leader's write of it may still arrive.
      return isGenerated && (state?.verifiers.length ?? 0) > 1;
    }
    if (!isWrittenByController(found)) this.#reportForeign(object, found);
    else if (isGenerated && holdsSecretOf(state?.verifiers ?? [], subject, found)) return true;
    // A client without a generated secret has no deletion policy: the owner reference of the Secret decides.
    else if (isGenerated || isOwnedBy(found, client)) await deleteSecret(this.#options.api, found);
    return false;
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
