// Converts documents to Kubernetes objects with the defaults that the API server would set: namespace, uid, age.
// `admission/` validates the spec of a grantry kind; this file reads identities only.

import { closest } from 'fastest-levenshtein';
import { v5 as uuidv5 } from 'uuid';
import type { FieldPath } from '../admission/kinds/field-path.ts';
import type { SourceObject } from '../admission/kinds/manifest.ts';
import type { ManifestDocument, ParsedFile } from './documents.ts';
import { placeIn } from './outline.ts';
import type { ManifestFault, Place } from './place.ts';

const GROUP = 'grantry.dev';

/** The kinds that are read, each with its one apiVersion and whether it is namespaced. */
const KINDS = {
  OAuthClient: { apiVersion: `${GROUP}/v1alpha1`, namespaced: true },
  ProtectedResource: { apiVersion: `${GROUP}/v1alpha1`, namespaced: true },
  IdentityProvider: { apiVersion: `${GROUP}/v1alpha1`, namespaced: true },
  SigningKey: { apiVersion: `${GROUP}/v1alpha1`, namespaced: true },
  ClientPolicy: { apiVersion: `${GROUP}/v1alpha1`, namespaced: false },
  Secret: { apiVersion: 'v1', namespaced: true },
  ConfigMap: { apiVersion: 'v1', namespaced: true },
  ServiceAccount: { apiVersion: 'v1', namespaced: true },
  Namespace: { apiVersion: 'v1', namespaced: false },
} as const;

export type ManifestKind = keyof typeof KINDS;

/** One object of a folder. */
export interface ManifestObject extends SourceObject {
  readonly kind: ManifestKind;
  /** The `uid` that the object has unless its manifest gives another. */
  readonly derivedUid: string;
  /** Undefined when the manifest gives no `creationTimestamp`; the position in the folder then determines the age. */
  readonly creationTime: number | undefined;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly place: Place;
  locate(path: FieldPath): Place;
}

/** The objects and faults of one file. */
export interface FileObjects {
  readonly objects: readonly ManifestObject[];
  readonly faults: readonly ManifestFault[];
  /** `apiVersion/Kind` of objects of other kinds, each once. */
  readonly ignoredKinds: readonly string[];
  /** A list of users that stands there without a Secret, as `grantry server` reads it; the first one of the file. */
  readonly userList: ManifestDocument | undefined;
}

// A random namespace UUID (RFC 9562 §5.5), so that derived uids collide with no others.
const UID_NAMESPACE = 'f1f4b4b0-6a3a-4c57-9b62-0d8f5c6f2e11';
const UID = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const MAX_LIST_DEPTH = 4;
/**
 * So many characters of an unknown kind are compared for a suggestion: the time of a comparison grows with the length.
 */
const LONGEST_COMPARED = 64;

/** The objects of a parsed file, `List`s unpacked as kubectl unpacks them. */
export function readObjects({ documents, faults }: ParsedFile): FileObjects {
  const objects: ManifestObject[] = [];
  const found: ManifestFault[] = [...faults];
  const ignored = new Set<string>();
  let userList: ManifestDocument | undefined;
  for (const document of documents) {
    // A file may begin or end with `---`, and comments alone are a document too.
    if (document.value === null || document.value === undefined) continue;
    if (isUserList(document)) {
      userList ??= document;
      continue;
    }
    for (const item of unpack(document.value, [], document, found)) {
      const read = readObject(item);
      if (read === undefined) ignored.add(`${String(item.value.apiVersion)} ${String(item.value.kind)}`.slice(0, 120));
      else if ('reason' in read) found.push(read);
      else objects.push(read);
    }
  }
  return { objects, faults: found, ignoredKinds: [...ignored], userList };
}

/** No Kubernetes object is a list. This one is named as the key of a users Secret, or has an entry with a username. */
function isUserList({ file, value }: ManifestDocument): boolean {
  if (!Array.isArray(value)) return false;
  return /(^|\/)users\.ya?ml$/.test(file) || value.some((entry) => isFields(entry) && Object.hasOwn(entry, 'username'));
}

type Fields = Readonly<Record<string, unknown>>;

interface Item {
  readonly value: Fields;
  readonly locate: (path: FieldPath) => Place;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function* unpack(
  value: unknown,
  path: FieldPath,
  document: ManifestDocument,
  faults: ManifestFault[],
  inherited: Fields = {},
): Generator<Item> {
  // The path shows the item of a list: `items[3].spec.scopes`.
  const locate = (below: FieldPath) => placeIn(document, [...path, ...below]);
  if (!isFields(value)) {
    faults.push({ place: locate([]), reason: 'InvalidManifest', message: 'This is not a Kubernetes object.' });
    return;
  }
  const { kind, items } = value;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) {
    yield { value: { ...inherited, ...value }, locate };
    return;
  }
  if (path.length / 2 >= MAX_LIST_DEPTH) {
    faults.push({ place: locate([]), reason: 'InvalidManifest', message: 'Lists stand inside lists too deeply.' });
    return;
  }
  // The items of a typed list (SecretList) need not repeat apiVersion and kind.
  const typed = kind === 'List' ? {} : { apiVersion: value.apiVersion, kind: kind.slice(0, -'List'.length) };
  for (const [index, item] of items.entries()) yield* unpack(item, [...path, 'items', index], document, faults, typed);
}

/** The object; its first fault; or undefined for a kind that is not read. */
function readObject({ value, locate }: Item): ManifestObject | ManifestFault | undefined {
  const invalid = (path: FieldPath, message: string): ManifestFault => ({
    place: locate(path),
    reason: 'InvalidManifest',
    message,
  });
  const { apiVersion, kind } = value;
  if (typeof kind !== 'string' || kind === '') return invalid(['kind'], 'There is no kind.');
  if (typeof apiVersion !== 'string' || apiVersion === '') return invalid(['apiVersion'], 'There is no apiVersion.');
  if (!isKnown(kind, apiVersion)) {
    const wrong = misspelt(kind, apiVersion);
    return wrong && invalid([wrong.field], wrong.message);
  }
  const metadata = value.metadata;
  if (!isFields(metadata)) return invalid(['metadata'], 'There is no metadata.');
  const { namespaced } = KINDS[kind];
  const name = metadata.name;
  if (typeof name !== 'string' || name === '') return invalid(['metadata', 'name'], 'There is no name.');
  if (name.length > 253 || !(kind === 'Namespace' ? LABEL : SUBDOMAIN).test(name)) {
    return invalid(['metadata', 'name'], 'The name must be lower-case letters, digits, - and . only.');
  }
  const namespace = namespaced ? (metadata.namespace ?? 'default') : '';
  if (typeof namespace !== 'string' || (namespaced && !LABEL.test(namespace))) {
    return invalid(['metadata', 'namespace'], 'The namespace must be lower-case letters, digits and - only.');
  }
  const derivedUid = uuidv5(`${kind}/${namespace}/${name}`, UID_NAMESPACE);
  const uid = metadata.uid ?? derivedUid;
  if (typeof uid !== 'string' || !UID.test(uid)) {
    return invalid(['metadata', 'uid'], 'The uid must be letters, digits and - only.');
  }
  const time = metadata.creationTimestamp;
  const creationTime = typeof time === 'string' ? Date.parse(time) : undefined;
  if (creationTime !== undefined && Number.isNaN(creationTime)) {
    return invalid(['metadata', 'creationTimestamp'], 'The time must be written as 2026-01-31T12:00:00Z.');
  }
  const { generation } = metadata;
  return {
    kind,
    namespace,
    name,
    uid,
    derivedUid,
    creationTime,
    createdAt: creationTime ?? 0,
    generation: typeof generation === 'number' && Number.isSafeInteger(generation) ? generation : 1,
    manifest: value,
    place: locate([]),
    locate,
  };
}

/** The fault of an unknown kind or version in the group of grantry; undefined for other groups. */
function misspelt(kind: string, apiVersion: string): { field: string; message: string } | undefined {
  if (!apiVersion.startsWith(`${GROUP}/`)) return undefined;
  const own = Object.entries(KINDS).filter(([, known]) => known.apiVersion.startsWith(`${GROUP}/`));
  const known = own.find(([name]) => name === kind)?.[1];
  if (known !== undefined)
    return { field: 'apiVersion', message: `There is no such version; write ${known.apiVersion}.` };
  const names = own.map(([name]) => name);
  const nearest = closest(kind.slice(0, LONGEST_COMPARED), names);
  const message = `${GROUP} has no such kind; did you mean ${nearest}? There are ${names.join(', ')}.`;
  return { field: 'kind', message };
}

function isKnown(kind: string, apiVersion: string): kind is ManifestKind {
  return Object.hasOwn(KINDS, kind) && KINDS[kind as ManifestKind].apiVersion === apiVersion;
}
