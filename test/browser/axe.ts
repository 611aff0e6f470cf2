// What axe-core says of a page. It is a script itself: the browser context has to allow scripts.

import { type AxeResults, source } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** The rules that the page breaks, with the elements. @throws unless axe has checked colours too */
export async function axeFindings(page: Page): Promise<readonly unknown[]> {
  const { violations, passes } = (await page.evaluate(`${source}; axe.run()`)) as AxeResults;
  expect(passes.map(({ id }) => id)).toContain('color-contrast');
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}
