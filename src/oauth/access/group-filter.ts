// Which groups of a person are disclosed to a client: those that its globs match. admission/ validates the globs by the policy of
// the client.

/** The literal parts of a glob, between its stars. */
type Pieces = readonly [string, ...string[]];

/** The globs of a client are one list for all of its tokens. */
const READ = new WeakMap<readonly string[], readonly Pieces[]>();

/**
 * The groups that one of the globs matches, in their order. `*` matches any characters, all else matches literally: there
 * are no segments in the names of groups. The time is linear in the length of each name, but for the search of a literal.
 */
export function matchingGroups(groups: readonly string[], globs: readonly string[]): readonly string[] {
  const read = READ.get(globs) ?? globs.map((glob) => glob.split('*') as string[] as [string, ...string[]]);
  READ.set(globs, read);
  return groups.filter((group) => read.some((pieces) => matches(pieces, group)));
}

function matches([prefix, ...rest]: Pieces, text: string): boolean {
  const suffix = rest.pop();
  if (suffix === undefined) return text === prefix;
  if (!text.startsWith(prefix)) return false;
  let from = prefix.length;
  // The earliest place of each literal leaves the most for the others.
  for (const piece of rest) {
    const at = text.indexOf(piece, from);
    if (at < 0) return false;
    from = at + piece.length;
  }
  return text.length >= from + suffix.length && text.endsWith(suffix);
}
