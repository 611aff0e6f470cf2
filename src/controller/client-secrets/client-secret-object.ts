// The Secret in the owner's namespace as the controller applies it: the manifest of client-secret-manifest.ts
// (admission) with owner references and base64 data. Detects drift of the present Secret, and what the controller wrote
// before and does not write any more. Pure.

import {
  CLIENT_LABEL,
  CLIENT_UID_LABEL,
  clientSecretManifest,
  type SecretFacts,
} from '../../admission/client-secrets/client-secret-manifest.ts';
import { fieldsOf, type SourceObject } from '../../admission/kinds/manifest.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import { FIELD_MANAGER, type PinnedPatch } from '../../kubernetes/api/kubernetes-api.ts';
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

/** Whether an owner is an OAuthClient. */
export function isOAuthClient({ apiVersion, kind }: OwnerReference): boolean {
  return kind === OAUTH_CLIENTS.kind && apiVersion.startsWith(`${OAUTH_CLIENTS.group}/`);
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

/** The names under a field of a Secret that the controller wrote, as `managedFields` has them. @param path `data` … */
export function ownNames({ metadata }: KubernetesObject, ...path: readonly string[]): readonly string[] {
  const { managedFields } = fieldsOf(metadata);
  const entries = (Array.isArray(managedFields) ? managedFields : []).map(fieldsOf);
  const own = entries.filter(({ manager }) => manager === FIELD_MANAGER);
  const sets = own.map(({ fieldsV1 }) => path.reduce((set, name) => fieldsOf(set[`f:${name}`]), fieldsOf(fieldsV1)));
  return sets.flatMap(Object.keys).flatMap((name) => (name.startsWith('f:') ? name.slice(2) : []));
}

/**
 * The patch that removes from the present Secret what the controller wrote and `secret` leaves out, and the client as
 * its owner where the deletion policy is `Retain`. An apply alone removes a field only if no other entry of
 * `managedFields` has it, and a POST makes one of its own.
 * @param before the Secret before it was applied, with its `managedFields`
 * @returns undefined when nothing is left over
 */
export function removal(
  secret: ClientSecretObject,
  { present, before }: { readonly present: KubernetesObject; readonly before: KubernetesObject },
): PinnedPatch | undefined {
  const { namespace = '', name, resourceVersion, ownerReferences = [], ...there } = present.metadata;
  const nulls = (own: readonly string[], wanted: Texts, texts: unknown) => {
    const left = own.filter((name) => !Object.hasOwn(wanted, name) && Object.hasOwn(fieldsOf(texts), name));
    return Object.fromEntries(left.map((name) => [name, null]));
  };
  const data = nulls(ownNames(before, 'data'), secret.data, present.data);
  const labels = nulls(ownNames(before, 'metadata', 'labels'), secret.metadata.labels, there.labels);
  const annotations = nulls(
    ownNames(before, 'metadata', 'annotations'),
    secret.metadata.annotations,
    there.annotations,
  );
  const isOwned = secret.metadata.ownerReferences.length > 0;
  const owners = ownerReferences.filter(({ uid }) => isOwned || uid !== secret.metadata.labels[CLIENT_UID_LABEL]);
  const isClean = Object.keys({ ...data, ...labels, ...annotations }).length === 0;
  if (isClean && owners.length === ownerReferences.length) return undefined;
  return { metadata: { namespace, name, resourceVersion, labels, annotations, ownerReferences: owners }, data };
}

/** The client that the labels of a Secret name; undefined without both labels. */
export function labelledClient({
  labels,
}: Pick<ObjectMeta, 'labels'>): { readonly name: string; readonly uid: string } | undefined {
  const [name, uid] = [labels?.[CLIENT_LABEL], labels?.[CLIENT_UID_LABEL]];
  return name === undefined || uid === undefined ? undefined : { name, uid };
}
