// The owners of the fields of an object, as an API server records it in `managedFields`: the part of server-side apply that
// the controller depends on. https://kubernetes.io/docs/reference/using-api/server-side-apply/

/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;
type Writable = Record<string, unknown>;

/** What one writer owns. */
export interface Ownership {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource: 'status' | undefined;
  readonly time: string;
  /** Results of {@link leaves}. */
  readonly paths: ReadonlySet<string>;
}

/** The metadata that the server keeps itself. */
const OF_THE_SERVER = new Set([
  ...['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'managedFields'],
  ...['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'],
]);

/**
 * The fields of an object that have owners, by path, with their values. An array is one field, but each owner reference and
 * each finalizer is a field of its own.
 */
function leaves(object: Fields): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [name, value] of Object.entries(object)) {
    if (name === 'apiVersion' || name === 'kind' || value === undefined) continue;
    if (name === 'metadata') collectMetadata(value as Fields, found);
    else collect([`f:${name}`], value, found);
  }
  return found;
}

function collectMetadata(metadata: Fields, found: Map<string, unknown>): void {
  for (const [name, value] of Object.entries(metadata)) {
    if (OF_THE_SERVER.has(name) || value === undefined) continue;
    const items = Array.isArray(value) ? value : [];
    if (name === 'ownerReferences') {
      for (const item of items) found.set(pathOf('f:metadata', 'f:ownerReferences', keyOf(item as Fields)), item);
    } else if (name === 'finalizers') {
      for (const item of items) found.set(pathOf('f:metadata', 'f:finalizers', `v:${JSON.stringify(item)}`), item);
    } else collect(['f:metadata', `f:${name}`], value, found);
  }
}

function collect(path: readonly string[], value: unknown, found: Map<string, unknown>): void {
  const members = isObject(value) ? Object.entries(value) : [];
  if (members.length === 0) {
    // An empty map has no field.
    if (!isObject(value)) found.set(pathOf(...path), value);
    return;
  }
  for (const [name, member] of members) collect([...path, `f:${name}`], member, found);
}

function keyOf({ uid }: Fields): string {
  return `k:${JSON.stringify({ uid })}`;
}

function pathOf(...segments: readonly string[]): string {
  return JSON.stringify(segments);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object with a field set to a value; undefined: removed. */
function withField(object: Fields, path: string, value: unknown): Fields {
  return withMember(object, JSON.parse(path) as string[], value) ?? {};
}

/** Undefined: nothing is left of it. */
function withMember(object: Fields, [first = '', ...rest]: readonly string[], value: unknown): Fields | undefined {
  const name = first.slice(2);
  const copy: Writable = { ...object };
  const [next] = rest;
  if (next === undefined) copy[name] = value;
  else if (next.startsWith('f:')) copy[name] = withMember(isObject(copy[name]) ? copy[name] : {}, rest, value);
  else copy[name] = withItem((copy[name] ?? []) as unknown[], next, value);
  if (copy[name] === undefined || (Array.isArray(copy[name]) && next !== undefined && copy[name].length === 0)) {
    delete copy[name];
  }
  return value === undefined && Object.keys(copy).length === 0 ? undefined : copy;
}

function withItem(items: readonly unknown[], segment: string, value: unknown): readonly unknown[] {
  const isItem = (item: unknown) =>
    segment.startsWith('k:') ? keyOf(item as Fields) === segment : `v:${JSON.stringify(item)}` === segment;
  if (value === undefined) return items.filter((item) => !isItem(item));
  return items.some(isItem) ? items.map((item) => (isItem(item) ? value : item)) : [...items, value];
}

/** Whether two JSON values are the same. */
export function isSame(one: unknown, other: unknown): boolean {
  if (isObject(one) && isObject(other)) {
    const names = Object.keys(one);
    return names.length === Object.keys(other).length && names.every((name) => isSame(one[name], other[name]));
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  }
  return one === other;
}

/** A write of a manager. */
export interface Writer {
  readonly manager: string;
  readonly subresource?: 'status' | undefined;
  readonly time: string;
}

/** An object without `managedFields`, and who owns its fields. */
export interface Owned {
  readonly object: Fields;
  readonly owners: readonly Ownership[];
}

/** Server-side apply with force: what the manager applied before and leaves out now goes, unless another one owns it. */
export function applied({ object, owners }: Owned, config: Fields, writer: Writer): Owned {
  const wanted = leaves(config);
  const mine = owners.find((each) => isOf(each, writer, 'Apply'));
  const others = owners.filter((each) => each !== mine);
  const present = leaves(object);
  let next = object;
  for (const [path, value] of wanted) if (!isSame(present.get(path), value)) next = withField(next, path, value);
  for (const path of mine?.paths ?? []) {
    if (wanted.has(path) || others.some(({ paths }) => paths.has(path))) continue;
    next = withField(next, path, undefined);
  }
  const isLost = (path: string) => wanted.has(path) && !isSame(present.get(path), wanted.get(path));
  const entry: Ownership = { ...ownerOf(writer, 'Apply'), paths: new Set(wanted.keys()) };
  return { object: next, owners: ownedBy([...without(others, isLost), entry]) };
}

/** Any other write: the manager owns what it changed. */
export function updated({ object, owners }: Owned, next: Fields, writer: Writer): Owned {
  const [before, after] = [leaves(object), leaves(next)];
  const changed = [...after].flatMap(([path, value]) => (isSame(before.get(path), value) ? [] : [path]));
  const isLost = (path: string) => !after.has(path) || changed.includes(path);
  const mine = owners.find((each) => isOf(each, writer, 'Update'));
  const kept = without(
    owners.filter((each) => each !== mine),
    isLost,
  );
  const paths = new Set([...(mine?.paths ?? []), ...changed].filter((path) => after.has(path)));
  return { object: next, owners: ownedBy([...kept, { ...ownerOf(writer, 'Update'), paths }]) };
}

function isOf(owner: Ownership, { manager, subresource }: Writer, operation: Ownership['operation']): boolean {
  return owner.manager === manager && owner.operation === operation && owner.subresource === subresource;
}

function ownerOf({ manager, subresource, time }: Writer, operation: Ownership['operation']) {
  return { manager, operation, subresource, time };
}

function without(owners: readonly Ownership[], isLost: (path: string) => boolean): readonly Ownership[] {
  return owners.map((owner) => ({ ...owner, paths: new Set([...owner.paths].filter((path) => !isLost(path))) }));
}

function ownedBy(owners: readonly Ownership[]): readonly Ownership[] {
  return owners.filter(({ paths }) => paths.size > 0);
}

/** Whether the same writers own the same fields; when they wrote does not count. */
export function haveSameOwners(one: readonly Ownership[], other: readonly Ownership[]): boolean {
  if (one.length !== other.length) return false;
  return one.every((owner) => {
    const same = other.find((each) => isOf(each, { ...owner, time: '' }, owner.operation));
    return (
      same !== undefined &&
      same.paths.size === owner.paths.size &&
      [...owner.paths].every((path) => same.paths.has(path))
    );
  });
}

/** `managedFields` as the server shows them. */
export function managedFields(owners: readonly Ownership[], apiVersion: string): readonly Fields[] {
  return owners.map(({ manager, operation, subresource, time, paths }) => {
    const fieldsV1: Writable = {};
    for (const path of paths) {
      let at = fieldsV1;
      for (const segment of JSON.parse(path) as string[]) {
        const member = (at[segment] ?? {}) as Writable;
        at[segment] = member;
        at = member;
      }
    }
    const shared = { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1 };
    return subresource === undefined ? shared : { ...shared, subresource };
  });
}
