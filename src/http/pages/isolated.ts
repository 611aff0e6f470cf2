// Names that somebody else chose, inside a sentence of ours: isolated, so that one in a right-to-left script, or one that tries
// to, cannot rearrange the words around it (Unicode Standard Annex 9).

import { type Html, html } from './html.ts';

/** The sentence with the name as `<bdi>`. */
export function isolated(sentence: (name: string) => string, name: string): Html {
  // No sentence and no name holds a NUL.
  const [before, after] = sentence('\0').split('\0');
  return html`${before}<bdi>${name}</bdi>${after}`;
}
