// The accent colours of the operators: their contrast with the other colours of pages, and the style sheet that has them.

import { type PageAsset, pageAsset, STYLESHEET } from './page-assets.ts';

/** An accent colour for each colour scheme of browsers, as `#rrggbb`. No colour has the contrast in both. */
export interface Accent {
  readonly light: string;
  readonly dark: string;
}

/** For text (WCAG 2.2 §1.4.3, level AA); focus rings and other graphics need less (§1.4.11). */
const NEEDED_CONTRAST = 4.5;

/** What the accent stands on or below, by the name of its colour in the style sheet. */
const NEIGHBOURS = {
  ground: 'the page',
  card: 'the card',
  soft: 'shaded parts of the card',
  'on-accent': 'the text of buttons',
};

const [LIGHT_STYLE = '', DARK_STYLE = ''] = String(STYLESHEET.content).split('@media (prefers-color-scheme: dark)');
const SCHEMES = {
  light: { style: LIGHT_STYLE, better: 'darker', hoverTowards: 0 },
  dark: { style: DARK_STYLE, better: 'lighter', hoverTowards: 255 },
};

/** Why links, buttons and focus rings cannot have the colour in that scheme, as the end of a sentence about it; undefined when they can. */
export function accentFault(color: string, scheme: keyof Accent): string | undefined {
  const { style, better } = SCHEMES[scheme];
  const ratios = Object.entries(NEIGHBOURS).map(([name, what]) => {
    const [, neighbour = ''] = new RegExp(`--${name}: (#\\w{6});`).exec(style) ?? [];
    return { what: `${what} (${neighbour})`, ratio: contrast(color, neighbour) };
  });
  const { what, ratio } = ratios.reduce((least, next) => (next.ratio < least.ratio ? next : least));
  if (ratio >= NEEDED_CONTRAST) return undefined;
  return `has a contrast of ${Math.floor(ratio * 100) / 100}:1 with ${what} in the ${scheme} scheme, and needs ${NEEDED_CONTRAST}:1: choose a ${better} colour`;
}

/** The style sheet with these colours. */
export function accentedStylesheet({ light, dark }: Accent): PageAsset {
  const content = `${STYLESHEET.content}
/* The colours of the operators */

${rule(light, 'light')}
@media (prefers-color-scheme: dark) {
${rule(dark, 'dark')}}
`;
  return pageAsset('style.css', STYLESHEET.contentType, content);
}

function rule(color: string, scheme: keyof Accent): string {
  const { hoverTowards } = SCHEMES[scheme];
  const hover = channels(color).map((channel) => Math.round(channel + (hoverTowards - channel) * 0.22));
  return `:root {
  --accent: ${color};
  --accent-hover: rgb(${hover.join(' ')});
}
`;
}

/** The contrast ratio of two colours `#rrggbb`, from 1 to 21 (WCAG 2.2, "contrast ratio"). */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** The relative luminance (WCAG 2.2, "relative luminance"). */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = channels(color).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function channels(color: string): readonly number[] {
  return [1, 3, 5].map((start) => Number.parseInt(color.slice(start, start + 2), 16));
}
