// The Secret in the owner's namespace as it is applied: the manifest of admission/client-secrets/client-secret-manifest.ts with what the
// cluster needs beside it, how to tell that the one that is there is not it, and what an earlier one had more. Pure.

import {
  CLIENT_LABEL,
  CLIENT_UID_LABEL,
  clientSecretManifest,
  type SecretFacts,
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

/** A Secret of an owner as it should be. */
export interface ClientSecretObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Texts;
    readonly annotations: Texts;
    /** None where the Secret is to outlive the client. */
    readonly ownerReferences: readonly OwnerReference[];
  };
  readonly type: 'Opaque';
  /** In base64. */
  readonly data: Texts;
}

/** The Secret of a client. @param present the one that is there; its random values are kept */
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
  // Not its controller: a Secret has one at most, and may come with that of another.
  const owner = {
    apiVersion: apiVersionOf(OAUTH_CLIENTS),
    kind: OAUTH_CLIENTS.kind,
    name: object.name,
    uid: object.uid,
  };
  return {
    metadata: {
      ...metadata,
      annotations: metadata.annotations ?? {},
      ownerReferences: deletionPolicy === 'Delete' ? [owner] : [],
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
 * The owners that a Secret has and is not to have: its own client when it is to outlive it, and OAuthClients that are gone.
 * @param isLiving whether there is an OAuthClient of a uid, of any class
 */
export function unwantedOwners(
  { metadata }: ClientSecretObject,
  present: KubernetesObject,
  isLiving: (uid: string) => boolean,
): readonly OwnerReference[] {
  const own = metadata.labels[CLIENT_UID_LABEL];
  return (present.metadata.ownerReferences ?? []).filter(({ apiVersion, kind, uid }) => {
    const isClient = kind === OAUTH_CLIENTS.kind && apiVersion.startsWith(`${OAUTH_CLIENTS.group}/`);
    const isWanted = metadata.ownerReferences.some((wanted) => wanted.uid === uid);
    return isClient && !isWanted && (uid === own || !isLiving(uid));
  });
}

/** Whether something of ours in the Secret that is there is missing or another. What others added counts for nothing. */
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

/** The names of what is written into a Secret, to be remembered until it is written again. */
export function fieldsWritten({ metadata, data }: ClientSecretObject): string {
  const names = (texts: Texts) => Object.keys(texts).sort();
  const { labels, annotations } = metadata;
  return JSON.stringify({ data: names(data), labels: names(labels), annotations: names(annotations) });
}

/** The keys of the data among what `fieldsWritten` said. */
export function writtenKeys(written: string | undefined): readonly string[] {
  const { data } = fieldsOf(written === undefined ? undefined : parsed(written));
  return Array.isArray(data) ? data.filter((key) => typeof key === 'string') : [];
}

/**
 * The Secret with everything that an earlier one had more, changed; undefined when that is nothing. The API server drops a
 * field that we no longer apply only if nobody else ever wrote it, our own first POST included: applied with another value
 * it is ours alone, and gone when it is left out afterwards.
 * @param earlier.written what `fieldsWritten` said then
 * @param earlier.owners what `unwantedOwners` found
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

/** The same owner in other words, and not as the controller: of these there may be one. */
function changedOwner({ controller: _, blockOwnerDeletion, ...owner }: OwnerReference): OwnerReference {
  return blockOwnerDeletion === false ? owner : { ...owner, blockOwnerDeletion: false };
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

/** Whose Secret it says it is; undefined when it does not say. */
export function ownerOf({
  labels,
}: Pick<ObjectMeta, 'labels'>): { readonly name: string; readonly uid: string } | undefined {
  const [name, uid] = [labels?.[CLIENT_LABEL], labels?.[CLIENT_UID_LABEL]];
  return name === undefined || uid === undefined ? undefined : { name, uid };
}
