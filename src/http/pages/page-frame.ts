// What every page stands in: the server that it is of, and the language of its reader.

import type { Brand } from './brand.ts';
import { type PageLanguage, pageLanguage } from './page-language.ts';

/** The server that pages are of. */
export interface PageSite {
  /** The path of the issuer, '' or '/…' without a slash at its end. */
  readonly basePath: string;
  readonly brand: Brand;
}

/** What one page stands in. */
export interface PageFrame extends PageSite {
  readonly language: PageLanguage;
}

/** The frame of a page for a browser. @param uiLocales the languages that a client asks for, as for {@link pageLanguage} */
export function pageFrame(
  { basePath, brand }: PageSite,
  headers: Parameters<typeof pageLanguage>[0],
  uiLocales?: readonly string[],
): PageFrame {
  return { basePath, brand, language: pageLanguage(headers, uiLocales) };
}
