// The language of a page: of those that the client asks for and the browser accepts the first that has a catalogue (OpenID
// Connect Core §3.1.2.1, RFC 9110 §12.5.4), and by the same language the texts that owners of resources wrote.

import Negotiator from 'negotiator';
import type { Text } from '../../oauth/registry/resource.ts';
import { ENGLISH } from './english.ts';
import { GERMAN } from './german.ts';
import { SIMPLIFIED_CHINESE } from './simplified-chinese.ts';
import type { Texts } from './texts.ts';

/** The language of one page. */
export interface PageLanguage {
  /** As the client or the browser names it, for example `de-AT`; texts of owners are looked up by it. */
  readonly tag: string;
  readonly texts: Texts;
}

/** By the language without script and region. */
const CATALOGUES: ReadonlyMap<string, { readonly texts: Texts; readonly script: string | undefined }> = new Map(
  [ENGLISH, GERMAN, SIMPLIFIED_CHINESE].map((texts) => [
    baseOf(texts.language),
    { texts, script: scriptOf(texts.language) },
  ]),
);
/** The most characters of the header that are read: browsers send a tenth of it, and reading costs more than all the page. */
const LONGEST_HEADER = 1000;
/** More than any tag has characters. */
const SAME_SCRIPT = 1000;
const DEFAULT: PageLanguage = { tag: ENGLISH.language, texts: ENGLISH };

/**
 * The language for a browser; English where there is none that it accepts, or it names more than any browser does. A
 * language in another script, such as `zh-TW` for a catalogue in `zh-Hans`, applies only where nothing else fits.
 * @param uiLocales the tags that the client asks for; they come before those of the browser
 */
export function pageLanguage(
  headers: { readonly 'accept-language'?: string | undefined },
  uiLocales: readonly string[] = [],
): PageLanguage {
  let inOtherScript: PageLanguage | undefined;
  for (const tag of [...uiLocales, ...acceptedTags(headers)]) {
    if (tag === '*') break;
    const catalogue = CATALOGUES.get(baseOf(tag));
    if (catalogue === undefined) continue;
    const { texts, script } = catalogue;
    // Browsers send `zh-TW, zh`: the tag without a script means the one before it.
    const meansOther = !tag.includes('-') && inOtherScript?.texts === texts;
    if (!meansOther && (scriptOf(tag) ?? script) === script) return { tag, texts };
    inOtherScript ??= { tag, texts };
  }
  return inOtherScript ?? DEFAULT;
}

function acceptedTags(headers: { readonly 'accept-language'?: string | undefined }): readonly string[] {
  if ((headers['accept-language']?.length ?? 0) > LONGEST_HEADER) return [];
  return new Negotiator({ headers: { ...headers } }).languages();
}

function baseOf(tag: string): string {
  return tag.replace(/-.*/, '').toLowerCase();
}

/** The script that a language is written in, also where the tag only implies it; undefined for what is no tag. */
function scriptOf(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).maximize().script;
  } catch {
    return undefined;
  }
}

/**
 * A text in the language of a page: the translation whose tag is the nearest, else the text itself. One in the same script is
 * nearer than any other; then the one whose tag has more of the page's (RFC 4647 §3.4).
 */
export function textIn({ tag }: PageLanguage, { text, translations }: Text): string | undefined {
  const own = Object.entries(translations).filter(([key]) => baseOf(key) === baseOf(tag));
  if (own.length === 0) return text;
  const script = scriptOf(tag);
  const nearness = (key: string) =>
    (scriptOf(key) === script ? SAME_SCRIPT : 0) + (isAtOrAbove(key.toLowerCase(), tag.toLowerCase()) ? key.length : 0);
  const ranked = own.map(([key, translated]) => ({ translated, nearness: nearness(key) }));
  return ranked.reduce((best, next) => (next.nearness > best.nearness ? next : best)).translated;
}

/** Whether one tag is the other, or its beginning. */
function isAtOrAbove(broad: string, tag: string): boolean {
  return `${tag}-`.startsWith(`${broad}-`);
}
