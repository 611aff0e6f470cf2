// A login form that is refused: the redirect to its page, and that page, which a browser may load as often as it likes.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SealedRequests } from '../../../src/http/cookies/sealed-request.ts';
import type { LoginProblem } from '../../../src/http/pages/login-page.ts';
import { hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, PASSWORD, WEB, type World } from './sign-in-world.ts';

const BROWSER = 'grantry-browser';

function form(page: Page, fields: Readonly<Record<string, string>> = {}): Record<string, string> {
  const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return Object.assign({ username: 'alice', password: 'wrong' }, sealed, fields);
}

async function refuse(
  world: World,
  browser: TestBrowser,
  { path = world.authorizePath(), fields = {} }: { path?: string; fields?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const { status, location = '' } = await browser.submit('/login', form(await browser.get(path), fields));
  expect([status, location]).toEqual([303, expect.stringMatching(/^\/login\?refused=[\w-]+$/)]);
  return location;
}

const usernameOn = ({ body }: Page) => /maxlength="254" value="([^"]*)"/.exec(body)?.[1];
const hasProblem = ({ body }: Page) => body.includes('class="problem"');

describe('a login form that is refused', () => {
  it.each<[string, Readonly<Record<string, string>>, string, string]>([
    ['a wrong password', {}, 'alice', 'credentials_wrong'],
    ['an unknown name', { username: 'mallory' }, 'mallory', 'credentials_wrong'],
    ['no password', { password: '' }, 'alice', 'credentials_missing'],
    ['a password of 1024 characters', { password: 'p'.repeat(1024) }, 'alice', 'credentials_wrong'],
  ])('given %s → 303, then 422 with the name and the problem, as often as it is loaded', async (...row) => {
    const [, fields, username, reason] = row;
    const world = await aWorld();
    const browser = world.browser();
    const location = await refuse(world, browser, { fields });
    expect(world.lastReason()).toBe(reason);
    for (let count = 0; count < 10; count += 1) {
      const page = await browser.get(location);
      expect([page.status, usernameOn(page), hasProblem(page)]).toEqual([422, username, true]);
      expect(page.headers.get('cache-control')).toBe('no-store');
    }
    expect((await browser.post('/login', form(await browser.get(location), { password: PASSWORD }))).status).toBe(303);
    const failures = world.events.filter(({ type }) => type === 'login.failed');
    expect(failures).toHaveLength(reason === 'credentials_missing' ? 0 : 1);
  });

  it('the redirect has no text of the form, and the same length for a name that exists and one that does not', async () => {
    const world = await aWorld();
    const locations = await Promise.all(
      ['alice', 'malle'].map((username) => refuse(world, world.browser(), { fields: { username } })),
    );
    const [first = '', second = ''] = locations.map((location) => location.slice('/login?refused='.length));
    expect(first).toHaveLength(second.length);
    const bytes = Buffer.from(first, 'base64url').toString('latin1');
    for (const word of ['alice', 'wrong', WEB.clientId]) expect([first, bytes].join()).not.toContain(word);
  });

  it.each<[string, (world: World) => Promise<TestBrowser>]>([
    ['without a cookie', async (world) => world.browser()],
    [
      'with a cookie of its own',
      async (world) => {
        const other = world.browser();
        await other.get(world.authorizePath());
        expect(other.cookies.has(BROWSER)).toBe(true);
        return other;
      },
    ],
  ])('loaded by another browser %s → the page of an expired one, without the name', async (_what, another) => {
    const world = await aWorld();
    const location = await refuse(world, world.browser(), { fields: { username: 'a-typed-name' } });
    const page = await (await another(world)).get(location);
    expect([page.status, world.lastReason()]).toEqual([400, 'interaction_expired']);
    expect(page.body).not.toContain('a-typed-name');
  });

  it.each(['', 'A', 'A'.repeat(4096)])('given a made-up text %# → the page of an expired one', async (text) => {
    const world = await aWorld();
    const browser = world.browser();
    await browser.get(world.authorizePath());
    expect((await browser.get(`/login?refused=${text}`)).status).toBe(400);
    expect(world.lastReason()).toBe('interaction_expired');
  });

  it('given two of them → 400', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const location = await refuse(world, browser);
    expect((await browser.get(`${location}&refused=A`)).status).toBe(400);
    expect(world.lastReason()).toBe('duplicate_parameter');
  });

  it('lasts ten minutes, as the form does', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const location = await refuse(world, browser);
    world.advance(599_999);
    expect((await browser.get(location)).status).toBe(422);
    world.advance(1);
    expect((await browser.get(location)).status).toBe(400);
    expect(world.lastReason()).toBe('interaction_expired');
  });

  it('above the limit → the seconds that are left, then no problem; loading it is no attempt', async () => {
    const world = await aWorld();
    const browser = world.browser();
    for (let count = 0; count < 5; count += 1) await refuse(world, browser);
    const location = await refuse(world, browser, { fields: { password: PASSWORD } });
    expect(world.lastReason()).toBe('login_rate_limited');
    const shown = async () => {
      const page = await browser.get(location);
      return [page.status, page.headers.get('retry-after'), hasProblem(page), usernameOn(page)];
    };
    expect(await shown()).toEqual([429, '60', true, 'alice']);
    world.advance(59_999);
    expect(await shown()).toEqual([429, '1', true, 'alice']);
    world.advance(1);
    expect(await shown()).toEqual([200, null, false, 'alice']);
    const page = await browser.get(location);
    expect((await browser.post('/login', form(page, { password: PASSWORD }))).status).toBe(303);
    const counted = (await world.metrics()).match(/^grantry_rate_limited_total\{.*$/gm);
    expect(counted).toEqual(['grantry_rate_limited_total{limit="login_rate_limited"} 1']);
  });

  it('given a request that is too long for an address → the page at once', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const page = await browser.get(world.authorizePath({ state: 's'.repeat(3000) }));
    const answer = await browser.submit('/login', form(page));
    expect([answer.status, answer.location, usernameOn(answer)]).toEqual([422, undefined, 'alice']);
    expect(world.logs().findLast(({ route }) => route === 'login')).toMatchObject({ reason: 'credentials_wrong' });
    expect((await browser.post('/login', form(answer, { password: PASSWORD }))).status).toBe(303);
  });

  it('given ever longer requests → an address up to 3 KiB, and above that the page at once', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const lengths: number[] = [];
    for (let length = 1400; lengths.at(-1) !== 0; length += 40) {
      const page = await browser.get(world.authorizePath({ state: 's'.repeat(length) }));
      const { location } = await browser.submit('/login', form(page, { password: '' }));
      lengths.push(location === undefined ? 0 : location.length - '/login?refused='.length);
    }
    expect(Math.max(...lengths)).toBeGreaterThan(2900);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(3072);
  });

  it('with a provider that could not be reached → that it cannot, for the ten seconds of Retry-After', async () => {
    const pepper = randomBytes(32);
    const world = await aWorld({ pepper });
    const browser = world.browser();
    await browser.get('/account');
    const sealed = new SealedRequests({
      issuer: world.issuer,
      peppers: [pepper],
      clock: world,
      random: { bytes: (count) => randomBytes(count) },
    }).seal({ path: '/account' }, browser.cookies.get(BROWSER) ?? '', {
      username: undefined,
      problem: { kind: 'unavailable', provider: 'Corp' },
    });
    const shown = async () => {
      const page = await browser.get(`/login?refused=${sealed}`);
      return [page.status, page.headers.get('retry-after'), hasProblem(page)];
    };
    expect(await shown()).toEqual([503, '10', true]);
    world.advance(9999);
    expect(await shown()).toEqual([503, '10', true]);
    world.advance(1);
    expect(await shown()).toEqual([200, null, false]);
  });

  it('loaded again once the person is signed in → signs in again', async () => {
    const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
    const browser = world.browser();
    const location = await refuse(world, browser);
    const right = { password: PASSWORD };
    expect((await browser.post('/login', form(await browser.get(location), right))).status).toBe(303);
    const again = await browser.post('/login', form(await browser.get(location), right));
    expect(again.location).toMatch(/^\/authorize\/resume\//);
  });

  it('for the account, under an issuer with a path → its page there, and on to the account', async () => {
    const world = await aWorld({ issuer: 'https://auth.example.com/tenant' });
    const browser = world.browser();
    const page = await browser.get('/tenant/account');
    const { location = '' } = await browser.submit('/tenant/login', form(page));
    expect(location).toMatch(/^\/tenant\/login\?refused=/);
    const refused = await browser.get(location);
    expect(refused.status).toBe(422);
    const { location: next } = await browser.post('/tenant/login', form(refused, { password: PASSWORD }));
    expect(next).toBe('/tenant/account');
  });

  it('of a client that is gone since → 400; of one that lost the scope → the error at the client', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const location = await refuse(world, browser);
    world.setClients([{ ...WEB, scopes: ['shop/write'], defaultScopes: [] }]);
    const answer = await browser.get(location);
    expect([answer.status, new URL(answer.location ?? '').searchParams.get('error')]).toEqual([302, 'invalid_scope']);
    world.setClients([]);
    expect((await browser.get(location)).status).toBe(400);
    expect(world.lastReason()).toBe('client_gone');
  });

  it('with a problem that only another version of this server knows → the form with the name, and no problem', async () => {
    const pepper = randomBytes(32);
    const world = await aWorld({ pepper });
    const browser = world.browser();
    await browser.get('/account');
    const sealed = new SealedRequests({
      issuer: world.issuer,
      peppers: [pepper],
      clock: world,
      random: { bytes: (count) => randomBytes(count) },
    }).seal({ path: '/account' }, browser.cookies.get(BROWSER) ?? '', {
      username: 'alice',
      problem: { kind: 'toString' } as unknown as LoginProblem,
    });
    const page = await browser.get(`/login?refused=${sealed}`);
    expect([page.status, usernameOn(page), hasProblem(page)]).toEqual([200, 'alice', false]);
  });
});
