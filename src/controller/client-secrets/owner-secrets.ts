// Generated Secrets in the owners' namespaces, read and written. The controller may write any Secret of the cluster, so
// here stands the guard: a Secret is written only while it carries the uid of this very client, or was left behind by a
// client that is gone; what is read and what is written is the same object at the same version.

import {
  type KubernetesObject,
  type ObjectMeta,
  type OwnerReference,
  SECRETS,
} from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { type ClientSecretObject, ownerOf, withEarlierFields } from './client-secret-object.ts';
import type { CredentialOwner } from './credential-state.ts';

/** Whose a Secret is, seen from one client. */
export type SecretOwnership =
  | 'own'
  /** Named for this client and marked with a uid that no client has any more: restored, or moved here. */
  | 'orphan'
  | 'foreign';

/** @param isLiving whether there is an OAuthClient of a uid, of any class */
export function ownershipOf(
  metadata: Pick<ObjectMeta, 'labels'>,
  client: Pick<CredentialOwner, 'name' | 'uid'>,
  isLiving: (uid: string) => boolean,
): SecretOwnership {
  const owner = ownerOf(metadata);
  if (owner === undefined) return 'foreign';
  if (owner.uid === client.uid) return 'own';
  return owner.name === client.name && !isLiving(owner.uid) ? 'orphan' : 'foreign';
}

/** All that is kept of a Secret that is watched without its data. */
export function withoutForeignLabels({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels = {} } = metadata;
  const own = Object.entries(labels).filter(([key]) => key.startsWith('grantry.dev/'));
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(namespace !== undefined && { namespace }),
      ...(own.length > 0 && { labels: Object.fromEntries(own) }),
    },
  };
}

/** Which Secrets carry the name and the uid of which client: also the ones it gave up for another name. */
export class OwnedSecrets {
  /** By `<namespace>/<name> <uid>` of the client. */
  readonly #names = new Map<string, Set<string>>();

  put({ metadata }: KubernetesObject, before?: KubernetesObject): void {
    if (before !== undefined) this.delete(before);
    const owner = this.#ownerIn(metadata);
    if (owner !== undefined) this.#names.set(owner, (this.#names.get(owner) ?? new Set()).add(metadata.name));
  }

  delete({ metadata }: KubernetesObject): void {
    const owner = this.#ownerIn(metadata);
    if (owner === undefined) return;
    const names = this.#names.get(owner);
    if (names?.delete(metadata.name) && names.size === 0) this.#names.delete(owner);
  }

  /** The Secrets of a client in its own namespace, by name. */
  of({ namespace, name, uid }: CredentialOwner): readonly string[] {
    return [...(this.#names.get(`${namespace}/${name} ${uid}`) ?? [])];
  }

  #ownerIn(metadata: ObjectMeta): string | undefined {
    const owner = ownerOf(metadata);
    return owner && `${metadata.namespace}/${owner.name} ${owner.uid}`;
  }
}

/**
 * Writes a Secret: a new one, or exactly the one that is there.
 * @param before.present as it was just read, `own` or `orphan`; undefined: there is none
 * @param before.writtenBefore what `fieldsWritten` said of the one before
 * @param before.owners what `unwantedOwners` found
 * @throws KubernetesError `AlreadyExists` or `Conflict` when it is not what it was: look again
 */
export async function writeSecret(
  api: LeaderApi,
  secret: ClientSecretObject,
  {
    present,
    writtenBefore: written,
    owners,
  }: {
    readonly present: KubernetesObject | undefined;
    readonly writtenBefore: string | undefined;
    readonly owners: readonly OwnerReference[];
  },
): Promise<KubernetesObject> {
  if (present === undefined) return await api.create(SECRETS, { ...secret });
  let { uid, resourceVersion } = present.metadata;
  const whole = withEarlierFields(secret, { written, owners });
  if (whole !== undefined) {
    const metadata = { ...whole.metadata, uid, resourceVersion };
    ({ uid, resourceVersion } = (await api.apply(SECRETS, { ...whole, metadata })).metadata);
  }
  return await api.apply(SECRETS, { ...secret, metadata: { ...secret.metadata, uid, resourceVersion } });
}
