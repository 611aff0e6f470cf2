// Prints text of a tenant: in status, Events, logs and reports it is printable ASCII of a limited length, so that no
// character of it is invisible, turns the direction of a line or ends one.

/** The most characters of one text, and what ends a text that is cut. */
const LONGEST = 120;
const CUT = '...';

/**
 * The text with printable ASCII as it is and every other character as `\u{…}`; a longer text ends with `...`.
 * @param longest the most characters of the result
 */
export function printed(text: string, longest = LONGEST): string {
  return bounded(text, longest, escaped);
}

/** The text as `printed`, in quotes: a quote and a backslash of the text are escaped by a backslash. */
export function quoted(text: string): string {
  return `"${bounded(text, LONGEST, (character) => (/["\\]/.test(character) ? `\\${character}` : escaped(character)))}"`;
}

function bounded(text: string, longest: number, print: (character: string) => string): string {
  let whole = '';
  let kept = '';
  // By code points; half of a surrogate pair is one as well.
  for (const character of text) {
    whole += print(character);
    if (whole.length > longest) return kept + CUT;
    if (whole.length <= longest - CUT.length) kept = whole;
  }
  return whole;
}

function escaped(character: string): string {
  return /^[\x20-\x7e]$/.test(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
