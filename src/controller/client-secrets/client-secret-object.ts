// The Secret in the owner's namespace as the controller applies it: the manifest of client-secret-manifest.ts
// (admission) with owner references and base64 data. Detects drift of the present Secret, and fields that an earlier
// apply wrote and this one does not. Pure.

import {
  CLIENT_LABEL,
  CLIENT_UID_LABEL,
  clientSecretManifest,
  type SecretFacts,
  STAGED_SUFFIX,
} from '../../admission/client-secrets/client-secret-manifest.ts';
import { fieldsOf, type SourceObject } from '../../admission/kinds/manifest.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  OAUTH_CLIENTS,
  type ObjectMeta,
  type OwnerReference,
} from '../../kubernetes/objects/resources.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { randomId } from '../../oauth/values/random-id.ts';

const RANDOM_VALUE_BYTES = 32;

type Texts = Readonly<Record<string, string>>;

/** The desired Secret in the owner's namespace. */
export interface ClientSecretObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Texts;
    readonly annotations: Texts;
    /** Empty where the deletion policy is `Retain`. */
    readonly ownerReferences: readonly OwnerReference[];
  };
  readonly type: 'Opaque';
  /** In base64. */
  readonly data: Texts;
}

/** The desired Secret of a client. @param present the existing Secret; its random values are kept */
export function clientSecretObject({
  object,
  manifest,
  facts,
  present,
  random,
}: {
  readonly object: SourceObject;
  readonly manifest: OAuthClientManifest;
  readonly facts: SecretFacts;
  readonly present: KubernetesObject | undefined;
  readonly random: Random;
}): ClientSecretObject {
  const { randomKeys = [], deletionPolicy = 'Delete' } = manifest.spec.auth.clientSecret ?? {};
  const randomValues = Object.fromEntries(
    randomKeys.map((key) => [key, secretText(present, key) || randomId(random, RANDOM_VALUE_BYTES)]),
  );
  const { metadata, type, stringData } = clientSecretManifest({ object, manifest, facts, randomValues });
  // Not as `controller`: an object has at most one controller reference, and an adopted Secret may have one already.
  const client = {
    apiVersion: apiVersionOf(OAUTH_CLIENTS),
    kind: OAUTH_CLIENTS.kind,
    name: object.name,
    uid: object.uid,
  };
  return {
    metadata: {
      ...metadata,
      annotations: metadata.annotations ?? {},
      ownerReferences: deletionPolicy === 'Delete' ? [client] : [],
    },
    type,
    data: Object.fromEntries(
      Object.entries(stringData).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  };
}

/** The text under a key of a Secret; undefined when there is none. */
export function secretText(secret: KubernetesObject | undefined, key: string): string | undefined {
  const found = secret === undefined ? undefined : readSecretValue(secret, key);
  return found?.outcome === 'found' ? found.value : undefined;
}

/**
 * The owner references to remove from a Secret: of its own client where the deletion policy is `Retain`, and of
 * OAuthClients that no longer exist.
 * @param clientExists whether an OAuthClient with a uid exists, of any class
 */
export function unwantedOwners(
  { metadata }: ClientSecretObject,
  present: KubernetesObject,
  clientExists: (uid: string) => boolean,
): readonly OwnerReference[] {
  const own = metadata.labels[CLIENT_UID_LABEL];
  return (present.metadata.ownerReferences ?? []).filter(({ apiVersion, kind, uid }) => {
    const isClient = kind === OAUTH_CLIENTS.kind && apiVersion.startsWith(`${OAUTH_CLIENTS.group}/`);
    const isWanted = metadata.ownerReferences.some((wanted) => wanted.uid === uid);
    return isClient && !isWanted && (uid === own || !clientExists(uid));
  });
}

/** Whether a field that the controller writes is missing or changed in the present Secret. Other fields are ignored. */
export function hasDrifted({ metadata, data }: ClientSecretObject, present: KubernetesObject): boolean {
  const { labels, annotations, ownerReferences = [] } = present.metadata;
  return (
    !metadata.ownerReferences.every((wanted) => ownerReferences.some(({ uid }) => uid === wanted.uid)) ||
    !contains(labels, metadata.labels) ||
    !contains(annotations, metadata.annotations) ||
    !contains(present.data, data)
  );
}

function contains(present: unknown, wanted: Texts): boolean {
  const fields = fieldsOf(present);
  return Object.entries(wanted).every(([key, value]) => fields[key] === value);
}

/**
 * The names of the fields that a write sets, as JSON; the verifier Secret keeps them until the next write. Without the
 * key of a staged secret, which no POST creates.
 */
export function fieldsWritten({ metadata, data }: ClientSecretObject): string {
  const names = (texts: Texts) =>
    Object.keys(texts)
      .filter((name) => !name.endsWith(STAGED_SUFFIX))
      .sort();
  const { labels, annotations } = metadata;
  return JSON.stringify({ data: names(data), labels: names(labels), annotations: names(annotations) });
}

/** The data keys in a result of `fieldsWritten`. */
export function writtenKeys(written: string | undefined): readonly string[] {
  const { data } = fieldsOf(written === undefined ? undefined : parsed(written));
  return Array.isArray(data) ? data.filter((key) => typeof key === 'string') : [];
}

/**
 * The Secret with the fields that are to be removed, each with a changed value; undefined when there are none. When an
 * apply no longer contains a field, the API server removes it only if no other manager owns it, and the controller's
 * own first POST counts as another manager. An apply with another value makes the controller the only owner, so that
 * the next apply without the field removes it.
 * @param earlier.written the result of `fieldsWritten` for the previous write
 * @param earlier.owners the result of `unwantedOwners`
 */
export function withEarlierFields(
  secret: ClientSecretObject,
  earlier: { readonly written: string | undefined; readonly owners: readonly OwnerReference[] },
): ClientSecretObject | undefined {
  const { written, owners } = earlier;
  const before = fieldsOf(written === undefined ? undefined : parsed(written));
  const { labels, annotations, ownerReferences } = secret.metadata;
  const whole = {
    data: withEmpty(secret.data, before.data),
    labels: withEmpty(labels, before.labels),
    annotations: withEmpty(annotations, before.annotations),
  };
  const isMore = [whole.data !== secret.data, whole.labels !== labels, whole.annotations !== annotations].some(Boolean);
  if (!isMore && owners.length === 0) return undefined;
  const metadata = {
    ...secret.metadata,
    labels: whole.labels,
    annotations: whole.annotations,
    ownerReferences: [...ownerReferences, ...owners.map(changedOwner)],
  };
  return { ...secret, metadata, data: whole.data };
}

/** The same owner with another `blockOwnerDeletion`, and without `controller`: one reference at most may have it. */
function changedOwner({ controller: _, blockOwnerDeletion, ...client }: OwnerReference): OwnerReference {
  return blockOwnerDeletion === false ? client : { ...client, blockOwnerDeletion: false };
}

function withEmpty(texts: Texts, earlier: unknown): Texts {
  const names = Array.isArray(earlier) ? earlier.filter((name) => typeof name === 'string') : [];
  const gone = names.filter((name) => !Object.hasOwn(texts, name));
  return gone.length === 0 ? texts : { ...texts, ...Object.fromEntries(gone.map((name) => [name, ''])) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The client that the labels of a Secret name; undefined without both labels. */
export function labelledClient({
  labels,
}: Pick<ObjectMeta, 'labels'>): { readonly name: string; readonly uid: string } | undefined {
  const [name, uid] = [labels?.[CLIENT_LABEL], labels?.[CLIENT_UID_LABEL]];
  return name === undefined || uid === undefined ? undefined : { name, uid };
}
