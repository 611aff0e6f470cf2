// The language of a page: of those that the browser accepts the first that has a catalogue (RFC 9110 §12.5.4), and by the same
// language the texts that owners of resources wrote.

import Negotiator from 'negotiator';
import type { Text } from '../../oauth/registry/resource.ts';
import { ENGLISH } from './english.ts';
import { GERMAN } from './german.ts';
import type { Texts } from './texts.ts';

/** The language of one page. */
export interface PageLanguage {
  /** As the browser names it, for example `de-AT`; texts of owners are looked up by it. */
  readonly tag: string;
  readonly texts: Texts;
}

const CATALOGUES: ReadonlyMap<string, Texts> = new Map([ENGLISH, GERMAN].map((texts) => [texts.language, texts]));
const DEFAULT: PageLanguage = { tag: ENGLISH.language, texts: ENGLISH };

/** The language for a browser; English where it accepts none that there is. */
export function pageLanguage(headers: { readonly 'accept-language'?: string | undefined }): PageLanguage {
  for (const tag of new Negotiator({ headers: { ...headers } }).languages()) {
    if (tag === '*') return DEFAULT;
    const texts = CATALOGUES.get(baseOf(tag));
    if (texts !== undefined) return { tag, texts };
  }
  return DEFAULT;
}

function baseOf(tag: string): string {
  return tag.replace(/-.*/, '').toLowerCase();
}

/** A text in the language of a page: the translation for the whole tag, else for its language, else the text itself. */
export function textIn({ tag }: PageLanguage, { text, translations }: Text): string | undefined {
  const byTag = new Map(Object.entries(translations).map(([key, translated]) => [key.toLowerCase(), translated]));
  return byTag.get(tag.toLowerCase()) ?? byTag.get(baseOf(tag)) ?? text;
}
