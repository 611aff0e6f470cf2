// The globs of a ClientPolicy: `*` stays inside one segment, `**` crosses segments, `${namespace}` is the client's own.
// Everything else stands for itself. There is no escape: no value a policy speaks of may hold a `*`.

/** What ends a segment: a `*` never matches one of these characters. */
export const SEGMENT_ENDS = {
  /** DNS names, and origins, which hold one. */
  host: './:',
  /** Scopes, audiences, schemes, grant types, methods. */
  path: '/:',
} as const;

/** What stands for the client's namespace in a glob. */
export const NAMESPACE_VARIABLE = `\${namespace}`;

/** The pattern with `${namespace}` filled in; a namespace is a DNS label and so holds nothing that a glob reads. */
export function expandNamespace(pattern: string, namespace: string): string {
  return pattern.replaceAll(NAMESPACE_VARIABLE, () => namespace);
}

/**
 * Whether the whole value matches. `*` is any number of characters without a segment's end, `**` any number of any.
 * Takes time in proportion to the product of both lengths, whatever the pattern.
 * @param segmentEnds characters that `*` does not match
 */
export function globMatches(pattern: string, value: string, segmentEnds: string): boolean {
  const first = pattern.indexOf('*');
  if (first < 0) return pattern === value;
  const last = pattern.lastIndexOf('*');
  const tail = pattern.length - last - 1;
  const isFramed = value.length >= first + tail && value.startsWith(pattern.slice(0, first));
  if (!isFramed || !value.endsWith(pattern.slice(last + 1))) return false;
  // Most patterns have one star, or two together: what they stand for is what is left.
  if (last === first + 1) return true;
  if (last === first) return !hasAny(value, segmentEnds, first, value.length - tail);
  const tokens = pattern.match(/\*+|[^*]/g) ?? [];
  // The set of tokens that may come next, as flags: no backtracking, so no pattern is slow.
  let next = reach(tokens, new Set([0]));
  for (const character of value.match(/[\s\S]/g) ?? []) {
    const after = new Set<number>();
    for (const index of next) {
      const token = tokens[index];
      if (token === undefined) continue;
      if (!token.startsWith('*')) {
        if (token === character) after.add(index + 1);
      } else if (token.length > 1 || !segmentEnds.includes(character)) {
        after.add(index);
      }
    }
    next = reach(tokens, after);
    if (next.size === 0) return false;
  }
  return next.has(tokens.length);
}

/** Whether one of the characters is between two places of a value. */
function hasAny(value: string, characters: string, from: number, to: number): boolean {
  for (let index = from; index < to; index++) {
    if (characters.includes(value.charAt(index))) return true;
  }
  return false;
}

/** The same set, with everything that comes after a star that matches nothing. */
function reach(tokens: readonly string[], from: ReadonlySet<number>): Set<number> {
  const all = new Set<number>();
  for (const start of from) {
    for (let index = start; !all.has(index); index++) {
      all.add(index);
      if (!tokens[index]?.startsWith('*')) break;
    }
  }
  return all;
}
