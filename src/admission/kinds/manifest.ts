// Building blocks of the kinds' schemas: bounded strings and lists, durations, objects that drop nulls as the API
// server does; and the parser from one manifest to a typed object or its faults.

import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import type { Fault } from './conditions.ts';
import { parseDuration } from './duration.ts';
import type { FieldPath } from './field-path.ts';

export const API_VERSION = 'grantry.dev/v1alpha1';

/** The class of objects and of installs that name none. */
export const DEFAULT_CLASS = 'default';

/**
 * `refuse`: an unknown field is a fault (`check`, kubectl). `ignore`: it is dropped (servers; a newer CRD may have it).
 */
export type UnknownFields = 'refuse' | 'ignore';

/** The identity of an object. The source provides what the manifest does not. */
export interface ObjectIdentity {
  /** Empty for a cluster-scoped kind. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Only compared, to find the older of two objects: epoch milliseconds, or any other order of the source. */
  readonly createdAt: number;
  /** `metadata.generation`, or 1 where the source counts no generations. */
  readonly generation: number;
}

/** An object as its source read it. */
export interface SourceObject extends ObjectIdentity {
  /** The whole manifest, parsed but not validated: any value. */
  readonly manifest: unknown;
}

/** The fields of any value; none when it is not an object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/**
 * The class of install that an OAuthClient, ProtectedResource or ClientPolicy is for. An unreadable manifest has one too (the default one
 * where it names none): exactly one install must report on each object.
 */
export function classOf(manifest: unknown): string {
  const { className } = fieldsOf(fieldsOf(manifest).spec);
  return typeof className === 'string' ? className : DEFAULT_CLASS;
}

/** Makes object schemas for one treatment of unknown fields. */
export function objectsWith(unknownFields: UnknownFields) {
  return <Shape extends z.ZodRawShape>(shape: Shape) =>
    unknownFields === 'refuse' ? z.strictObject(shape, { error: unknownFieldError(shape) }) : z.object(shape);
}

export type MakeObject = ReturnType<typeof objectsWith>;

/**
 * The schema of a whole manifest, in which a null field counts as absent, as in the API server.
 * @param refuse a fault for which nothing of the manifest is read
 */
export function wholeManifest<Schema extends z.ZodType>(
  schema: Schema,
  refuse: (value: unknown) => { readonly path: string[]; readonly message: string } | undefined = () => undefined,
) {
  return z.preprocess((value, { addIssue }) => {
    const fault = refuse(value);
    if (fault === undefined) return withoutNulls(value);
    addIssue({ code: 'custom', ...fault });
    return z.NEVER;
  }, schema);
}

/** No field of the schemas lies deeper; nulls below this depth are left. */
const DEEPEST = 16;

/** A copy without nulls; the value itself where there is no null, as in most. */
function withoutNulls(value: unknown, depth = 0): unknown {
  return hasNull(value, depth) ? copiedWithoutNulls(value, depth) : value;
}

function hasNull(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return false;
  if (Array.isArray(value)) return value.some((member) => hasNull(member, depth + 1));
  // Inherited properties are not fields.
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue;
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member === null || hasNull(member, depth + 1)) return true;
  }
  return false;
}

function copiedWithoutNulls(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value;
  if (Array.isArray(value)) return value.map((member) => copiedWithoutNulls(member, depth + 1));
  const fields = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(fields.map(([name, member]) => [name, copiedWithoutNulls(member, depth + 1)]));
}

// One line for each unknown key, in the order of the issue's keys: `readManifest` makes a fault of each.
function unknownFieldError(shape: z.ZodRawShape) {
  const known = Object.keys(shape);
  return (issue: z.core.$ZodRawIssue): string | undefined =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => unknownFieldMessage(key, known)).join('\n')
      : undefined;
}

const MAX_MISSPELLING = 3;

/** YAML 1.1, which kubectl speaks, reads these names without quotes as booleans: members of a JWK (RFC 7518 §6). */
const READ_AS_BOOLEAN: Readonly<Record<string, string>> = { true: 'y', false: 'n' };

function unknownFieldMessage(key: string, known: readonly string[]): string {
  const meant = READ_AS_BOOLEAN[key];
  if (meant !== undefined && known.includes(meant)) {
    return `There is no such field; YAML reads ${meant} without quotes as ${key}: write "${meant}".`;
  }
  const near = known
    .map((name) => ({ name, steps: key.length > 64 ? Infinity : distance(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.min(MAX_MISSPELLING, name.length / 2))
    .sort((a, b) => a.steps - b.steps)[0];
  return near === undefined ? 'There is no such field here.' : `There is no such field; did you mean ${near.name}?`;
}

/**
 * For `.meta()` of a field: a rule of the API server in CEL. It stands beside the check that refuses the same in every
 * process; rules about a change (`oldSelf`) stand alone.
 * @param message what the API server says to a value that breaks the rule
 */
export function cel(rule: string, message: string) {
  // By its own name: `.meta()` of a schema that is built upon adds to the rules of that schema.
  return { [`${CEL}${message}`]: rule };
}

/** What the names of rules begin with among the metadata of a field; the message of the rule follows. */
export const CEL = 'cel: ';

/** A well-formed string of at most `max` code points (as the API server's maxLength counts) that matches `pattern`. */
export function text(max: number, pattern?: RegExp, fault = 'is not written as it must be') {
  // One check instead of several: a manifest has dozens of strings, and each check of a schema has a fixed cost.
  return z
    .string()
    .check(({ value, issues }) => {
      const isText = value.isWellFormed();
      const isShort = isText && isWithin(value, max);
      if (isShort && (pattern === undefined || pattern.test(value))) return;
      const message = isText ? (isShort ? fault : `is longer than ${max} characters`) : 'is not well-formed Unicode';
      issues.push({ code: 'custom', input: value, message, path: [], continue: isShort });
    })
    .register(z.globalRegistry, { maxLength: max, ...(pattern !== undefined && { pattern: pattern.source, fault }) });
}

function isWithin(value: string, max: number): boolean {
  if (value.length <= max) return true;
  return value.length <= 2 * max && [...value].length <= max;
}

/** At most `max` different values. */
export function setOf<Item extends z.ZodType<string>>(item: Item, max: number) {
  return z
    .array(item)
    .max(max, { error: `has more than ${max} members`, abort: true })
    .refine((values) => values.length < 2 || new Set(values).size === values.length, {
      error: 'names the same value twice',
    })
    .register(z.globalRegistry, { 'x-kubernetes-list-type': 'set' });
}

/** At most `max` objects. */
export function listOf<Item extends z.ZodType>(item: Item, max: number) {
  return z
    .array(item)
    .max(max, { error: `has more than ${max} members`, abort: true })
    .register(z.globalRegistry, { 'x-kubernetes-list-type': 'atomic' });
}

/** At most `max` objects that differ in the member `key`, by which server-side apply merges them. */
export function mapListOf<Key extends string, Item extends z.ZodType<Readonly<Record<Key, string>>>>(
  key: Key,
  item: Item,
  max: number,
) {
  return listOf(item, max)
    .refine((members) => new Set(members.map((member) => member[key])).size === members.length, {
      error: `has two members with the same ${key}`,
    })
    .register(z.globalRegistry, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}

/** A map of bounded keys and values with at most `max` members. */
export function mapOf<Value extends z.ZodType<string>>(value: Value, max: number) {
  return z
    .record(text(317), value)
    .refine((map) => Object.keys(map).length <= max, { error: `has more than ${max} members` })
    .register(z.globalRegistry, {
      maxProperties: max,
      ...cel('self.all(key, size(key) <= 317)', 'a key has more than 317 characters'),
    });
}

// Hours, minutes, seconds, in this order and few enough that Go can hold them.
const DURATION = /^([0-9]{1,5}h([0-9]{1,7}m)?([0-9]{1,9}s)?|[0-9]{1,7}m([0-9]{1,9}s)?|[0-9]{1,9}s)$/;

/** A Go duration string of whole seconds, converted to seconds. */
export function duration() {
  return text(32, DURATION, 'is not a duration of whole seconds such as 15m or 1h30m').transform(
    (value) => parseDuration(value) ?? 0,
  );
}

/** In CEL, for {@link cel}: whether a field is no duration, of which another rule is. */
export function isNoDuration(field: string): string {
  return `!${field}.matches(r"${DURATION.source}")`;
}

/** For `.meta()` of a duration: its limits in CEL. Admission refuses what is beyond them with a reason of its own. */
export function within({ least, most }: { readonly least?: string; readonly most?: string }) {
  const rules = [
    ...(least === undefined ? [] : [`duration(self) >= duration('${least}')`]),
    ...(most === undefined ? [] : [`duration(self) <= duration('${most}')`]),
  ];
  const both = least !== undefined && most !== undefined;
  const said = both ? `from ${least} to ${most}` : least === undefined ? `at most ${most}` : `at least ${least}`;
  return cel(`${isNoDuration('self')} || ${both ? `(${rules.join(' && ')})` : rules[0]}`, `must be ${said}`);
}

const QUANTITY = /^([1-9][0-9]{0,5})([kMG]|[KMG]i)$/;
const QUANTITY_UNITS: Readonly<Record<string, number>> = {
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** A Kubernetes quantity of bytes, converted to bytes: whole numbers with a unit. */
export function quantity() {
  return text(
    8,
    QUANTITY,
    'is not a quantity of bytes such as 64Mi: a whole number with k, M, G, Ki, Mi or Gi',
  ).transform((value) => {
    const [, number = '', unit = ''] = QUANTITY.exec(value) ?? [];
    return Number(number) * (QUANTITY_UNITS[unit] ?? 1);
  });
}

// A date with a day that exists in its month, and a time of day with an offset.
const DATE =
  '([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)';
const TIME = new RegExp(
  `^${DATE}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`,
);

/** An RFC 3339 time, converted to epoch milliseconds. */
export function time() {
  return text(35, TIME, 'is not an RFC 3339 time such as 2026-01-31T12:00:00Z').transform((value) => Date.parse(value));
}

const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** The name of a Secret, ConfigMap or ServiceAccount. */
export function objectName() {
  return text(253, DNS_SUBDOMAIN, 'is not the name of an object: lower-case letters, digits, - and . only');
}

/** The name of an object of a grantry kind: it becomes a label and a part of other names. */
export function ownName() {
  return text(63, DNS_SUBDOMAIN, 'is not a name: lower-case letters, digits, - and . only, 63 at most');
}

/** The name of a namespace. */
export function namespaceName() {
  return text(63, DNS_LABEL, 'is not a namespace: lower-case letters, digits and - only');
}

/** The pattern of a key inside a Secret or ConfigMap, which becomes a file name where it is mounted. */
export const DATA_KEY = /^\.?[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** A key inside a Secret or ConfigMap. */
export function dataKey() {
  return text(253, DATA_KEY, 'is not a key of a Secret: letters, digits, -, _ and . only, and not two dots first');
}

/** The class of an install (`spec.className`). */
export function className() {
  return text(63, DNS_LABEL, 'is not a class: lower-case letters, digits and - only')
    .default(DEFAULT_CLASS)
    .meta(cel('self == oldSelf', 'className cannot be changed'))
    .describe(
      'The install of grantry that this is for. An install serves the objects of its own class and leaves all others alone. It cannot be changed.',
    );
}

/** `metadata`; names are bounded because they become labels and parts of other names. */
export function metadata(object: MakeObject) {
  return object({
    name: ownName(),
    namespace: namespaceName().optional(),
    uid: text(128, /^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'is not a uid').optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
    creationTimestamp: z.string().optional(),
    deletionTimestamp: z.string().optional(),
    deletionGracePeriodSeconds: z.number().optional(),
    generation: z.number().optional(),
    resourceVersion: z.string().optional(),
    generateName: z.string().optional(),
    selfLink: z.string().optional(),
    finalizers: z.array(z.string()).optional(),
    ownerReferences: z.array(z.unknown()).optional(),
    managedFields: z.array(z.unknown()).optional(),
  });
}

/**
 * The schema of a whole manifest of a kind.
 * @param spec without a default where every manifest must have one
 * @param refuse as of `wholeManifest`
 */
export function manifestOf<const Kind extends string, Spec extends z.ZodType>(
  object: MakeObject,
  kind: Kind,
  spec: Spec,
  refuse?: Parameters<typeof wholeManifest>[1],
) {
  return wholeManifest(
    object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal(kind),
      metadata: metadata(object),
      spec,
      // Never read: every writer of the object could have set it.
      status: z.unknown().optional(),
    }),
    refuse,
  );
}

/** Labels and annotations for Secrets. */
export function secretTemplate(object: MakeObject) {
  return object({
    labels: mapOf(text(63), 32).default({}).describe('Further labels.'),
    annotations: mapOf(text(4096), 32).default({}).describe('Further annotations.'),
  }).prefault({});
}

const MAX_FAULTS = 50;

/** The typed manifest, or the faults of each field that does not match the schema. Never throws, for any value. */
export function readManifest<Output>(
  schema: z.ZodType<Output>,
  value: unknown,
):
  | { readonly manifest: Output; readonly faults: readonly [] }
  | { readonly manifest: undefined; readonly faults: readonly Fault<'InvalidManifest'>[] } {
  const result = schema.safeParse(value);
  if (result.success) return { manifest: result.data, faults: [] };
  return { manifest: undefined, faults: result.error.issues.flatMap(faultsOf).slice(0, MAX_FAULTS) };
}

function faultsOf(issue: z.core.$ZodIssue): readonly Fault<'InvalidManifest'>[] {
  const path: FieldPath = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
  if (issue.code === 'unrecognized_keys') {
    const messages = issue.message.split('\n');
    return issue.keys.map((key, index) => invalid([...path, key], messages[index] ?? 'There is no such field here.'));
  }
  if (issue.code === 'invalid_type') {
    // zod distinguishes absent from wrong in its message only.
    const absent = issue.message.endsWith('received undefined');
    return [invalid(path, absent ? 'This field is required.' : `This must be of type ${issue.expected}.`)];
  }
  if (issue.code === 'invalid_value') {
    return [invalid(path, `This must be ${issue.values.map(String).join(' or ')}.`)];
  }
  if (issue.code === 'custom' || issue.code === 'too_big' || issue.code === 'too_small') {
    return [invalid(path, `This ${issue.message}.`)];
  }
  return [invalid(path, `This ${/^[a-z]/.test(issue.message) ? issue.message : 'is not what it must be'}.`)];
}

function invalid(path: FieldPath, message: string): Fault<'InvalidManifest'> {
  return { path, reason: 'InvalidManifest', message };
}
