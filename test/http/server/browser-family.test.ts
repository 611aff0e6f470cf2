import { describe, expect, it } from 'vitest';
import { browserFamily } from '../../../src/http/server/browser-family.ts';

const WINDOWS = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)';
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)';
const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)';
const LINUX = 'Mozilla/5.0 (X11; Linux x86_64)';
const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';
const BLINK = 'AppleWebKit/537.36 (KHTML, like Gecko)';

describe('the family of a browser', () => {
  it.each([
    [`${WINDOWS} ${BLINK} Chrome/140.0.0.0 Safari/537.36`, 'Chrome'],
    [`${LINUX} ${BLINK} HeadlessChrome/140.0.0.0 Safari/537.36`, 'Chrome'],
    [`${IPHONE} ${WEBKIT} CriOS/140.0.0.0 Mobile/15E148 Safari/604.1`, 'Chrome'],
    [`${WINDOWS} ${BLINK} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`, 'Edge'],
    [`${WINDOWS} ${BLINK} Chrome/140.0.0.0 Safari/537.36 OPR/120.0.0.0`, 'Opera'],
    [`${LINUX} ${BLINK} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`, 'Samsung Internet'],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox'],
    [`${IPHONE} ${WEBKIT} FxiOS/140.0 Mobile/15E148 Safari/605.1.15`, 'Firefox'],
    [`${MAC} ${WEBKIT} Version/18.0 Safari/605.1.15`, 'Safari'],
    ['curl/8.5.0', undefined],
    ['<b>Firefox</b>', undefined],
    [`${'x'.repeat(600)} Firefox/140.0`, undefined],
    [undefined, undefined],
  ])('given %s → %s', (agent, family) => {
    expect(browserFamily({ 'user-agent': agent })).toBe(family);
  });
});
