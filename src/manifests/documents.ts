// Parses the bytes of one file into its YAML or JSON documents, each with the line of every field. Scalars have the
// meaning that kubectl gives them (YAML 1.1 without dates and base 60). objects.ts selects the kinds.

import { type Document, isCollection, isMap, isNode, LineCounter, parseAllDocuments, visit, YAMLError } from 'yaml';
import { expandedSize, lineOf, type OutlinedDocument, outlineOf } from './outline.ts';
import type { ManifestFault, Place } from './place.ts';
import { NUMBER_TAGS } from './plain-scalar.ts';

/** Aliases that one document may expand to; more are refused as an attack on memory. */
const MAX_ALIASES = 100;
/** Deeper than any Kubernetes object; counts the nodes of the document tree, two for each level of nesting. */
const MAX_DEPTH = 200;
const MAX_DOCUMENTS = 10_000;
/** Values in one file, each counted as often as aliases and merges repeat it: later steps traverse all of them. */
const MAX_VALUES = 100_000;

/**
 * One document that was parsed without a fault. Plain data, as everything in a parsed file: it passes between threads.
 */
export interface ManifestDocument extends OutlinedDocument {
  readonly value: unknown;
}

export interface ParsedFile {
  readonly documents: readonly ManifestDocument[];
  readonly faults: readonly ManifestFault[];
}

/** Reads every document of a file. Never throws, for any bytes. */
export function parseFile(file: string, bytes: Uint8Array): ParsedFile {
  const whole: Place = { file, document: undefined, line: undefined, field: undefined };
  let text: string;
  try {
    // A byte order mark is dropped by the decoder.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { documents: [], faults: [{ place: whole, reason: 'InvalidEncoding', message: 'The file is not UTF-8.' }] };
  }
  // The library makes an error for each wrong character; without stack traces that takes a fifth of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return readDocuments(file, text);
  } catch (error) {
    return { documents: [], faults: [{ place: whole, reason: 'InvalidYaml', message: oneLine(error) }] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function readDocuments(file: string, text: string): ParsedFile {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    // The library compares each key with each other key; `unusablePart` does it in linear time.
    uniqueKeys: false,
    logLevel: 'silent',
    ...(file.endsWith('.json') ? { schema: 'json' } : kubectlYaml),
  });
  const documents: ManifestDocument[] = [];
  const faults: ManifestFault[] = [];
  let values = 0;
  for (const [index, document] of parsed.entries()) {
    const number = index + 1;
    if (number > MAX_DOCUMENTS) {
      const place = { file, document: number, line: undefined, field: undefined };
      faults.push({ place, reason: 'TooLarge', message: `The file has more than ${MAX_DOCUMENTS} documents.` });
      break;
    }
    const place = { file, document: number, line: lineOf(document, lines), field: undefined };
    const error = document.errors[0];
    if (error !== undefined) {
      const { line } = lines.linePos(error.pos[0]);
      faults.push({ place: { ...place, line }, reason: 'InvalidYaml', message: oneLine(error) });
      continue;
    }
    const unusable = unusablePart(document);
    if (unusable !== undefined) {
      const { line } = lines.linePos(unusable.offset);
      faults.push({ place: { ...place, line }, reason: 'InvalidYaml', message: unusable.message });
      continue;
    }
    values += expandedSize(document, MAX_VALUES);
    if (values > MAX_VALUES) {
      faults.push({ place, reason: 'TooLarge', message: `The file holds more than ${MAX_VALUES} values.` });
      break;
    }
    try {
      const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
      documents.push({ file, number, value, outline: outlineOf(document, lines) });
    } catch (cause) {
      faults.push({ place, reason: 'InvalidYaml', message: oneLine(cause) });
    }
  }
  return { documents, faults };
}

// Plain scalars as sigs.k8s.io/yaml resolves them, which kubectl and the API server use: `yes` and `on` are booleans,
// `<<` merges, but dates stay text; which are numbers is in plain-scalar.ts.
const kubectlYaml = {
  version: '1.1',
  schema: 'yaml-1.1',
  customTags: (tags: readonly unknown[]) =>
    [...tags.filter((tag) => !DROPPED_TAGS.has((tag as { tag?: string }).tag ?? '')), ...NUMBER_TAGS] as never,
} as const;
const DROPPED_TAGS = new Set(
  ['int', 'float', 'timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`),
);

const COLLECTION_AS_KEY = 'A key must be a plain word.';

/**
 * The first YAML construct that no Kubernetes object can hold, or that JavaScript would misread or never finish
 * reading. Of a document without such a construct every key is a scalar, or an alias of one.
 */
function unusablePart(document: Document): { offset: number; message: string } | undefined {
  let aliases = 0;
  let found: { offset: number; message: string } | undefined;
  const refuse = (node: unknown, message: string) => {
    found = { offset: isNode(node) ? (node.range?.[0] ?? 0) : 0, message };
    return visit.BREAK;
  };
  visit(document, {
    Collection(_, collection, ancestors) {
      if (ancestors.length > MAX_DEPTH) return refuse(collection, 'The document nests too deeply.');
      if (!isMap(collection)) return undefined;
      // First of all: the library turns a collection into text in time that is exponential in its depth.
      const unnamed = collection.items.find(({ key }) => isCollection(key));
      if (unnamed !== undefined) return refuse(unnamed.key, COLLECTION_AS_KEY);
      const prototype = collection.items.find(({ key }) => String(key) === '__proto__');
      if (prototype !== undefined) return refuse(prototype.key, 'A key must not be named __proto__.');
      const repeated = repeatedKey(collection.items);
      return repeated === undefined ? undefined : refuse(repeated, 'The key stands there more than once.');
    },
    Scalar(_, scalar) {
      const finite = typeof scalar.value !== 'number' || Number.isFinite(scalar.value);
      return finite ? undefined : refuse(scalar, 'The number is not finite or too large.');
    },
    Alias(position, alias, ancestors) {
      if (++aliases > MAX_ALIASES) return refuse(alias, 'The document has too many aliases.');
      const target = alias.resolve(document);
      if (target !== undefined && ancestors.includes(target)) {
        return refuse(alias, 'An alias stands inside what it stands for.');
      }
      return position === 'key' && isCollection(target) ? refuse(alias, COLLECTION_AS_KEY) : undefined;
    },
  });
  return found;
}

function repeatedKey(items: readonly { readonly key: unknown }[]): unknown {
  const seen = new Set<string>();
  return items.find(({ key }) => {
    const name = String(key);
    // `<<` may come twice: each merges another map.
    const repeated = seen.has(name) && name !== '<<';
    seen.add(name);
    return repeated;
  })?.key;
}

/** Errors whose text quotes the document, which may be a Secret. */
const QUOTING = new Set(['TAG_RESOLVE_FAILED', 'UNEXPECTED_TOKEN', 'BAD_DIRECTIVE', 'BAD_ALIAS', 'BAD_DQ_ESCAPE']);

function oneLine(error: unknown): string {
  if (error instanceof YAMLError && QUOTING.has(error.code)) return 'The text does not follow the syntax here.';
  if (error instanceof RangeError) return 'The document nests too deeply.';
  if (error instanceof ReferenceError) return 'The aliases of the document stand for too much.';
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? '').slice(0, 300);
}
