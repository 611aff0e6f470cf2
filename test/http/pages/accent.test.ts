// The accent colours of the operators: the contrast that is computed, which colours are refused, and the style sheet with them.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { accentedStylesheet, accentFault, contrast } from '../../../src/http/pages/accent.ts';
import { STYLESHEET } from '../../../src/http/pages/page-assets.ts';

describe('the contrast of two colours', () => {
  it.each([
    ['#000000', '#ffffff', 21],
    ['#ffffff', '#ffffff', 1],
    ['#777777', '#ffffff', 4.48],
    ['#767676', '#ffffff', 4.54],
    ['#ff0000', '#ffffff', 4],
    ['#0000ff', '#ffffff', 8.59],
    ['#00ff00', '#000000', 15.3],
    ['#0A0A0A', '#ffffff', 19.8],
    ['#050505', '#ffffff', 20.38],
  ])('of %s and %s → %d, in either order', (one, other, ratio) => {
    expect(contrast(one, other)).toBeCloseTo(ratio, 2);
    expect(contrast(other, one)).toBe(contrast(one, other));
  });
});

describe('an accent colour', () => {
  it.each([
    ['#0f5f5c', 'light'],
    ['#6e6e6e', 'light'],
    ['#000000', 'light'],
    ['#63c9bd', 'dark'],
    ['#8f8f8f', 'dark'],
    ['#ffffff', 'dark'],
  ] as const)('given %s in the %s scheme → taken', (color, scheme) => {
    expect(accentFault(color, scheme)).toBeUndefined();
  });

  it.each([
    ['#6f6f6f', 'light', '4.47:1 with shaded parts of the card (#edf3f1)', 'darker'],
    ['#ffffff', 'light', '1:1 with the card (#ffffff)', 'darker'],
    ['#f4f6f5', 'light', '1:1 with the page (#f4f6f5)', 'darker'],
    ['#8e8e8e', 'dark', '4.45:1 with shaded parts of the card (#202b29)', 'lighter'],
    ['#06211f', 'dark', '1:1 with the text of buttons (#06211f)', 'lighter'],
  ] as const)('given %s in the %s scheme → the ratio found and the one needed', (color, scheme, found, better) => {
    expect(accentFault(color, scheme)).toBe(
      `has a contrast of ${found} in the ${scheme} scheme, and needs 4.5:1: choose a ${better} colour`,
    );
  });

  it('given the colours of the guide → taken', () => {
    const guide = readFileSync(new URL('../../../docs/guides/pages.md', import.meta.url), 'utf8');
    const rows = [...guide.matchAll(/^\| .* \| `(#\w+)` \| `(#\w+)` \|$/gm)];
    expect(rows).toHaveLength(3);
    for (const [, light = '', dark = ''] of rows)
      expect([accentFault(light, 'light'), accentFault(dark, 'dark')]).toEqual([undefined, undefined]);
  });

  it('given every grey → none is taken in both schemes', () => {
    const greys = Array.from({ length: 256 }, (_, value) => `#${value.toString(16).padStart(2, '0').repeat(3)}`);
    const taken = (['light', 'dark'] as const).map((scheme) => greys.filter((it) => !accentFault(it, scheme)));
    expect(taken.map(({ length }) => length > 50)).toEqual([true, true]);
    expect(taken[0]?.filter((it) => taken[1]?.includes(it))).toEqual([]);
  });
});

describe('the style sheet with accent colours', () => {
  it('→ that of grantry, then the colours of each scheme, darker and lighter under the pointer', () => {
    const { content, contentType } = accentedStylesheet({ light: '#0b57d0', dark: '#a8c7fa' });
    expect(contentType).toBe(STYLESHEET.contentType);
    const [before, added = ''] = [
      content.slice(0, STYLESHEET.content.length),
      String(content.slice(STYLESHEET.content.length)),
    ];
    expect(before).toBe(STYLESHEET.content);
    expect(added.match(/@media.*(?= \{)|--[\w-]+: .*(?=;)/g)).toEqual([
      '--accent: #0b57d0',
      '--accent-hover: rgb(9 68 162)',
      '@media (prefers-color-scheme: dark)',
      '--accent: #a8c7fa',
      '--accent-hover: rgb(187 211 251)',
    ]);
  });

  it('given another colour in either scheme → another path', () => {
    const paths = [
      ['#0b57d0', '#a8c7fa'],
      ['#0b57d1', '#a8c7fa'],
      ['#0b57d0', '#a8c7fb'],
    ].map(([light = '', dark = '']) => accentedStylesheet({ light, dark }).path);
    expect(new Set([...paths, STYLESHEET.path]).size).toBe(4);
    for (const path of paths) expect(path).toMatch(/^\/assets\/style\.[0-9a-f]{16}\.css$/);
  });
});
