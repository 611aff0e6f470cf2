// On which line each field of a document stands, as plain data: a document is parsed in one thread and used in another.

import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type LineCounter, type Node } from 'yaml';
import { type FieldPath, formatPath } from '../admission/kinds/field-path.ts';
import type { Place } from './place.ts';

/** A line, and what is below it; a bare number where nothing is. */
export type Outline = number | { readonly line: number; readonly below: ReadonlyMap<string, Outline> };

/** Where a document stands and what is on which of its lines. */
export interface OutlinedDocument {
  readonly file: string;
  /** Counted from 1. */
  readonly number: number;
  /** Undefined for a document of nothing. */
  readonly outline: Outline | undefined;
}

/** The lines of a document; those of a field are the lines of its key, for which a person looks. */
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

/** The place of a field, or of the nearest thing around it that is written down. */
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
 * How many values a document holds once its aliases stand for what they name; counted up to `limit` and not beyond.
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
