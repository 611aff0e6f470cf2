// Parses a `users.yaml`. Separate from local-users.ts, so that a process without such a file loads no YAML parser.

import { type Document, isMap, isScalar, isSeq, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import { type Denials, type LocalUser, UsersFileError } from './local-users.ts';
import { passwordHashFault } from './password.ts';
import { usernameSchema } from './username.ts';

const text = (length: number) => z.string().min(1).max(length);

function hashMissing({ input }: { readonly input?: unknown }): string | undefined {
  return input === undefined ? 'is missing; grantry hash-password makes one' : undefined;
}

const localUser = z.strictObject({
  username: usernameSchema,
  id: usernameSchema.optional(),
  passwordHash: z.string({ error: hashMissing }).superRefine((value, context) => {
    const message = passwordHashFault(value);
    if (message) context.addIssue({ code: 'custom', message });
  }),
  displayName: text(254).optional(),
  email: text(254).optional(),
  groups: z.array(text(254)).max(200).optional(),
  disabled: z.boolean().optional(),
  revokeTokensBefore: z.iso
    .datetime({ offset: true, error: 'is not an RFC 3339 time such as 2026-01-31T12:00:00Z' })
    .transform((value) => Date.parse(value))
    .optional(),
}) satisfies z.ZodType<LocalUser>;

/**
 * The users of a file: a YAML list of {@link LocalUser}.
 * @param source the text of the file, or the value that it stands for
 * @throws UsersFileError with what still counts of the file
 */
export function parseUsers(source: unknown): readonly LocalUser[] {
  const document = parseYaml(typeof source === 'string' ? source : (JSON.stringify(source) ?? ''));
  const refuse = (faults: readonly Fault[]) => {
    const message = faults.map((fault) => `users${place(fault.path)}: ${fault.message}`).join('; ');
    return new UsersFileError(message, { path: faults[0]?.path, denials: denialsOf(document) });
  };
  const fault = keyFault(document);
  if (fault !== undefined) throw refuse([fault]);
  const value = plainValueOf(document);
  if (value === undefined) throw refuse([{ path: [], message: 'has an alias or a value that is no plain text' }]);
  const parsed = z
    .array(localUser)
    .max(10_000)
    .safeParse(value ?? [], { error: plainMessage });
  if (!parsed.success) {
    const { issues } = parsed.error;
    // A misspelt field is also missing under its right name: both faults are reported together.
    throw refuse(issues.filter(({ path }) => path[0] === issues[0]?.path[0]).slice(0, MAX_REPORTED_FAULTS));
  }
  for (const field of ['username', 'id'] as const) {
    const twice = firstRepeated(parsed.data.map((user) => user[field]));
    if (twice !== undefined) throw refuse([{ path: [twice, field], message: 'is named twice' }]);
  }
  return parsed.data;
}

/** The index of the first value that stands earlier in the list as well. */
function firstRepeated(values: readonly (string | undefined)[]): number | undefined {
  const seen = new Set<string>();
  for (const [index, value] of values.entries()) {
    if (value === undefined) continue;
    if (seen.has(value)) return index;
    seen.add(value);
  }
  return undefined;
}

interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

const MAX_REPORTED_FAULTS = 3;

const NOUNS: Readonly<Record<string, string>> = { array: 'a list', boolean: 'true or false', object: 'an entry' };

/** The message of an issue in terms of the file; undefined where the schema has its own message. */
function plainMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'unrecognized_keys') {
    // A key that is not a plain word may be a misplaced password or hash.
    const names = issue.keys.map((key) => (key.length <= 32 && /^[A-Za-z_]+$/.test(key) ? key : '…'));
    return `has a field that is not known: ${names.slice(0, MAX_REPORTED_FAULTS).join(', ')}`;
  }
  if (issue.code === 'invalid_type') {
    return issue.input === undefined ? 'is missing' : `is not ${NOUNS[issue.expected] ?? 'text'}`;
  }
  if (issue.code === 'too_small') return 'is empty';
  return issue.code === 'too_big' ? `is longer than ${issue.maximum}` : undefined;
}

/**
 * Room for one to two thousand users, by the length of their entries: a text exceeds this size before it has as many
 * entries as the schema allows. No text of this size is slow to parse if {@link OUT_OF_SHAPE} did not match.
 */
const MAX_BYTES = 256 * 1024;
const MAX_FLOW_DEPTH = 10;

/** Constructs that no list of users needs, and that take the parser disproportionate time. */
const OUT_OF_SHAPE = [
  // Directives; more than one document; nested or repeated blocks, commas, anchors and tags.
  /^%/m,
  /^---[\s\S]*^---/m,
  /(?:[-?:][ \t]+){6}/,
  /(?:,\s*){20}/,
  /(?:^|\s)[&*!]\S*\s+[&*!]/,
];

/** @throws UsersFileError for a text that is no YAML, or too costly to be read: nothing of it counts */
function parseYaml(source: string): Document.Parsed {
  if (Buffer.byteLength(source) > MAX_BYTES) throw new UsersFileError(`users: is larger than ${MAX_BYTES} bytes`);
  if (nestsDeeply(source) || OUT_OF_SHAPE.some((pattern) => pattern.test(source))) {
    throw new UsersFileError('users: is no plain list of users');
  }
  // The library compares each key with each other key; `keyFault` does it in linear time. At `silent` it would pass over
  // a second document.
  const document = parseDocument(source, { uniqueKeys: false, prettyErrors: false, logLevel: 'error' });
  // The parser quotes the line it stumbled over, and that line may hold a hash.
  if (document.errors.length > 0) throw new UsersFileError('users: is not YAML');
  return document;
}

/** Undefined for a document that has no plain value. */
function plainValueOf(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    return undefined;
  }
}

/** Brackets within quotes are counted too: no name opens so many without closing them. */
function nestsDeeply(source: string): boolean {
  let depth = 0;
  for (const [bracket] of source.matchAll(/[[\]{}]/g)) {
    depth = Math.max(0, depth + (bracket === '[' || bracket === '{' ? 1 : -1));
    if (depth > MAX_FLOW_DEPTH) return true;
  }
  return false;
}

/**
 * The first entry with a key that is no plain word or comes twice. To be asked before anything turns a key into text:
 * for a collection the library needs time that is exponential in its depth.
 */
function keyFault(document: Document): Fault | undefined {
  let fault: Fault | undefined;
  visit(document, {
    Map(_, map, ancestors) {
      const names = map.items.map(({ key }) => (isScalar(key) ? String(key.value) : undefined));
      const isPlain = !names.includes(undefined);
      if (isPlain && new Set(names).size === names.length) return undefined;
      // The ancestors are the document, its list, the entry, and what lies between that and the map.
      const entry = ancestors[2] ?? map;
      const path = isSeq(document.contents) ? [document.contents.items.indexOf(entry)] : [];
      fault = { path, message: isPlain ? 'has a key twice in one entry' : 'has a key that is no plain word' };
      return visit.BREAK;
    },
  });
  return fault;
}

/** What counts of a file with a fault, by the entries that can be read: each is read by itself, and as little as possible. */
function denialsOf({ contents }: Document): Denials {
  if (!isSeq(contents)) return {};
  const disabled = new Set<string>();
  const revoked = new Map<string, number>();
  const named = new Set<string>();
  let areAllNamed = true;
  for (const entry of contents.items) {
    const names = valuesOf(entry, 'username');
    const [name] = names.length === 1 ? names : [];
    const { data: username } = localUser.shape.username.safeParse(typeof name === 'string' ? name.trim() : name);
    if (username === undefined) {
      areAllNamed = false;
      continue;
    }
    named.add(username);
    if (valuesOf(entry, 'disabled').some(isDenial)) disabled.add(username);
    for (const time of valuesOf(entry, 'revokeTokensBefore').map(revocationTime)) {
      revoked.set(username, Math.max(time, revoked.get(username) ?? 0));
    }
  }
  return { disabled, revoked, named: areAllNamed ? named : undefined };
}

/** Whether a value of `disabled` denies: every one does that says no `false` in some spelling, an alias too. */
function isDenial(value: unknown): boolean {
  return value !== false && !['false', 'no', 'off'].includes(String(value).toLowerCase());
}

/** A time that cannot be read revokes all: the person holds nothing until the entry is mended. */
function revocationTime(value: unknown): number {
  return localUser.shape.revokeTokensBefore.safeParse(value).data ?? Number.POSITIVE_INFINITY;
}

/** The values of a key in an entry, which may repeat it. */
function valuesOf(entry: unknown, name: string): readonly unknown[] {
  if (!isMap(entry)) return [];
  const pairs = entry.items.filter(({ key }) => isScalar(key) && key.value === name);
  return pairs.map(({ value }) => (isScalar(value) ? value.value : undefined));
}

function place(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
}
