// What the stylesheet of the pages gives to elements that no other test measures.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { launchChromium, NO_CHROMIUM } from './chromium.ts';

const STYLE = readFileSync(new URL('../../src/http/pages/style.css', import.meta.url), 'utf8');

it.skipIf(NO_CHROMIUM)(
  'a link for help is 24 px high at least, and a fold has a rounded ring and space below',
  async () => {
    await using browser = await launchChromium();
    const page = await browser.newPage();
    const fold = '<details open><summary>Details</summary>text</details>';
    await page.setContent(`<style>${STYLE}</style>${fold}<p class="note"><a href="#">Help</a></p>`);
    expect((await page.locator('a').boundingBox())?.height).toBeGreaterThanOrEqual(24);
    const style = 'getComputedStyle(document.querySelector("summary"))';
    expect(await page.evaluate(`[${style}.borderRadius, ${style}.marginBottom]`)).toEqual(['4px', '8px']);
  },
);
