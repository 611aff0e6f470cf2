// Isolates a name from outside inside a sentence of the page, so that a name in a right-to-left script, or with
// direction marks, cannot rearrange the words around it (Unicode Standard Annex 9).

import { type Html, html } from './html.ts';

/** The sentence with each name as `<bdi>`. */
export function isolated<Names extends readonly string[]>(
  sentence: (...names: Names) => string,
  ...names: Names
): Html {
  // No sentence holds a NUL: between two of them is the number of a name.
  const marks = names.map((_, index) => `\0${index}\0`) as unknown as Names;
  const parts = sentence(...marks).split('\0');
  return html`${parts.map((part, index) => (index % 2 === 0 ? part : html`<bdi>${names[Number(part)]}</bdi>`))}`;
}
