// Text from a manifest or a file name, on its way to a terminal or a CI log.

/** Everything that moves a cursor, begins a line, colours, or turns text around. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The text on one line, with each such character written as an escape: `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
