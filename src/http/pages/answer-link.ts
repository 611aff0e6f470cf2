// The link to an address of a client that a person follows by hand: no administrator has permitted its host.

import { destinationName } from './destination.ts';
import { type Html, html } from './html.ts';
import type { Texts } from './texts.ts';

/** The link, which says where it leads. @param answer a registered address, with the parameters of the answer */
export function answerLink(texts: Texts, answer: string): Html {
  const text = texts.error.goTo(destinationName(texts.destination, answer));
  return html`<p><a href="${answer}" rel="noreferrer">${text}</a></p>`;
}
