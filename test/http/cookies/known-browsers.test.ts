// Browsers where a person has signed in before, over HTTP: limits of their own (docs/scope.md: C8, I5).

import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { KnownBrowsers } from '../../../src/http/cookies/known-browsers.ts';
import { TestClock } from '../../grantry.ts';
import { hidden, type TestBrowser } from '../sign-in/sign-in-browser.ts';
import { aWorld, PASSWORD, type World } from '../sign-in/sign-in-world.ts';

const KNOWN = 'grantry-known';
const SESSION = 'grantry-session';
const DAY = 86_400_000;

type Texts = Readonly<Record<string, string>>;

/** The fields of the login form of a new page. */
async function atLogin(world: World, browser: TestBrowser) {
  const page = await browser.get(world.authorizePath());
  const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return (fields: Texts = {}) => ({ username: 'alice', password: PASSWORD, ...sealed, ...fields });
}

/** Posts the login form of a page of its own. */
async function signIn(world: World, browser: TestBrowser, fields: Texts = {}, headers: Texts = {}) {
  const form = await atLogin(world, browser);
  return browser.post('/login', form(fields), headers);
}

/** A browser where these people have signed in, and no session is alive. */
async function browserKnownTo(world: World, ...usernames: readonly string[]): Promise<TestBrowser> {
  const browser = world.browser();
  for (const username of usernames) {
    expect((await signIn(world, browser, { username })).status).toBe(303);
    browser.cookies.delete(SESSION);
  }
  return browser;
}

/** Uses up what new browsers at 127.0.0.1 may guess within a minute. */
async function flood(world: World): Promise<void> {
  const stranger = world.browser();
  const form = await atLogin(world, stranger);
  const names = Array.from({ length: 31 }, (_, index) => (index < 6 ? 'alice' : `user-${index}`));
  await Promise.all(names.map((username) => stranger.post('/login', form({ username, password: 'wrong' }))));
  expect((await signIn(world, world.browser())).status).toBe(429);
}

describe('a browser where the person has signed in before', () => {
  it('while its address is flooded with guesses → signs the person in', async () => {
    const world = await aWorld();
    const browser = await browserKnownTo(world, 'alice');
    await flood(world);
    expect((await signIn(world, browser)).status).toBe(303);
  });

  it('while 100 addresses guess at the name → signs the person in; a new browser anywhere → 429 for the hour', async () => {
    const world = await aWorld({ trustedProxies: ['127.0.0.1'] });
    const browser = await browserKnownTo(world, 'alice');
    const stranger = world.browser();
    const form = await atLogin(world, stranger);
    const guesses = Array.from({ length: 100 }, (_, index) =>
      stranger.post('/login', form({ password: 'wrong' }), { 'x-forwarded-for': `198.51.100.${index}` }),
    );
    for (const { status } of await Promise.all(guesses)) expect(status).toBe(422);
    const elsewhere = { 'x-forwarded-for': '203.0.113.9' };
    const refused = await signIn(world, world.browser(), {}, elsewhere);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    expect(refused.body).toContain('60 minutes');
    expect((await signIn(world, browser, {}, elsewhere)).status).toBe(303);
    world.advance(3_599_999);
    expect((await signIn(world, world.browser(), {}, elsewhere)).status).toBe(429);
    world.advance(1);
    expect((await signIn(world, world.browser(), {}, elsewhere)).status).toBe(303);
  });

  it('five wrong guesses there → 429 also for the right password, while a new browser beside it signs in', async () => {
    const world = await aWorld();
    const browser = await browserKnownTo(world, 'alice');
    const statuses: number[] = [];
    for (let count = 0; count < 6; count += 1) {
      statuses.push((await signIn(world, browser, { password: 'wrong' })).status);
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
    expect((await signIn(world, browser)).status).toBe(429);
    expect((await signIn(world, world.browser())).status).toBe(303);
    world.advance(60_000);
    expect((await signIn(world, browser)).status).toBe(303);
  });

  it('of several people → known to each of them and to no other person', async () => {
    const world = await aWorld();
    const both = await browserKnownTo(world, 'bob', 'alice');
    const ofBob = await browserKnownTo(world, 'bob');
    await flood(world);
    expect((await signIn(world, ofBob)).status).toBe(429);
    expect((await signIn(world, ofBob, { username: 'bob' })).status).toBe(303);
    expect((await signIn(world, both)).status).toBe(303);
  });

  it.each<readonly [string, (world: World) => unknown]>([
    ['a new password hash', (world) => world.changePassword('alice')],
    [
      'a watermark of the person',
      (world) => world.stores.watermarks.raise({ kind: 'user', subject: world.subject('alice') }, world.now()),
    ],
    ['a global watermark', (world) => world.stores.watermarks.raise({ kind: 'global' }, world.now())],
    ['400 days', (world) => world.advance(400 * DAY)],
  ])('after %s → limited like a new one', async (_what, happens) => {
    const world = await aWorld();
    const browser = await browserKnownTo(world, 'alice');
    await happens(world);
    await flood(world);
    expect((await signIn(world, browser)).status).toBe(429);
    world.advance(60_000);
    expect((await signIn(world, browser)).status).toBe(303);
    browser.cookies.delete(SESSION);
    await flood(world);
    expect((await signIn(world, browser)).status).toBe(303);
  });

  it('after a watermark of another person or an older one → still known', async () => {
    const world = await aWorld();
    const { watermarks } = world.stores;
    const browser = await browserKnownTo(world, 'alice');
    await watermarks.raise({ kind: 'user', subject: world.subject('bob') }, world.now());
    await watermarks.raise({ kind: 'user', subject: world.subject('alice') }, world.now() - 1);
    await flood(world);
    expect((await signIn(world, browser)).status).toBe(303);
  });

  it('before any sign-in, and after a refused one → has no such cookie', async () => {
    const world = await aWorld();
    const browser = world.browser();
    await signIn(world, browser, { password: 'wrong' });
    expect(browser.cookies.has(KNOWN)).toBe(false);
  });
});

describe('the cookie of a known browser', () => {
  const pepper = randomBytes(32);
  const issuer = 'https://id.example.com';

  function knownBrowsers({ peppers = [pepper], from = issuer, clock = new TestClock() } = {}) {
    const random = { bytes: (count: number) => randomBytes(count) };
    return new KnownBrowsers({ issuer: from, peppers, clock, random });
  }
  function aBrowser() {
    const cookies: Record<string, string> = {};
    const setCookie = (name: string, value: string) => void Object.assign(cookies, { [name]: value });
    return {
      cookies,
      request: { cookies } as unknown as FastifyRequest,
      reply: { setCookie } as unknown as FastifyReply,
    };
  }
  const person = (name: string, credential = 'c') => ({ subject: `usr_${name}`.padEnd(26, '-'), credential });
  const now = new TestClock().now();

  it('of six people → the newest five are known, in less than 1.5 KiB; a return makes one the newest again', () => {
    const [known, browser] = [knownBrowsers(), aBrowser()];
    const six = ['a', 'b', 'c', 'd', 'e', 'a', 'f'].map((name) => person(name, 'x'.repeat(22)));
    for (const each of six) known.remember(browser, each, now);
    const names = ['a', 'b', 'c', 'd', 'e', 'f'].filter((name) =>
      known.find(browser.request, person(name, 'x'.repeat(22))),
    );
    expect(names).toEqual(['a', 'c', 'd', 'e', 'f']);
    expect(browser.cookies[`__Host-${KNOWN}`]?.length).toBeLessThan(1536);
  });

  it('is another text and another id at each sign-in, and shows no subject', () => {
    const [known, browser] = [knownBrowsers(), aBrowser()];
    const seen = [1, 2].map(() => {
      known.remember(browser, person('alice'), now);
      return [browser.cookies[`__Host-${KNOWN}`], known.find(browser.request, person('alice'))?.id];
    });
    expect(seen[0]?.[0]).not.toBe(seen[1]?.[0]);
    expect(seen[0]?.[1]).not.toBe(seen[1]?.[1]);
    expect(Buffer.from(seen[0]?.[0] ?? '', 'base64url').toString('latin1')).not.toContain('usr_');
  });

  it('opens with each of the peppers, and with no other one, at no other issuer and for no other purpose', () => {
    const browser = aBrowser();
    knownBrowsers().remember(browser, person('alice'), now);
    const finds = (known: KnownBrowsers) => known.find(browser.request, person('alice')) !== undefined;
    expect(finds(knownBrowsers({ peppers: [randomBytes(32), pepper] }))).toBe(true);
    expect(finds(knownBrowsers({ peppers: [randomBytes(32)] }))).toBe(false);
    browser.cookies[KNOWN] = browser.cookies[`__Host-${KNOWN}`] ?? '';
    expect(finds(knownBrowsers({ from: 'http://localhost' }))).toBe(false);
  });

  it('forged, changed, cut or oversized → no person is known, and the next sign-in replaces it', () => {
    const [known, browser] = [knownBrowsers(), aBrowser()];
    known.remember(browser, person('alice'), now);
    const good = browser.cookies[`__Host-${KNOWN}`] ?? '';
    for (const value of [
      '',
      'x',
      good.slice(1),
      good.slice(0, -4),
      `${good}=`,
      `${good.startsWith('A') ? 'B' : 'A'}${good.slice(1)}`,
      'A'.repeat(8000),
    ]) {
      browser.cookies[`__Host-${KNOWN}`] = value;
      expect(known.find(browser.request, person('alice'))).toBeUndefined();
    }
    known.remember(browser, person('alice'), now);
    expect(known.find(browser.request, person('alice'))).toBeDefined();
  });

  it('of a disabled person → none is made, and none is found', () => {
    const [known, browser] = [knownBrowsers(), aBrowser()];
    known.remember(browser, { subject: 'usr_a', credential: undefined }, now);
    expect(browser.cookies).toEqual({});
    known.remember(browser, person('a'), now);
    expect(known.find(browser.request, { ...person('a'), credential: undefined })).toBeUndefined();
  });
});
