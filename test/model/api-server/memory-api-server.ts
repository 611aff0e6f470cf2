// An API server in memory: versions, preconditions, field ownership, finalizers, the rules of Secrets, lists and watches from
// any version that it still remembers. It is held to a real one by api-server-contract.ts. It answers at once and knows no
// network: memory-api.ts has that.

import type { NewObject, ObjectPlace, Selection, WatchFrame } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  objectKey,
  type Resource,
  resourceName,
} from '../../../src/kubernetes/objects/resources.ts';
import { applied, type Fields, haveSameOwners, isSame, managedFields, type Owned, updated } from './managed-fields.ts';

/** A refusal as a Status has it. */
export class ApiRefusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string) {
    super(`${status} ${reason}`);
    this.status = status;
    this.reason = reason;
  }
}

const CONFLICT = () => new ApiRefusal(409, 'Conflict');
const INVALID = () => new ApiRefusal(422, 'Invalid');

/** A change of an object. */
export interface StoredChange {
  readonly version: number;
  readonly resource: Resource;
  readonly key: string;
  /** Undefined: it is new. */
  readonly before: KubernetesObject | undefined;
  /** For a deletion the last state, with the version of the deletion. */
  readonly object: KubernetesObject;
  readonly isDeletion: boolean;
  /** The field manager. */
  readonly manager: string;
}

interface Stored extends Owned {
  /** With `managedFields`. */
  readonly shown: KubernetesObject;
}

/** Preconditions of a deletion. */
export type Doomed = ObjectPlace & {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
};

export interface MemoryApiServerOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called after each change, before the call that made it returns. */
  readonly onChange?: (change: StoredChange) => void;
}

export class MemoryApiServer {
  readonly #options: MemoryApiServerOptions;
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #watchers = new Set<(change: StoredChange) => void>();
  readonly #snapshots = new Map<string, readonly KubernetesObject[]>();
  #history: StoredChange[] = [];
  #version = 1000;
  /** What is older than this is forgotten. */
  #oldest = 0;
  #uids = 0;

  constructor(options: MemoryApiServerOptions) {
    this.#options = options;
  }

  get(resource: Resource, place: ObjectPlace): KubernetesObject | undefined {
    return this.#all(resource).get(objectKey(place))?.shown;
  }

  objects(resource: Resource): readonly KubernetesObject[] {
    return [...this.#all(resource).values()].map(({ shown }) => shown);
  }

  /** @throws ApiRefusal `AlreadyExists` */
  create(resource: Resource, object: NewObject, manager: string): KubernetesObject {
    if (this.#all(resource).has(objectKey(object.metadata))) throw new ApiRefusal(409, 'AlreadyExists');
    const fresh = this.#fresh(resource, object);
    return this.#put(resource, undefined, updated({ object: {}, owners: [] }, fresh, this.#writer(manager)), manager);
  }

  /** Replaces the object. @throws ApiRefusal `Conflict`, `NotFound`, `Invalid` */
  update(resource: Resource, object: NewObject, manager: string): KubernetesObject {
    const stored = this.#must(resource, object.metadata);
    assertPinned(stored.shown, object.metadata);
    const { status } = stored.object;
    const next = {
      ...object,
      ...(status !== undefined && isCustom(resource) && { status }),
      metadata: { ...object.metadata, ...keptMetadata(stored.shown) },
    };
    return this.#write(resource, stored, updated(stored, clean(resource, next), this.#writer(manager)), manager);
  }

  /** JSON merge patch (RFC 7396). @throws ApiRefusal as `update` */
  merge(resource: Resource, place: ObjectPlace, patch: Fields, manager: string): KubernetesObject {
    const stored = this.#must(resource, place);
    const next = clean(resource, merged(stored.object, patch) as Fields);
    assertPinned(stored.shown, { ...((patch.metadata ?? {}) as Partial<KubernetesObject['metadata']>) });
    const metadata = { ...(next.metadata as Fields), ...keptMetadata(stored.shown) };
    return this.#write(resource, stored, updated(stored, { ...next, metadata }, this.#writer(manager)), manager);
  }

  /** Server-side apply with force. @throws ApiRefusal `Conflict`, `Invalid`; `NotFound` for a subresource */
  apply(
    resource: Resource,
    object: NewObject,
    { manager, subresource }: { readonly manager: string; readonly subresource?: 'status' | undefined },
  ): KubernetesObject {
    const { metadata } = object;
    const stored = this.#all(resource).get(objectKey(metadata));
    const writer = this.#writer(manager, subresource);
    if (stored === undefined) {
      if (subresource !== undefined) throw new ApiRefusal(404, 'NotFound');
      if (metadata.uid !== undefined) throw CONFLICT();
      const created = applied(
        { object: this.#fresh(resource, { metadata: identity(metadata) }), owners: [] },
        object,
        writer,
      );
      return this.#put(resource, undefined, withDefaults(resource, created), manager);
    }
    assertPinned(stored.shown, metadata);
    const { status, ...rest } = object;
    const config = subresource === undefined ? (isCustom(resource) ? rest : object) : { status };
    return this.#write(resource, stored, applied(stored, config as Fields, writer), manager);
  }

  /** @returns whether it is gone; false while finalizers keep it. @throws ApiRefusal `NotFound`, `Conflict` */
  delete(resource: Resource, doomed: Doomed, manager: string): boolean {
    const stored = this.#must(resource, doomed);
    const { uid, resourceVersion, finalizers, deletionTimestamp } = stored.shown.metadata as ObjectMetaWithFinalizers;
    if (doomed.uid !== undefined && doomed.uid !== uid) throw CONFLICT();
    if (doomed.resourceVersion !== undefined && doomed.resourceVersion !== resourceVersion) throw CONFLICT();
    if (finalizers === undefined || finalizers.length === 0) {
      this.#remove(resource, stored, manager);
      return true;
    }
    if (deletionTimestamp !== undefined) return false;
    const metadata = { ...(stored.object.metadata as Fields), deletionTimestamp: this.#time() };
    this.#put(resource, stored, { ...stored, object: { ...stored.object, metadata } }, manager);
    return false;
  }

  /** One page. @throws ApiRefusal `Expired` for a token of before a compaction */
  list(
    resource: Resource,
    { limit, continue: token, ...selection }: Selection & { limit?: number; continue?: string | undefined } = {},
  ): { readonly items: readonly KubernetesObject[]; readonly resourceVersion: string; readonly continue?: string } {
    const [version = '', from = '0'] = token?.split(':') ?? [String(this.#version)];
    const snapshot = `${resourceName(resource)} ${JSON.stringify(selection)} ${version}`;
    const all = token === undefined ? this.#selected(resource, selection) : this.#snapshots.get(snapshot);
    if (all === undefined) throw new ApiRefusal(410, 'Expired');
    const end = Number(from) + (limit ?? Number.POSITIVE_INFINITY);
    const page = { items: all.slice(Number(from), end), resourceVersion: version };
    if (end >= all.length) return page;
    this.#snapshots.set(snapshot, all);
    return { ...page, continue: `${version}:${end}` };
  }

  /**
   * Sends every change after a version, those so far at once.
   * @returns what ends the watch. @throws ApiRefusal `Expired` for a version that is forgotten
   */
  watch(
    resource: Resource,
    { resourceVersion, ...selection }: Selection & { readonly resourceVersion: string },
    send: (frame: WatchFrame) => void,
  ): () => void {
    const from = Number(resourceVersion);
    if (from < this.#oldest) throw new ApiRefusal(410, 'Expired');
    const tell = (change: StoredChange) => {
      if (resourceName(change.resource) !== resourceName(resource)) return;
      const frame = frameOf(change, selection);
      if (frame !== undefined) send(frame);
    };
    for (const change of this.#history) if (change.version > from) tell(change);
    this.#watchers.add(tell);
    return () => this.#watchers.delete(tell);
  }

  /** Forgets what was before: a watch from an earlier version, and the rest of a list that began before, are refused. */
  compact(): void {
    this.#oldest = ++this.#version;
    this.#history = [];
    this.#snapshots.clear();
  }

  #selected(resource: Resource, selection: Selection): readonly KubernetesObject[] {
    const all = [...this.#all(resource)].sort(([one], [other]) => (one < other ? -1 : 1));
    return all.flatMap(([, { shown }]) => (isSelected(shown, selection) ? shownTo(shown, selection) : []));
  }

  #all(resource: Resource): Map<string, Stored> {
    const name = resourceName(resource);
    const objects = this.#objects.get(name) ?? new Map<string, Stored>();
    this.#objects.set(name, objects);
    return objects;
  }

  #must(resource: Resource, place: ObjectPlace): Stored {
    const stored = this.#all(resource).get(objectKey(place));
    if (stored === undefined) throw new ApiRefusal(404, 'NotFound');
    return stored;
  }

  #fresh(resource: Resource, object: NewObject): Fields {
    const { resourceVersion: _, ...metadata } = object.metadata;
    const uid = `00000000-0000-4000-8000-${String(++this.#uids).padStart(12, '0')}`;
    const made = { uid, creationTimestamp: this.#time(), ...(isCustom(resource) && { generation: 1 }) };
    const { status: __, ...rest } = object;
    const kept = isCustom(resource) ? rest : object;
    return defaults(resource, clean(resource, { ...kept, metadata: { ...metadata, ...made } }));
  }

  #write(resource: Resource, stored: Stored, next: Owned, manager: string): KubernetesObject {
    if (isSame(next.object, stored.object) && haveSameOwners(next.owners, stored.owners)) return stored.shown;
    assertAllowed(resource, stored.object, next.object);
    const { finalizers, deletionTimestamp, generation = 1 } = next.object.metadata as Partial<ObjectMetaWithFinalizers>;
    const isOther = isCustom(resource) && !isSame(specOf(stored.object), specOf(next.object));
    const metadata = { ...(next.object.metadata as Fields), ...(isOther && { generation: generation + 1 }) };
    const written = this.#put(resource, stored, { ...next, object: { ...next.object, metadata } }, manager);
    if (deletionTimestamp !== undefined && (finalizers ?? []).length === 0) {
      this.#remove(resource, this.#must(resource, written.metadata), manager);
    }
    return written;
  }

  #put(resource: Resource, before: Stored | undefined, { object, owners }: Owned, manager: string): KubernetesObject {
    const version = ++this.#version;
    const shown = this.#shown(resource, { object, owners }, version);
    const key = objectKey(shown.metadata);
    this.#all(resource).set(key, { object, owners, shown });
    this.#tell({ version, resource, key, before: before?.shown, object: shown, isDeletion: false, manager });
    return shown;
  }

  #remove(resource: Resource, stored: Stored, manager: string): void {
    const version = ++this.#version;
    const key = objectKey(stored.shown.metadata);
    this.#all(resource).delete(key);
    const object = this.#shown(resource, stored, version);
    this.#tell({ version, resource, key, before: stored.shown, object, isDeletion: true, manager });
  }

  #shown(resource: Resource, { object, owners }: Owned, version: number): KubernetesObject {
    const apiVersion = apiVersionOf(resource);
    const fields = managedFields(owners, apiVersion);
    const metadata = { ...(object.metadata as KubernetesObject['metadata']), resourceVersion: String(version) };
    return {
      ...object,
      apiVersion,
      kind: resource.kind,
      metadata: { ...metadata, managedFields: fields } as typeof metadata,
    };
  }

  #tell(change: StoredChange): void {
    this.#history.push(change);
    for (const watcher of this.#watchers) watcher(change);
    this.#options.onChange?.(change);
  }

  #writer(manager: string, subresource?: 'status') {
    return { manager, subresource, time: this.#time() };
  }

  /** Now, without a fraction of a second. */
  #time(): string {
    return `${new Date(this.#options.now()).toISOString().slice(0, -5)}Z`;
  }
}

type ObjectMetaWithFinalizers = KubernetesObject['metadata'] & { readonly finalizers?: readonly string[] };

/** A kind of a CustomResourceDefinition: it has a generation, and its status is written by itself. */
function isCustom({ group }: Resource): boolean {
  return group === 'grantry.dev';
}

function identity({ name, namespace }: NewObject['metadata']): NewObject['metadata'] {
  return { name, ...(namespace !== undefined && { namespace }) };
}

function assertPinned(
  { metadata: present }: KubernetesObject,
  { uid, resourceVersion }: Partial<KubernetesObject['metadata']>,
): void {
  if (uid !== undefined && uid !== present.uid) throw CONFLICT();
  if (resourceVersion !== undefined && resourceVersion !== present.resourceVersion) throw CONFLICT();
}

/** The type of a Secret never changes, and an immutable one's data neither. */
function assertAllowed({ plural }: Resource, before: Fields, after: Fields): void {
  if (plural !== 'secrets') return;
  if (before.type !== after.type) throw INVALID();
  if (before.immutable === true && (after.immutable !== true || !isSame(before.data, after.data))) throw INVALID();
}

function specOf({ metadata: _, status: __, apiVersion: ___, kind: ____, ...spec }: Fields): Fields {
  return spec;
}

function keptMetadata({ metadata }: KubernetesObject): Fields {
  const { name, namespace, uid, creationTimestamp, generation, deletionTimestamp } = metadata;
  return {
    ...identity({ name, ...(namespace !== undefined && { namespace }) }),
    uid,
    creationTimestamp,
    ...(generation !== undefined && { generation }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
  };
}

/** The object as it is stored: without what is empty or undefined, and without what the server keeps itself. */
function clean(_resource: Resource, { apiVersion: _, kind: __, ...object }: Fields): Fields {
  const { resourceVersion: ___, managedFields: ____, ...metadata } = object.metadata as Fields;
  const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  const kept = Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value)));
  return JSON.parse(JSON.stringify({ ...object, metadata: kept })) as Fields;
}

function withDefaults(resource: Resource, { object, owners }: Owned): Owned {
  return { object: defaults(resource, clean(resource, object)), owners };
}

function defaults({ plural }: Resource, object: Fields): Fields {
  return plural === 'secrets' && object.type === undefined ? { ...object, type: 'Opaque' } : object;
}

function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base = typeof target === 'object' && target !== null && !Array.isArray(target) ? (target as Fields) : {};
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

function isSelected(object: KubernetesObject, { namespace, labelSelector, fieldSelector }: Selection): boolean {
  const { metadata, type } = object;
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  const field = fieldSelector?.split('=');
  if (field?.[0] === 'type' && type !== field[1]) return false;
  if (field?.[0] === 'metadata.name' && metadata.name !== field[1]) return false;
  if (labelSelector === undefined) return true;
  const [, label = '', set] = /^(\S+) in \((.*)\)$/.exec(labelSelector) ?? [];
  const [name = '', value = ''] = set === undefined ? labelSelector.split('=') : [label];
  const wanted = set === undefined ? [value] : set.split(',');
  return wanted.includes(metadata.labels?.[name] ?? '');
}

function shownTo(object: KubernetesObject, { metadataOnly }: Selection): KubernetesObject {
  if (!metadataOnly) return object;
  const { apiVersion, kind, metadata } = object;
  return { apiVersion, kind, metadata };
}

/** A watch sees an object that is selected no more as deleted. */
function frameOf({ before, object, isDeletion }: StoredChange, selection: Selection): WatchFrame | undefined {
  const was = before !== undefined && isSelected(before, selection);
  const is = !isDeletion && isSelected(object, selection);
  if (!was && !is) return undefined;
  const type = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
  return { type, object: shownTo(object, selection) };
}
