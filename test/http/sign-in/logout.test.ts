// /logout (OpenID Connect RP-Initiated Logout 1.0): each row of its table, over HTTP.

import { describe, expect, it } from 'vitest';
import { PKCE } from '../../grantry.ts';
import { hintFor, idTokenKey, OPENID, openidPath, signedIn } from './openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import {
  aWorld,
  CALLBACK,
  LEAVING_POLICY,
  OWN_POLICY,
  SECRET,
  type World,
  type WorldOptions,
} from './sign-in-world.ts';

const BYE = 'https://shop.example/bye?from=shop';
const SHOP = { ...OPENID, scopes: [...OPENID.scopes, 'offline_access'], postLogoutRedirectUris: [BYE] };
const WIKI = { ...SHOP, uid: 'uid-of-wiki', clientId: 'shop.wiki', postLogoutRedirectUris: ['https://wiki.example/'] };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const key = await idTokenKey();

type Query = Readonly<Record<string, string>> | readonly [string, string][];

const aLogoutWorld = (options: WorldOptions = {}) => aWorld({ clients: [SHOP, WIKI], keys: [key], ...options });

function logoutPath(query: Query = {}): string {
  return `/logout?${new URLSearchParams(query as Record<string, string>)}`;
}

/** Whether the browser gets a code without a page. */
async function isSignedIn(world: World, browser: TestBrowser): Promise<boolean> {
  return (await browser.get(openidPath(world))).status === 302;
}

async function codeFor(world: World, browser: TestBrowser, scope = 'openid'): Promise<string> {
  return answerOf(await browser.get(openidPath(world, { scope }))).code ?? '';
}

/** A request of the client to the token endpoint. */
function tokens(world: World, request: Readonly<Record<string, string>>): Promise<Response> {
  const authorization = `Basic ${btoa(`${SHOP.clientId}:${SECRET}`)}`;
  return world.post('/token', request, { headers: { authorization } });
}

function redemption(code: string): Readonly<Record<string, string>> {
  return { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
}

/** The status of the redemption. */
async function redeem(world: World, code: string): Promise<number> {
  return (await tokens(world, redemption(code))).status;
}

/** The `sid` of the one session of this person. */
async function sidOf(world: World, username: string): Promise<string> {
  const [session] = await world.stores.sessions.list(world.subject(username));
  if (session === undefined) throw new Error('no session');
  return session.sid;
}

const ended = (world: World) => world.events.flatMap(({ type, reason }) => (type === 'session.ended' ? [reason] : []));

describe('a request to sign out', () => {
  it('with a hint of the signed-in person → the session ends at once, and the browser goes to the address with state', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const hint = await hintFor(world, 'alice', key, { client: SHOP });
    const query = { id_token_hint: hint, post_logout_redirect_uri: BYE, state: 'st&te= 1', other: 'x' };
    const answer = await browser.get(logoutPath(query));
    expect([answer.status, answer.location]).toEqual([302, `${BYE}&state=st%26te%3D%201`]);
    expect([...browser.cookies.keys()].filter((name) => name.endsWith('session'))).toEqual([]);
    expect(await isSignedIn(world, browser)).toBe(false);
    expect(ended(world)).toEqual(['logout']);
  });

  it('without an address → a page that the person is signed out, which may not be framed or kept', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const hint = await hintFor(world, 'alice', key, { client: SHOP });
    const answer = await browser.get(logoutPath({ id_token_hint: hint }), { 'accept-language': 'de' });
    expect([answer.status, answer.location]).toEqual([200, undefined]);
    expect(answer.body).toContain('<h1>Sie sind abgemeldet</h1>');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  it.each([
    ['nothing', async () => ({})],
    ['a client and its address', async () => ({ client_id: SHOP.clientId, post_logout_redirect_uri: BYE })],
    [
      'a hint of another person',
      async (world: World) => ({ id_token_hint: await hintFor(world, 'bob', key, { client: SHOP }) }),
    ],
  ] as const)('with %s from a signed-in browser → a question; the session ends by its form', async (_, queryOf) => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const query: Readonly<Record<string, string>> = { ...(await queryOf(world)), state: 'again' };
    const page = await browser.get(logoutPath(query));
    expect([page.status, page.location]).toEqual([200, undefined]);
    expect(page.body).toContain('<bdi>alice</bdi>');
    expect(page.headers.get('content-security-policy')).toBe(
      query.post_logout_redirect_uri === undefined ? OWN_POLICY : LEAVING_POLICY,
    );
    expect(await isSignedIn(world, browser)).toBe(true);
    const answer = await browser.post('/logout/confirm', { ...query, csrf: hidden(page, 'csrf') });
    const location = query.post_logout_redirect_uri === undefined ? undefined : `${BYE}&state=again`;
    expect([answer.status, answer.location]).toEqual([location === undefined ? 200 : 303, location]);
    expect(await isSignedIn(world, browser)).toBe(false);
    expect(ended(world)).toEqual(['logout']);
  });

  it.each([
    ['a client and its address', async () => ({})],
    [
      'a hint of its own',
      async (world: World) => ({ id_token_hint: await hintFor(world, 'bob', key, { client: SHOP }) }),
    ],
  ])(
    'with %s, of a client that only the baseline admits, without a session → a page with a link; in a frame the redirect',
    async (_, queryOf) => {
      const world = await aLogoutWorld({ clients: [{ ...SHOP, admittedBy: 'baseline' }] });
      const path = logoutPath({ ...(await queryOf(world)), client_id: SHOP.clientId, post_logout_redirect_uri: BYE });
      const page = await world.browser().get(path);
      expect([page.status, page.location]).toEqual([200, undefined]);
      expect(page.body).toContain(`<a href="${BYE}" rel="noreferrer">`);
      const framed = await world.browser().get(path, { 'sec-fetch-dest': 'iframe' });
      expect([framed.status, framed.location]).toEqual([302, BYE]);
      const query = Object.fromEntries(new URLSearchParams(path.split('?')[1]));
      const posted = await world.browser().post('/logout/confirm', query);
      expect([posted.status, posted.location]).toEqual([200, undefined]);
      expect(posted.body).toContain(`<a href="${BYE}" rel="noreferrer">`);
      const sent = { client_id: SHOP.clientId, post_logout_redirect_uri: BYE };
      const person = await signedIn(world);
      const csrf = hidden(await person.get(logoutPath(sent)), 'csrf');
      expect(
        (await person.post('/logout/confirm', { csrf, client_id: sent.client_id, post_logout_redirect_uri: BYE }))
          .location,
      ).toBe(BYE);
      const permitted = await aLogoutWorld();
      expect((await permitted.browser().post('/logout/confirm', sent)).location).toBe(BYE);
      const answer = await permitted
        .browser()
        .get(logoutPath({ client_id: SHOP.clientId, post_logout_redirect_uri: BYE }));
      expect([answer.status, answer.location]).toEqual([302, BYE]);
    },
  );

  it('with a hint and without a browser → the session of its sid ends, and no other of the person', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const sid = await sidOf(world, 'alice');
    const other = await signedIn(world);
    const hint = await hintFor(world, 'alice', key, { client: SHOP, sid });
    expect((await world.browser().get(logoutPath({ id_token_hint: hint }))).status).toBe(200);
    expect([await isSignedIn(world, browser), await isSignedIn(world, other)]).toEqual([false, true]);
    expect(ended(world)).toEqual(['logout']);
  });

  it('with a hint of a session that was idle too long → its grants end', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const sid = await sidOf(world, 'alice');
    const redeemed = await tokens(world, redemption(await codeFor(world, browser)));
    const { refresh_token } = (await redeemed.json()) as { refresh_token: string };
    world.advance(3_600_000);
    expect(await isSignedIn(world, browser)).toBe(false);
    const refresh = async (token: string) => tokens(world, { grant_type: 'refresh_token', refresh_token: token });
    const refreshed = await refresh(refresh_token);
    expect(refreshed.status).toBe(200);
    const hint = await hintFor(world, 'alice', key, { client: SHOP, sid });
    await world.browser().get(logoutPath({ id_token_hint: hint }));
    const next = ((await refreshed.json()) as { refresh_token: string }).refresh_token;
    expect((await refresh(next)).status).toBe(400);
  });

  it.each([{}, { client_id: SHOP.clientId }])('with %o and no session → the page, and nothing ends', async (query) => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    expect((await world.browser().get(logoutPath(query))).status).toBe(200);
    expect(await isSignedIn(world, browser)).toBe(true);
    expect(ended(world)).toEqual([]);
  });

  it.each([
    ['id_token_hint_invalid', { id_token_hint: 'no.id.token' }],
    ['client_unknown', { client_id: 'no.client' }],
    ['post_logout_redirect_uri_without_client', { post_logout_redirect_uri: BYE }],
    [
      'duplicate_parameter',
      [
        ['client_id', SHOP.clientId],
        ['client_id', SHOP.clientId],
      ] as [string, string][],
    ],
  ] as const)(
    'that is refused for %s → a 400 page with the question, and nothing ends before its form',
    async (reason, query) => {
      const world = await aLogoutWorld();
      const browser = await signedIn(world);
      const page = await browser.get(logoutPath(query as Query));
      expect([page.status, page.location, world.lastReason()]).toEqual([400, undefined, reason]);
      expect(page.headers.get('content-security-policy')).toBe(OWN_POLICY);
      expect(await isSignedIn(world, browser)).toBe(true);
      const form = [...page.body.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
      expect(form.map(([name]) => name)).toEqual(['csrf']);
      const answer = await browser.post('/logout/confirm', Object.fromEntries(form));
      expect([answer.status, answer.location]).toEqual([200, undefined]);
      expect([await isSignedIn(world, browser), ended(world)]).toEqual([false, ['logout']]);
    },
  );

  it.each([
    ['id_token_hint_invalid', { id_token_hint: 'no.id.token' }],
    ['post_logout_redirect_uri_without_client', { post_logout_redirect_uri: BYE }],
  ])('that is refused for %s without a session → a 400 page without a form', async (reason, query) => {
    const world = await aLogoutWorld();
    const page = await world.browser().get(logoutPath(query));
    expect([page.status, page.location, world.lastReason()]).toEqual([400, undefined, reason]);
    expect(page.body).not.toContain('<form');
  });

  it('with a hint of another client, or of one that is gone, or of another key → a 400 page, and nothing ends', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const hint = await hintFor(world, 'alice', key, { client: SHOP });
    const foreign = await hintFor(world, 'alice', await idTokenKey(), { client: SHOP });
    await browser.get(logoutPath({ id_token_hint: hint, client_id: WIKI.clientId }));
    expect(world.lastReason()).toBe('client_id_mismatch');
    await browser.get(logoutPath({ id_token_hint: foreign }));
    expect(world.lastReason()).toBe('id_token_hint_invalid');
    world.setClients([WIKI]);
    await browser.get(logoutPath({ id_token_hint: hint }));
    expect(world.lastReason()).toBe('client_unknown');
    world.setClients([SHOP, WIKI]);
    expect(await isSignedIn(world, browser)).toBe(true);
  });
});

describe('an address that is not registered', () => {
  const { origin } = new URL(BYE);

  it.each([
    'https://wiki.example/',
    'https://evil.example/',
    `${BYE}&x=1`,
    `${BYE}#`,
    `${BYE}/`,
    BYE.toUpperCase(),
    BYE.replace('https', 'http'),
    BYE.replace('shop.example', 'shop.example.'),
    BYE.replace('shop.example', 'shop.example:443'),
    BYE.replace('shop.example', 'shop.example@evil.example'),
    BYE.replace('shop.example', 'shop.example.evil.example'),
    BYE.replace('/bye', '//bye'),
    BYE.replace('/bye', '/./bye'),
    BYE.replace('/bye', '/%62ye'),
    BYE.replace('/bye', '\\bye'),
    BYE.replace('https:', ''),
    ` ${BYE}`,
    `${BYE} `,
    `${BYE}\r\nLocation: https://evil.example/`,
    origin,
    CALLBACK,
    'javascript:alert(1)',
  ])('%j → a 400 page without a link that says so and asks, and nothing ends before the answer', async (address) => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const hint = await hintFor(world, 'alice', key, { client: SHOP });
    const answer = await browser.get(logoutPath({ id_token_hint: hint, post_logout_redirect_uri: address }));
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(answer.body).not.toContain('<a ');
    expect(answer.body).toContain('an address that is not registered');
    expect(world.logs().findLast(({ route }) => route === 'logout')).toMatchObject({
      clientId: SHOP.clientId,
      outcome: 'refused',
    });
    expect(await isSignedIn(world, browser)).toBe(true);
    const confirmed = await browser.post('/logout/confirm', { csrf: hidden(answer, 'csrf') });
    expect([confirmed.status, confirmed.location]).toEqual([200, undefined]);
    expect(await isSignedIn(world, browser)).toBe(false);
  });

  it('with NUL, which no parameter may hold → a 400 page, and nothing ends', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const answer = await browser.get(
      logoutPath({ client_id: SHOP.clientId, post_logout_redirect_uri: `${BYE}\u0000` }),
    );
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(answer.body).not.toContain('<a ');
    expect(await isSignedIn(world, browser)).toBe(true);
  });

  it('in the form of the question → refused, too: the form is valid for its own request only', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const csrf = hidden(await browser.get(logoutPath()), 'csrf');
    const elsewhere = { csrf, client_id: SHOP.clientId, post_logout_redirect_uri: BYE };
    expect((await browser.post('/logout/confirm', elsewhere)).status).toBe(400);
    expect(world.lastReason()).toBe('interaction_bad_csrf');
    await browser.post('/logout/confirm', { ...elsewhere, post_logout_redirect_uri: 'https://evil.example/' });
    expect(world.lastReason()).toBe('post_logout_redirect_uri_mismatch');
    expect(await isSignedIn(world, browser)).toBe(true);
  });
});

describe('the form of the question', () => {
  async function asked(): Promise<{ world: World; browser: TestBrowser; page: Page }> {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    return { world, browser, page: await browser.get(logoutPath()) };
  }

  it('from another site, without its value, or with that of another session → 400, and nothing ends', async () => {
    const { world, browser, page } = await asked();
    const csrf = hidden(page, 'csrf');
    await browser.post('/logout/confirm', { csrf }, { origin: 'https://evil.example' });
    expect(world.lastReason()).toBe('interaction_foreign_origin');
    await browser.post('/logout/confirm', {});
    expect(world.lastReason()).toBe('interaction_bad_csrf');
    const other = await signedIn(world, 'bob');
    await other.post('/logout/confirm', { csrf });
    expect(world.lastReason()).toBe('interaction_bad_csrf');
    expect([await isSignedIn(world, browser), await isSignedIn(world, other)]).toEqual([true, true]);
  });

  it('a second time → the page that the person is signed out', async () => {
    const { browser, page } = await asked();
    const csrf = hidden(page, 'csrf');
    const statuses = [await browser.post('/logout/confirm', { csrf }), await browser.post('/logout/confirm', { csrf })];
    expect(statuses.map(({ status }) => status)).toEqual([200, 200]);
  });
});

it('a form that a client posts to /logout, as from another site → 303 to the GET, which has the session', async () => {
  const world = await aLogoutWorld();
  const browser = await signedIn(world);
  const hint = await hintFor(world, 'alice', key, { client: SHOP });
  const form = new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: BYE }).toString();
  const headers = { ...FORM, origin: 'https://shop.example' };
  const answer = await world.browser().send('POST', '/logout', headers, form);
  expect([answer.status, answer.location]).toEqual([303, `/logout?${form}`]);
  expect((await browser.get(answer.location ?? '')).location).toBe(BYE);
});

it('while the store is unavailable → a 503 page, and the person is signed in afterwards', async () => {
  const world = await aLogoutWorld();
  const browser = await signedIn(world);
  const hint = await hintFor(world, 'alice', key, { client: SHOP });
  world.breakStore('sessions');
  const answer = await browser.get(logoutPath({ id_token_hint: hint, post_logout_redirect_uri: BYE }));
  expect([answer.status, answer.location]).toEqual([503, undefined]);
  world.mendStores();
  expect(await isSignedIn(world, browser)).toBe(true);
});

describe('grants of a session that ends', () => {
  it('end with it, but for those with offline_access, those of another session, and those without openid', async () => {
    const world = await aLogoutWorld();
    const [browser, other] = [await signedIn(world), await signedIn(world)];
    const codes = {
      openid: await codeFor(world, browser),
      offline: await codeFor(world, browser, 'openid offline_access'),
      plain: await codeFor(world, browser, 'shop/read'),
      'of the other session': await codeFor(world, other),
    };
    const hint = await hintFor(world, 'alice', key, { client: SHOP });
    await browser.get(logoutPath({ id_token_hint: hint }));
    const statuses: Record<string, number> = {};
    for (const [name, code] of Object.entries(codes)) statuses[name] = await redeem(world, code);
    expect(statuses).toEqual({ openid: 400, offline: 200, plain: 200, 'of the other session': 200 });
  });

  it('live on where the same person signs in again, and end with the session that follows', async () => {
    const world = await aLogoutWorld();
    const browser = await signedIn(world);
    const [first, second] = [await codeFor(world, browser), await codeFor(world, browser)];
    const sid = await sidOf(world, 'alice');
    const page = await browser.get(openidPath(world, { prompt: 'login' }));
    const fields = { username: 'alice', password: 'correct horse battery' };
    await browser.post('/login', { ...fields, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') });
    expect(await sidOf(world, 'alice')).toBe(sid);
    expect(await redeem(world, first)).toBe(200);
    await browser.get(logoutPath({ id_token_hint: await hintFor(world, 'alice', key, { client: SHOP }) }));
    expect(await redeem(world, second)).toBe(400);
  });
});
