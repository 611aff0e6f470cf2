// The line of each field of a document, as plain data: a document may be parsed in another thread than it is used in.

import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type LineCounter, type Node } from 'yaml';
import { type FieldPath, formatPath } from '../admission/kinds/field-path.ts';
import type { Place } from './place.ts';

/** The line of a node with the outlines of its children; only the line where there are none. */
export type Outline = number | { readonly line: number; readonly below: ReadonlyMap<string, Outline> };

/** The position of a document in its file, and the lines of its fields. */
export interface OutlinedDocument {
  readonly file: string;
  /** Counted from 1. */
  readonly number: number;
  /** Undefined for an empty document. */
  readonly outline: Outline | undefined;
}

/** The line that a document begins at; undefined for an empty document. */
export function lineOf({ contents }: Document, lines: LineCounter): number | undefined {
  return isNode(contents) ? lines.linePos(contents.range?.[0] ?? 0).line : undefined;
}

/** The lines of a document; the line of a field is that of its key. No key of the document may be a collection. */
export function outlineOf(document: Document, lines: LineCounter): Outline | undefined {
  const { contents } = document;
  return isNode(contents) ? outline(contents, contents, lines) : undefined;
}

function outline(node: unknown, label: unknown, lines: LineCounter): Outline {
  const offset = isNode(label) ? (label.range?.[0] ?? 0) : 0;
  const { line } = lines.linePos(offset);
  const below = new Map<string, Outline>();
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      const name = String(key);
      if (!below.has(name)) below.set(name, outline(value, key, lines));
    }
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) below.set(String(index), outline(item, item, lines));
  }
  return below.size === 0 ? line : { line, below };
}

/** The place of a field; for one that is not in the document, that of its nearest ancestor. */
export function placeIn({ file, number, outline: root }: OutlinedDocument, path: FieldPath): Place {
  const field = path.length === 0 ? undefined : formatPath(path);
  let nearest = root;
  for (const step of path) {
    const next = typeof nearest === 'object' ? nearest.below.get(String(step)) : undefined;
    if (next === undefined) break;
    nearest = next;
  }
  return { file, document: number, line: typeof nearest === 'object' ? nearest.line : nearest, field };
}

/**
 * The number of values in a document after its aliases are expanded, counted up to `limit`.
 * Aliases must not be cyclic.
 */
export function expandedSize(document: Document, limit: number): number {
  const sizes = new Map<Node, number>();
  const sizeOf = (node: unknown): number => {
    if (isAlias(node)) {
      const target = node.resolve(document);
      return target === undefined ? 1 : (sizes.get(target) ?? sizeOf(target));
    }
    if (!isNode(node) || isScalar(node)) return 1;
    let size = 1;
    if (isMap(node)) for (const { value } of node.items) size += sizeOf(value);
    else if (isSeq(node)) for (const item of node.items) size += sizeOf(item);
    sizes.set(node, size);
    return Math.min(size, limit + 1);
  };
  return sizeOf(document.contents);
}
