// Ownership and writes of generated Secrets in the owners' namespaces. RBAC allows the controller to write any Secret
// of the cluster, so this file guards each write: it writes a Secret only if the Secret has the uid of this client or
// is an orphan of a deleted one, and only the object that was read, at the version that was read (uid and
// resourceVersion). What garbage collection deletes with an earlier client is never written.

import { CLIENT_LABEL, CLIENT_UID_LABEL } from '../../admission/client-secrets/client-secret-manifest.ts';
import { type KubernetesObject, type ObjectMeta, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { type ClientSecretObject, isOAuthClient, labelledClient, removal } from './client-secret-object.ts';
import type { CredentialClient } from './credential-state.ts';

/** The ownership of a Secret, from the view of one client. */
export type SecretOwnership =
  | 'own'
  /**
   * Labelled with the name of this client and a uid that no client has, and no other OAuthClient owns it: retained,
   * restored from a backup, or moved here.
   */
  | 'orphan'
  /** As an orphan, but an earlier client of this name is its only owner: garbage collection deletes it. */
  | 'predecessor'
  | 'foreign';

/**
 * @param metadata as it was just read; as the cache has it, without owners, a Secret of any OAuthClient is an `orphan`
 * @param clientExists whether an OAuthClient with a uid exists, of any class
 */
export function ownershipOf(
  metadata: Pick<ObjectMeta, 'labels' | 'ownerReferences' | 'deletionTimestamp'>,
  client: Pick<CredentialClient, 'name' | 'uid'>,
  clientExists: (uid: string) => boolean,
): SecretOwnership {
  const labelled = labelledClient(metadata);
  if (labelled === undefined) return 'foreign';
  if (labelled.uid === client.uid) return 'own';
  if (labelled.name !== client.name || clientExists(labelled.uid)) return 'foreign';
  const { ownerReferences = [], deletionTimestamp } = metadata;
  const [other] = ownerReferences.filter((owner) => isOAuthClient(owner) && owner.uid !== client.uid);
  if (other === undefined) return 'orphan';
  const isOnly = ownerReferences.length === 1 && other.name === client.name && !clientExists(other.uid);
  // One that is being deleted already waits for finalizers of another controller.
  return isOnly && deletionTimestamp === undefined ? 'predecessor' : 'foreign';
}

/** The fields that the cache keeps of a Secret, which is watched without its data: any number of labels may be foreign. */
export function withoutForeignLabels({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels = {} } = metadata;
  const own = Object.entries(labels).filter(([key]) => key === CLIENT_LABEL || key === CLIENT_UID_LABEL);
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

/**
 * Writes a Secret: creates it, or applies it to the object that was read and to no other, and then removes what is left
 * over. Not the other way: a value is never without a key.
 * @param present the Secret as it was just read, `own` or `orphan`; undefined when there is none
 * @throws KubernetesError `AlreadyExists`, `Conflict` or `NotFound` when the Secret changed since the read: requeue
 */
export async function writeSecret(
  api: LeaderApi,
  secret: ClientSecretObject,
  present: KubernetesObject | undefined,
): Promise<KubernetesObject> {
  if (present === undefined) return await api.create(SECRETS, { ...secret });
  const { uid, resourceVersion } = present.metadata;
  const applied = await api.apply(SECRETS, { ...secret, metadata: { ...secret.metadata, uid, resourceVersion } });
  const leftOver = removal(secret, { present: applied, before: present });
  return leftOver === undefined ? applied : await api.merge(SECRETS, leftOver);
}

/** Deletes a Secret at the version that was read. @throws StaleReadError when it changed since the read: requeue */
export async function deleteSecret(
  api: LeaderApi,
  { metadata: { namespace = '', name, uid, resourceVersion } }: KubernetesObject,
): Promise<void> {
  const outcome = await api.delete(SECRETS, { namespace, name, uid, resourceVersion });
  if (outcome === 'changed') throw new StaleReadError(`Secret ${namespace}/${name}`);
}
