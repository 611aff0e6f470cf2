// Isolates a name from outside inside a sentence of the page, so that a name in a right-to-left script, or with
// direction marks, cannot rearrange the words around it (Unicode Standard Annex 9).

import { type Html, html } from './html.ts';

/** The sentence with the name as `<bdi>`. */
export function isolated(sentence: (name: string) => string, name: string): Html {
  // No sentence and no name holds a NUL.
  const [before, after] = sentence('\0').split('\0');
  return html`${before}<bdi>${name}</bdi>${after}`;
}
