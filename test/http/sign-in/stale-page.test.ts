// A page of a sign-in that is over: the error page links to where the person can begin again.

import { describe, expect, it } from 'vitest';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, PASSWORD, WEB, type World } from './sign-in-world.ts';

const WEBSITE = 'https://shop.example/?a=1&b=2';
const SHOP: Client = Object.assign({}, WEB, { clientUri: WEBSITE });
const TO_WEBSITE = ['https://shop.example/?a=1&#38;b=2', 'Go to shop.example'];
const TO_ACCOUNT = ['/account', 'Your account'];

/** The links of a page, each with its text. */
function linksOf({ body }: Page): readonly (readonly string[])[] {
  return [...body.matchAll(/<a href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].map(([, href = '', text = '']) => [href, text]);
}

const sealedIn = (page: Page) => ({ csrf: hidden(page, 'csrf'), request: hidden(page, 'request') });
const right = (page: Page) => Object.assign({ username: 'alice', password: PASSWORD }, sealedIn(page));

/** A browser with the login page of the client, and what it then does once that page is over. */
type Stale = (world: World, browser: TestBrowser, page: Page) => Promise<Page>;

const expire = (world: World) => world.advance(600_000);
const signIn = async (browser: TestBrowser, page: Page) => (await browser.post('/login', right(page))).location ?? '';

const STALE: readonly [string, Stale, string][] = [
  [
    'a login form that has expired',
    async (world, browser, page) => {
      expire(world);
      return browser.post('/login', right(page));
    },
    'interaction_expired',
  ],
  [
    'a login form with another csrf value',
    (_world, browser, page) => browser.post('/login', Object.assign(right(page), { csrf: 'A'.repeat(43) })),
    'interaction_bad_csrf',
  ],
  [
    'the page of a refused form that has expired',
    async (world, browser, page) => {
      const { location = '' } = await browser.submit('/login', Object.assign(right(page), { password: 'wrong' }));
      expire(world);
      return browser.get(location);
    },
    'interaction_expired',
  ],
  [
    'a consent page whose interaction has expired',
    async (world, browser, page) => {
      const path = await signIn(browser, page);
      expire(world);
      return browser.get(path);
    },
    'interaction_unknown',
  ],
  [
    'the decision of such a page',
    async (world, browser, page) => {
      const asked = await browser.get(await signIn(browser, page));
      expire(world);
      const [, action = ''] = /action="(\/consent\/[^"]*)"/.exec(asked.body) ?? [];
      const fields = { csrf: hidden(asked, 'csrf'), client: hidden(asked, 'client'), decision: 'allow' };
      return browser.post(action, fields);
    },
    'interaction_unknown',
  ],
  [
    'a consent page once the person has signed out',
    async (_world, browser, page) => {
      const path = await signIn(browser, page);
      browser.cookies.delete('grantry-session');
      return browser.get(path);
    },
    'interaction_not_signed_in',
  ],
  [
    'the way back to the client a second time',
    async (_world, browser, page) => {
      const path = await signIn(browser, page);
      const csrf = hidden(await browser.get(path), 'csrf');
      const { location = '' } = await browser.post(path, { csrf, decision: 'allow' });
      expect((await browser.get(location)).location).toContain('code=');
      return browser.get(location);
    },
    'interaction_unknown',
  ],
];

describe.each(STALE)('%s', (_what, go, reason) => {
  async function stale(client: Client): Promise<Page> {
    const world = await aWorld({ clients: [client] });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const answer = await go(world, browser, page);
    expect([answer.status, world.lastReason()]).toEqual([400, reason]);
    return answer;
  }

  it('→ a link to the website of the client, and no other', async () => {
    expect(linksOf(await stale(SHOP))).toEqual([TO_WEBSITE]);
  });

  it('of a client without a website → none', async () => {
    expect(linksOf(await stale(WEB))).toEqual([]);
  });
});

describe('what the address of a stale page names', () => {
  const path = (client: string) => `/consent/${'A'.repeat(43)}?client=${client}`;

  it.each([
    ['no client', ''],
    ['an unknown client', 'shop.none'],
    ['another spelling of the id', 'SHOP.WEB'],
    ['an address', encodeURIComponent('https://evil.example/')],
    ['markup', encodeURIComponent('"><a href="https://evil.example/">x</a>')],
  ])('%s → no link, and nothing of it on the page', async (_what, client) => {
    const world = await aWorld({ clients: [SHOP] });
    const page = await world.browser().get(path(client));
    expect([page.status, linksOf(page)]).toEqual([400, []]);
    expect(page.body).not.toMatch(/evil|shop\.none|SHOP/);
  });

  it('a client that only the baseline admitted → no link by the address, which anyone can write', async () => {
    const world = await aWorld({ clients: [Object.assign({}, SHOP, { admittedBy: 'baseline' })] });
    const page = await world.browser().get(path('shop.web'));
    expect([page.status, linksOf(page)]).toEqual([400, []]);
  });

  it('a client with a website over http → a link that says so', async () => {
    const website = 'http://wiki.corp.example/';
    const world = await aWorld({ clients: [Object.assign({}, SHOP, { clientUri: website })] });
    const page = await world.browser().get(path('shop.web'));
    expect(linksOf(page)).toEqual([[website, 'Go to http://wiki.corp.example']]);
  });

  it('a client that is not served any more → no link, also by the form that named it', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const browser = world.browser();
    const login = await browser.get(world.authorizePath());
    expect(linksOf(await browser.get(path('shop.web')))).toEqual([TO_WEBSITE]);
    world.setClients([]);
    expire(world);
    for (const page of [await browser.get(path('shop.web')), await browser.post('/login', right(login))]) {
      expect([page.status, linksOf(page)]).toEqual([400, []]);
    }
  });

  it('another client than the interaction has → the decision is about the interaction', async () => {
    const other = Object.assign({}, SHOP, { clientId: 'shop.other', uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0009' });
    const world = await aWorld({ clients: [SHOP, other] });
    const browser = world.browser();
    const [asked = ''] = (await signIn(browser, await browser.get(world.authorizePath()))).split('?');
    const csrf = hidden(await browser.get(`${asked}?client=shop.other`), 'csrf');
    const { location = '' } = await browser.post(asked, { csrf, decision: 'allow', client: 'shop.other' });
    expect(location).toMatch(/^\/authorize\/resume\/[\w-]{43}\?client=shop\.web$/);
  });

  it('a form of another browser → no link: its seal does not open', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const login = await world.browser().get(world.authorizePath());
    const other = world.browser();
    await other.get(world.authorizePath());
    expect(linksOf(await other.post('/login', right(login)))).toEqual([]);
  });
});

it('a login form for the account that has expired → a link to the account', async () => {
  for (const base of ['', '/tenant']) {
    const world = await aWorld({ issuer: `https://auth.example.com${base}` });
    const browser = world.browser();
    const login = await browser.get(`${base}/account`);
    expire(world);
    const page = await browser.post(`${base}/login`, right(login));
    expect([page.status, linksOf(page)]).toEqual([400, [[`${base}${TO_ACCOUNT[0]}`, TO_ACCOUNT[1]]]]);
  }
});
