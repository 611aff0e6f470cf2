// The clients with access to an account: what the page shows of them, and what is left after the person has revoked one.

import { describe, expect, it } from 'vitest';
import { aResource } from '../../oauth/a-resource.ts';
import { API, TokenCalls } from '../protocol/token-calls.ts';
import { hidden } from '../sign-in/sign-in-browser.ts';
import { PASSWORD } from '../sign-in/sign-in-world.ts';
import {
  type AccountBrowser,
  type AccountWorld,
  anAccountWorld,
  entriesOf,
  formsOf,
  type Held,
  MAIL,
  SHOP,
} from './account-world.ts';

const PATH = '/account/applications';
const ALICE = 'usr__opn0Ky1LrfMdvbK8-HI2s';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SHOP_UID = 'uid-of-shop.web';

/** Presses "Revoke access" of the first client whose entry begins so, and confirms it. */
async function revoke(browser: AccountBrowser, name: string) {
  const index = entriesOf(await browser.get(PATH)).findIndex((entry) => entry.startsWith(name));
  return await browser.press(await browser.formAfter(PATH, 'revoke', index));
}

/** What is left of what a client holds, by the other replica. */
async function left({ other }: AccountWorld, client: { clientId: string; secret?: string }, held: Held) {
  const calls = new TokenCalls(other).as(client);
  const userinfo = await fetch(other.url('/userinfo'), { headers: { authorization: `Bearer ${held.access_token}` } });
  return {
    introspection: await calls.as(API).isActive(held.access_token),
    userinfo: userinfo.status === 200,
    refresh: (await calls.refresh(held.refresh_token)).status === 200,
  };
}

describe('the page of the applications', () => {
  it('given none → says so', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const page = await browser.get(PATH);
    expect(page.body).toContain('No application has access to your account.');
    expect(formsOf(page)).toEqual([]);
  });

  it('shows name, id, the resources above what is allowed there, first and last use; the latest use first, the issuer at no place', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const { refresh_token } = await browser.letIn(SHOP, { scope: 'openid profile read' });
    world.clock.advance(2 * DAY);
    await browser.letIn(MAIL);
    expect(entriesOf(await browser.get(PATH))).toEqual([
      'Mail shop.mail What you allowed https://api.shop.example/ read First used: January 3, 2026 Last used: January 3, 2026',
      'Shop & Sons shop.web What you allowed Know which account is yours See your name and profile ' +
        'https://api.shop.example/ read ' +
        'Details Know which account is yours openid See your name and profile profile ' +
        'First used: January 1, 2026 Last used: January 1, 2026',
    ]);
    world.clock.advance(DAY);
    expect((await new TokenCalls(world.other).refresh(refresh_token)).status).toBe(200);
    await browser.signIn();
    const [first] = entriesOf(await browser.get(PATH));
    expect(first).toContain('Shop & Sons');
    expect(first).toContain('First used: January 1, 2026 Last used: January 4, 2026');
  });

  it('shows what owners of resources call them, in the language of the page, as text', async () => {
    const resource = aResource({
      displayName: { text: '<b>Notes</b>', translations: { de: 'Notizen' } },
      scopes: [
        { name: 'notes.read', description: { text: 'Read your notes', translations: { de: 'Ihre Notizen lesen' } } },
      ],
    });
    const client = { ...SHOP, resources: [{ namespace: undefined, name: 'notes', scopes: undefined }], audiences: [] };
    const world = await anAccountWorld({ clients: [client], resources: [resource] });
    const browser = await world.browser().signIn();
    await browser.letIn(client, { scope: 'notes.read' });
    const page = await browser.get(PATH);
    const [above = '', details = ''] = page.body.split('<details>');
    expect(above).toMatch(
      /<h4><bdi>&#60;b&#62;Notes&#60;\/b&#62;<\/bdi><\/h4>\s*<ul class="scopes"><li><bdi>Read your notes<\/bdi><\/li><\/ul>/,
    );
    expect(above).not.toMatch(/notes\.read|https:\/\/notes\.example/);
    expect(details).toContain(
      '<bdi>&#60;b&#62;Notes&#60;/b&#62;</bdi> <span class="detail">https://notes.example/api</span>',
    );
    expect(details).toContain('<bdi>Read your notes</bdi> <code>notes.read</code>');
    const german = await browser.get(PATH, { 'accept-language': 'de' });
    expect(german.body).toContain('<bdi>Notizen</bdi>');
    expect(german.body).toContain('Ihre Notizen lesen');
    expect(german.body).toContain('1. Januar 2026');
  });

  it('given a client that got a code → first and last used then', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    await browser.authorize(SHOP);
    expect(entriesOf(await browser.get(PATH))).toEqual([expect.stringContaining('First used: January 1, 2026')]);
  });

  it('given a client that is allowed and has no use in memory → not used yet', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    await browser.authorize(SHOP);
    await world.stores.uses.forget(String(world.audits().at(-1)?.subject), SHOP_UID);
    expect(entriesOf(await browser.get(PATH))).toEqual([expect.stringContaining('Not used yet')]);
  });

  it('given a client that asks no person → is there, says so, and can be revoked', async () => {
    const client = { ...SHOP, consent: 'Skip' as const };
    const world = await anAccountWorld({ clients: [client] });
    const browser = await world.browser().signIn();
    const { refresh_token } = await browser.letIn(client);
    const [entry] = entriesOf(await browser.get(PATH));
    expect(entry).toMatch(/^Shop & Sons shop.web Your organization lets it in without asking you\. First used/);
    await revoke(browser, 'Shop');
    expect((await new TokenCalls(world.other).refresh(refresh_token)).status).toBe(400);
    expect(entriesOf(await browser.get(PATH))).toEqual([]);
  });

  it('given a client that is gone → is there without its name, and can be revoked before it returns', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const { refresh_token } = await browser.letIn(SHOP);
    for (const grantry of [world.one, world.other]) grantry.setClients([MAIL]);
    expect(entriesOf(await browser.get(PATH))).toEqual([
      expect.stringMatching(/^An application that is out of service/),
    ]);
    const answer = await revoke(browser, 'An application');
    expect(answer.status).toBe(303);
    expect(entriesOf(await browser.get(answer.location ?? ''))).toEqual([]);
    for (const grantry of [world.one, world.other]) grantry.setClients([SHOP, MAIL]);
    expect((await new TokenCalls(world.other).refresh(refresh_token)).status).toBe(400);
  });

  it('shows nothing of another person', async () => {
    const world = await anAccountWorld();
    await (await world.browser().signIn()).letIn(SHOP);
    const bob = await world.browser().signIn('bob');
    expect(entriesOf(await bob.get(PATH))).toEqual([]);
  });

  it('given 50 clients → 20 a page, all of them once, and links between the pages', async () => {
    const clients = Array.from({ length: 50 }, (_, index) => ({
      ...SHOP,
      clientId: `shop.app-${index}`,
      uid: `uid-${index}`,
      displayName: `App ${index}.`,
    }));
    const world = await anAccountWorld({ clients });
    const browser = await world.browser().signIn();
    const consent = new Map([['https://api.shop.example/', ['read']]]);
    for (const { uid } of clients) {
      await world.stores.consents.give(ALICE, uid, consent, DAY);
      await world.stores.uses.note(ALICE, uid);
    }
    const pages = await Promise.all([1, 2, 3].map((page) => browser.get(`${PATH}?page=${page}`)));
    expect(pages.map((page) => entriesOf(page).length)).toEqual([20, 20, 10]);
    const names = pages.flatMap(entriesOf).map((entry) => entry.split('.')[0]);
    expect(new Set(names)).toEqual(new Set(clients.map(({ displayName }) => displayName.slice(0, -1))));
    const links = pages.map(({ body }) =>
      [...body.matchAll(/rel="(next|prev)" href="([^"]*)"/g)].map((link) => link.slice(1)),
    );
    expect(links).toEqual([
      [['next', `${PATH}?page=2`]],
      [
        ['prev', `${PATH}?page=1`],
        ['next', `${PATH}?page=3`],
      ],
      [['prev', `${PATH}?page=2`]],
    ]);
    expect(pages.map(({ body }) => /Page \d of \d/.exec(body)?.[0])).toEqual([
      'Page 1 of 3',
      'Page 2 of 3',
      'Page 3 of 3',
    ]);
    expect(entriesOf(await browser.get(`${PATH}?page=999`))).toEqual(entriesOf(pages[2] ?? (await browser.get(PATH))));
    for (const { body } of pages) expect(body.length).toBeLessThan(64 * 1024);
  });

  it.each(['0', '-1', '1.5', 'x', '999999', '1 '])('given the page "%s" → 400', async (page) => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const answer = await browser.get(`${PATH}?${new URLSearchParams({ page })}`);
    expect([answer.status, world.lastReason()]).toEqual([400, 'account_page_invalid']);
  });

  it.each(['consents', 'uses'] as const)('given %s unavailable → 503', async (store) => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    world.breakStore(store);
    expect((await browser.get(PATH)).status).toBe(503);
  });

  it.each([SHOP_UID, 'uid-of-no-client', '<b>'])(
    'given a link that says that %s was revoked → believes nothing',
    async (uid) => {
      const world = await anAccountWorld();
      const browser = await world.browser().signIn();
      await browser.letIn(SHOP);
      const page = await browser.get(`${PATH}?${new URLSearchParams({ revoked: uid })}`);
      expect(page.body).not.toContain('class="notice"');
    },
  );
});

describe('a revoked client', () => {
  it.each([
    ['JWTs', SHOP],
    ['opaque tokens', MAIL],
  ] as const)(
    'with %s → refresh, introspection and userinfo refuse at another replica, and others go on',
    async (_name, client) => {
      const openid = client === SHOP;
      const world = await anAccountWorld();
      const other = client === SHOP ? MAIL : SHOP;
      const [alice, bob] = [await world.browser().signIn(), await world.browser().signIn('bob')];
      const scope = openid ? 'openid read' : 'read';
      const [held, kept] = [await alice.letIn(client, { scope }), await alice.letIn(other)];
      const ofBob = await bob.letIn(client, { username: 'bob', scope });
      const answer = await revoke(alice, String(client.displayName));
      expect([answer.status, answer.location]).toEqual([303, `${PATH}?revoked=uid-of-${client.clientId}`]);
      const page = await alice.get(answer.location ?? '');
      expect(page.body).toMatch(
        /<p class="notice" role="status"><bdi>(Shop &#38; Sons|Mail)<\/bdi> has no access any more\.<\/p>/,
      );
      expect(entriesOf(page)).toEqual([expect.stringContaining(String(other.displayName))]);
      expect(await left(world, client, held)).toEqual({ introspection: false, userinfo: false, refresh: false });
      expect(await left(world, other, kept)).toMatchObject({ introspection: true, refresh: true });
      expect(await left(world, client, ofBob)).toMatchObject({ introspection: true, refresh: true });
    },
  );

  it('→ userinfo answered before', async () => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    const held = await alice.letIn(SHOP, { scope: 'openid' });
    expect(await left(world, SHOP, held)).toMatchObject({ userinfo: true });
  });

  it('given a code that is not redeemed → revoked', async () => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    const code = (await alice.authorize(SHOP)).searchParams.get('code') ?? '';
    await revoke(alice, 'Shop');
    expect(await new TokenCalls(world.other).redeem(code)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });

  it('→ the next request asks to sign in and to consent again, and after that it has access', async () => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    await alice.letIn(SHOP);
    const { pathname, search } = alice.authorizeUrl('shop.web');
    expect((await alice.get(pathname + search)).location).toMatch(/^https:\/\/app\.example\/cb\?code=/);
    await revoke(alice, 'Shop');
    world.clock.advance(1);
    const there = alice.at(world.other);
    expect((await there.get(pathname + search)).body).toContain('name="password"');
    const silent = await there.get(`${pathname}${search.replace('scope=read', 'scope=openid')}&prompt=none`);
    expect(silent.location).toContain('error=login_required');
    const page = await alice.get(pathname + search);
    const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const answer = await alice.post('/login', { username: 'alice', password: PASSWORD, ...sealed });
    expect(answer.location).toMatch(/^\/consent\//);
    const again = await alice.letIn(SHOP);
    expect(await left(world, SHOP, again)).toMatchObject({ introspection: true, refresh: true });
    expect(entriesOf(await alice.get(PATH))).toHaveLength(1);
  });

  it('→ one audit line, and no other session or client is touched', async () => {
    const world = await anAccountWorld();
    const [alice, elsewhere] = [await world.browser().signIn(), await world.browser().signIn()];
    await alice.letIn(SHOP);
    await revoke(alice, 'Shop');
    expect(world.audits().at(-1)).toEqual({
      event: 'consent.withdrawn',
      clientId: 'shop.web',
      subject: ALICE,
      reason: 'account_page',
    });
    expect((await elsewhere.get(PATH)).body).toContain('No application has access');
  });

  it.each([
    ['watermarks', 'raise'],
    ['consents', 'withdraw'],
    ['uses', 'forget'],
  ] as const)('given %s.%s unavailable → 503 and no word of success; the next try revokes', async (store, method) => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    const held = await alice.letIn(SHOP);
    const form = await alice.formAfter(PATH, 'revoke');
    world.breakStore(store, method);
    const answer = await alice.press(form);
    expect([answer.status, answer.location]).toEqual([503, undefined]);
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(world.audits().map(({ event }) => event)).not.toContain('consent.withdrawn');
    world.mendStores();
    expect(entriesOf(await alice.get(PATH))).toHaveLength(1);
    expect((await alice.press(form)).status).toBe(303);
    expect(await left(world, SHOP, held)).toEqual({ introspection: false, userinfo: false, refresh: false });
    expect(entriesOf(await alice.get(PATH))).toEqual([]);
  });
});

describe('the use of a client', () => {
  it('given an unavailable store of uses → tokens all the same', async () => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    world.breakStore('uses');
    const { refresh_token } = await alice.letIn(SHOP);
    expect((await new TokenCalls(world.one).refresh(refresh_token)).status).toBe(200);
  });

  it('given tokens of a client for itself → none', async () => {
    const world = await anAccountWorld();
    const alice = await world.browser().signIn();
    const answer = await new TokenCalls(world.one).post('/token', { grant_type: 'client_credentials', scope: 'read' });
    expect(answer.status).toBe(200);
    expect(await world.stores.uses.list('shop.web')).toEqual([]);
    expect(entriesOf(await alice.get(PATH))).toEqual([]);
  });
});
