// Reads many OAuthClients whose specs differ in few fields. The common part is parsed once and shared, so that each
// client costs time and memory for its own fields only. The result equals that of the schema alone (oauth-client.ts).

import type { Fault } from '../kinds/conditions.ts';
import { API_VERSION, fieldsOf, metadata, objectsWith, readManifest } from '../kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientSpec, OWN_FIELDS } from '../kinds/oauth-client.ts';
import { isOversized } from '../kinds/spec-size.ts';

/** A field that is each client's own. */
export type OwnField = keyof typeof OWN_FIELDS;

type ReadOwnFields = Partial<Pick<OAuthClientSpec, OwnField>>;

/** A client that could be read: its own fields, as far as it sets any, and the spec that it shares with others. */
export type ReadClient = PlainClient | (ReadOwnFields & { readonly shared: OAuthClientSpec });

/** The own fields that most clients have, in as little memory as possible. */
interface PlainClient {
  readonly shared: OAuthClientSpec;
  readonly displayName: string;
  /** The only one. */
  readonly redirectUri: string;
}

/** The result of reading a manifest. */
export type ClientReading = ReadClient | { readonly shared: undefined; readonly faults: readonly Fault[] };

/** The whole `spec` that was read. */
export function specOf(client: ReadClient): OAuthClientSpec {
  const { shared } = client;
  if (isPlainClient(client)) {
    return { ...shared, displayName: client.displayName, redirectUris: [client.redirectUri] };
  }
  const { shared: _, ...own } = client;
  return { ...shared, ...own };
}

function isPlainClient(client: ReadClient): client is PlainClient {
  return 'redirectUri' in client;
}

/** One such field of the `spec` that was read. */
export function ownOf<Field extends OwnField>(client: ReadClient, field: Field): OAuthClientSpec[Field] {
  if (field === 'redirectUris' && isPlainClient(client)) return [client.redirectUri] as OAuthClientSpec[Field];
  const own: Partial<OAuthClientSpec> = client;
  return (own[field] ?? client.shared[field]) as OAuthClientSpec[Field];
}

const OWN_NAMES = Object.keys(OWN_FIELDS) as readonly OwnField[];
const OTHER_OWN_NAMES = OWN_NAMES.filter((name) => name !== 'displayName' && name !== 'redirectUris');
const NOTHING_OWN = Object.fromEntries(OWN_NAMES.map((name) => [name, undefined]));
const METADATA = metadata(objectsWith('ignore'));
const IN_COMMON = { apiVersion: API_VERSION, kind: 'OAuthClient', metadata: { name: 'any' } } as const;

/** The cache holds so many different values and is then cleared; values returned before stay valid. */
const MOST_KNOWN = 10_000;
/** Longer values are not cached: a tenant that keeps changing a client must not fill the memory of the process. */
const LONGEST_KNOWN = 2000;

/** Reads manifests in which unknown fields are ignored. */
export class ClientReader {
  readonly #known = new Map<string, unknown>();
  /** The spec read last: lists come namespace by namespace, and the clients of one namespace are similar. */
  #latest: { readonly spec: Members; readonly shared: OAuthClientSpec } | undefined;

  /** Never throws, whatever the manifest is. */
  read(manifest: unknown): ClientReading {
    return this.#parts(fieldsOf(manifest)) ?? whole(manifest);
  }

  /** Undefined for a manifest that cannot be read in parts: the schema then names the faults, if there are any. */
  #parts({ apiVersion, kind, metadata, spec }: Readonly<Record<string, unknown>>): ReadClient | undefined {
    if (apiVersion !== API_VERSION || kind !== 'OAuthClient') return undefined;
    if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) return undefined;
    const known = this.#latest !== undefined && hasSameInCommon(this.#latest.spec, spec as Members);
    if (!known && isOversized({ spec })) return undefined;
    const shared = known ? this.#latest?.shared : this.#sharedOf(spec as Members);
    if (shared === undefined || !(isPlainMetadata(metadata) || METADATA.safeParse(metadata).success)) return undefined;
    const plain = plainClient(shared, spec as Members);
    if (plain !== undefined) return plain;
    // The part in common is short where it is known, and so are plain fields.
    if (known && isOversized({ spec })) return undefined;
    const own: Partial<Record<OwnField, unknown>> = {};
    for (const name of OWN_NAMES) {
      const value = (spec as Readonly<Record<string, unknown>>)[name] ?? undefined;
      if (value === undefined) continue;
      if (isPlainField(name, value)) own[name] = value;
      else {
        const { success, data } = OWN_FIELDS[name].safeParse(value);
        if (!success) return undefined;
        own[name] = data;
      }
    }
    return { shared, ...(own as ReadOwnFields) };
  }

  #sharedOf(spec: Members): OAuthClientSpec | undefined {
    const common = { ...spec, ...NOTHING_OWN };
    const text = textOf(common);
    const shared = text === undefined ? undefined : this.#once(text, () => this.#shared(common));
    if (shared !== undefined && text !== undefined && text.length <= LONGEST_KNOWN) this.#latest = { spec, shared };
    return shared;
  }

  #shared(common: object): OAuthClientSpec | undefined {
    const { manifest } = readManifest(OAUTH_CLIENT.ignore, { ...IN_COMMON, spec: common });
    if (manifest === undefined) return undefined;
    // Two specs that differ may still have the same scopes.
    const members = Object.entries(manifest.spec).map(([name, value]) => [
      name,
      typeof value === 'object' ? this.#once(`${name} ${JSON.stringify(value)}`, () => value) : value,
    ]);
    return Object.fromEntries(members) as OAuthClientSpec;
  }

  #once<Value>(text: string, make: () => Value): Value {
    const known = this.#known.get(text);
    if (known !== undefined) return known as Value;
    const value = make();
    if (text.length > LONGEST_KNOWN) return value;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(text, value);
    return value;
  }
}

// Most own fields can be accepted by a pattern, without the schema. The schema accepts every value that is plain here;
// it alone decides about all others.

const PLAIN_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PLAIN_UID = /^[0-9a-f][0-9a-f-]{35}$/;
const PLAIN_LABEL = /^[ -~]{1,100}$/;
const PLAIN_URI = /^[!-~]{1,1024}$/;

/** Undefined unless the own fields are exactly a plain display name and one plain redirect URI. */
function plainClient(shared: OAuthClientSpec, spec: Members): PlainClient | undefined {
  const { displayName, redirectUris } = spec;
  if (!isPlain(PLAIN_LABEL, displayName) || !isPlainAddress(redirectUris)) return undefined;
  for (const name of OTHER_OWN_NAMES) if ((spec[name] ?? undefined) !== undefined) return undefined;
  return { shared, displayName, redirectUri: redirectUris[0] };
}

function isPlainField(name: OwnField, value: unknown): boolean {
  return name === 'displayName' ? isPlain(PLAIN_LABEL, value) : name === 'redirectUris' && isPlainAddress(value);
}

function isPlainAddress(value: unknown): value is readonly [string] {
  return Array.isArray(value) && value.length === 1 && isPlain(PLAIN_URI, value[0]);
}

function isPlain(pattern: RegExp, value: unknown): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isPlainMetadata(metadata: unknown): boolean {
  const fields = fieldsOf(metadata);
  for (const field in fields) {
    const pattern = field === 'uid' ? PLAIN_UID : field === 'name' || field === 'namespace' ? PLAIN_NAME : undefined;
    if (pattern === undefined || !isPlain(pattern, fields[field])) return false;
  }
  return fields.name !== undefined;
}

/** Values nested deeper are not compared and count as different. */
const DEEPEST = 16;
const IS_OWN: ReadonlySet<string> = new Set(OWN_NAMES);

type Members = Readonly<Record<string, unknown>>;

/** Whether two specs are equal apart from {@link OWN_FIELDS}. */
function hasSameInCommon(one: Members, other: Members): boolean {
  let more = 0;
  for (const name in other) {
    if (IS_OWN.has(name)) continue;
    if (!Object.hasOwn(one, name) || !isSame(one[name], other[name], 0)) return false;
    more++;
  }
  for (const name in one) if (!IS_OWN.has(name)) more--;
  return more === 0;
}

function isSame(one: unknown, other: unknown, depth: number): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (depth > DEEPEST || Array.isArray(one) !== Array.isArray(other)) return false;
  if (!Array.isArray(one)) return hasSameMembers(one as Members, other as Members, depth + 1);
  const members = other as readonly unknown[];
  if (one.length !== members.length) return false;
  for (let index = 0; index < one.length; index++) if (!isSame(one[index], members[index], depth + 1)) return false;
  return true;
}

function hasSameMembers(one: Members, other: Members, depth: number): boolean {
  let more = 0;
  for (const name in other) {
    if (!Object.hasOwn(one, name) || !isSame(one[name], other[name], depth)) return false;
    more++;
  }
  for (const _ in one) more--;
  return more === 0;
}

/** Undefined for an object nested too deeply for JSON.stringify: JSON.parse reads deeper nesting than it can write. */
function textOf(value: object): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function whole(manifest: unknown): ClientReading {
  const read = readManifest(OAUTH_CLIENT.ignore, manifest);
  return read.manifest === undefined ? { shared: undefined, faults: read.faults } : { shared: read.manifest.spec };
}
