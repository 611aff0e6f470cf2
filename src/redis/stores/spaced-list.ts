// Lists as one text, joined by spaces, which neither scopes (RFC 6749 §3.3) nor resources can hold.

/** @throws TypeError for an element that is empty or holds a space */
export function joined(list: readonly string[]): string {
  if (list.some((each) => each === '' || each.includes(' '))) throw new TypeError('a scope or resource with a space');
  return list.join(' ');
}

/** What {@link joined} made one text of. */
export function split(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ');
}
