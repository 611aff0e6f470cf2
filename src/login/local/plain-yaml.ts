// Reads YAML that is a plain list: what no list of users needs is refused before it costs time.

import { type Document, isScalar, isSeq, parseDocument, visit } from 'yaml';
import { UsersFileError } from './local-users.ts';

/** Where a text is wrong, and how. */
export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
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

/**
 * The document of a text that holds no costly construct.
 * @throws UsersFileError for a text that is no YAML, or too costly to be read: nothing of it applies
 */
export function parseYaml(source: string): Document.Parsed {
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
export function plainValueOf(document: Document): unknown {
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
export function keyFault(document: Document): Fault | undefined {
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
