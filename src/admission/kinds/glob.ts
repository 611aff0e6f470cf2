// The globs of a ClientPolicy: `*` matches inside one segment, `**` across segments, `${namespace}` is the namespace of
// the client. All else matches literally. There is no escape: no value that a policy governs may contain a `*`.

/** The characters that end a segment: a `*` never matches one. */
export const SEGMENT_ENDS = {
  /** DNS names, and origins, which contain one. */
  host: './:',
  /** Scopes, audiences, schemes, grant types, methods. */
  path: '/:',
  /** Names of groups: `*` matches any characters, as `**` does. */
  none: '',
} as const;

/** The variable for the client's namespace in a glob. */
export const NAMESPACE_VARIABLE = `\${namespace}`;

/** The pattern with `${namespace}` substituted; a namespace is a DNS label, which contains no special character. */
export function expandNamespace(pattern: string, namespace: string): string {
  return pattern.replaceAll(NAMESPACE_VARIABLE, () => namespace);
}

/**
 * Whether the whole value matches. `*` matches any number of characters within a segment, `**` any number of any.
 * The time is at most proportional to the product of both lengths, for every pattern.
 * @param segmentEnds characters that `*` does not match
 */
export function globMatches(pattern: string, value: string, segmentEnds: string): boolean {
  const first = pattern.indexOf('*');
  if (first < 0) return pattern === value;
  const last = pattern.lastIndexOf('*');
  const tail = pattern.length - last - 1;
  const isFramed = value.length >= first + tail && value.startsWith(pattern.slice(0, first));
  if (!isFramed || !value.endsWith(pattern.slice(last + 1))) return false;
  // Most patterns have one star, or two together, which must match all that is left between prefix and suffix.
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

/** Whether one of the characters occurs between two indexes of a value. */
function hasAny(value: string, characters: string, from: number, to: number): boolean {
  for (let index = from; index < to; index++) {
    if (characters.includes(value.charAt(index))) return true;
  }
  return false;
}

/** The same set and every token that follows a star in it, which may match nothing. */
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
