// The layout of every page: head, wordmark, one card, footer. No script, nothing from another origin.

import { OWN_BRAND } from './brand.ts';
import { type Html, html } from './html.ts';
import { ICON } from './page-assets.ts';
import type { PageFrame } from './page-frame.ts';

/** One page inside the layout. */
export interface PageContent {
  readonly frame: PageFrame;
  readonly title: string;
  readonly body: Html;
}

/** The whole document, from `<!doctype html>` on. */
export function layout({ frame, title, body }: PageContent): string {
  const { basePath, brand } = frame;
  const { texts } = frame.language;
  const icon = brand.logo ?? ICON;
  return html`<!doctype html>
<html lang="${texts.language}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <title>${title} · ${brand.name}</title>
    <link rel="stylesheet" href="${basePath}${brand.stylesheet.path}">
    <link rel="icon" type="${icon.contentType}" href="${basePath}${icon.path}">
  </head>
  <body>
    <header>${brandMark(frame)}</header>
    <main>${body}
    </main>
    ${brand.hasFooter && html`<footer>${texts.footer}</footer>`}
  </body>
</html>
`.toString();
}

/** The logo, which has the name as its text; without one the name alone. */
function brandMark({ basePath, brand }: PageFrame): Html {
  const { name, logo } = brand;
  if (logo !== undefined) return html`<img class="logo" src="${basePath}${logo.path}" alt="${name}">`;
  return name === OWN_BRAND.name ? wordmark() : html`<span class="wordmark"><bdi>${name}</bdi></span>`;
}

/** A gate with a key's bow in it, and the name. */
function wordmark(): Html {
  return html`<span class="wordmark"><svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <rect class="mark" width="32" height="32" rx="9"></rect>
      <path class="mark-line" d="M9.5 23V14.5a6.5 6.5 0 0 1 13 0V23"></path>
      <circle class="mark-dot" cx="16" cy="16.5" r="2.4"></circle>
      <path class="mark-line" d="M16 18.5V23"></path>
    </svg><span>grantry</span></span>`;
}
