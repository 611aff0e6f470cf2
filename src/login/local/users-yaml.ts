// Parses a `users.yaml`. Separate from local-users.ts, so that a process without such a file loads no YAML parser.

import { z } from 'zod';
import { denialsOf } from './denials.ts';
import { UsersFileError } from './local-users.ts';
import { type Fault, keyFault, parseYaml, plainValueOf } from './plain-yaml.ts';
import { isUser, schemaOf, type UserEntry } from './user-entry.ts';

/** So many entries are read of one text. */
const MAX_ENTRIES = 10_000;

/**
 * The entries of a list: local users, and blocks, each at its place in the text.
 * @param source the text of the file, or the value that it stands for
 * @throws UsersFileError with the valid part of the file
 */
export function parseUsers(source: unknown): readonly UserEntry[] {
  const document = parseYaml(typeof source === 'string' ? source : (JSON.stringify(source) ?? ''));
  const refuse = (faults: readonly Fault[]) => {
    const message = faults.map((fault) => `users${place(fault.path)}: ${fault.message}`).join('; ');
    return new UsersFileError(message, { path: faults[0]?.path, denials: denialsOf(document) });
  };
  const fault = keyFault(document);
  if (fault !== undefined) throw refuse([fault]);
  const value = plainValueOf(document);
  if (value === undefined) throw refuse([{ path: [], message: 'has an alias or a value that is no plain text' }]);
  const list = z
    .array(z.unknown())
    .max(MAX_ENTRIES)
    .safeParse(value ?? [], { error: plainMessage });
  if (!list.success) throw refuse(list.error.issues);
  const entries = list.data.map((entry, index) => {
    const parsed = schemaOf(fieldsOf(entry)).safeParse(entry, { error: plainMessage });
    if (parsed.success) return parsed.data;
    // A misspelt field is also missing under its right name: both faults are reported together.
    const issues = parsed.error.issues.slice(0, MAX_REPORTED_FAULTS);
    throw refuse(issues.map(({ path, message }) => ({ path: [index, ...path], message })));
  });
  for (const field of ['username', 'id'] as const) {
    const twice = firstRepeated(entries.map((entry) => (isUser(entry) ? entry[field] : undefined)));
    if (twice !== undefined) throw refuse([{ path: [twice, field], message: 'is named twice' }]);
  }
  return entries;
}

function fieldsOf(entry: unknown): readonly string[] {
  return typeof entry === 'object' && entry !== null ? Object.keys(entry) : [];
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

function place(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
}
