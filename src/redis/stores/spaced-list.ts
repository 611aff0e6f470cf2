// Lists stored as one string, joined by spaces, which neither scopes (RFC 6749 §3.3) nor resources can contain.

/** @throws TypeError for an element that is empty or contains a space */
export function joined(list: readonly string[]): string {
  if (list.some((each) => each === '' || each.includes(' '))) throw new TypeError('a scope or resource with a space');
  return list.join(' ');
}

/** The inverse of {@link joined}. */
export function split(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ');
}
