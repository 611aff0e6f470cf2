import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LoginLimit } from '../../../src/http/sign-in/login-limit.ts';
import { LocalUsers } from '../../../src/login/local/local-users.ts';
import { hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, CALLBACK, PASSWORD, WEB, type World } from './sign-in-world.ts';

const SESSION = 'grantry-session';

function form(page: Page, fields: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    username: 'alice',
    password: PASSWORD,
    csrf: hidden(page, 'csrf'),
    request: hidden(page, 'request'),
    ...fields,
  };
}

async function atLogin(world: World): Promise<{ browser: TestBrowser; page: Page }> {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  expect(page.status).toBe(200);
  return { browser, page };
}

describe('the right password', () => {
  it('signs in and goes on to the consent page by 303', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const answer = await browser.post('/login', form(page));
    expect(answer.status).toBe(303);
    expect(answer.location).toMatch(/^\/consent\/[A-Za-z0-9_-]{43}\?client=shop\.web$/);
    expect(browser.cookies.get(SESSION)).toMatch(/^\d{3}\.[A-Za-z0-9_-]{43}$/);
    expect(world.events.filter(({ type }) => type === 'login.succeeded')).toEqual([
      { type: 'login.succeeded', subject: world.subject('alice'), clientId: WEB.clientId, address: '127.0.0.1' },
    ]);
  });

  it('sets a session cookie that scripts and other sites cannot use', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const answer = await browser.post('/login', form(page));
    const line = answer.headers.getSetCookie().find((cookie) => cookie.startsWith(SESSION)) ?? '';
    expect(line.split('; ').slice(1).sort()).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax']);
  });

  it('sets __Host- cookies with Secure under an https issuer, with Path=/ also when the issuer has a path', async () => {
    const world = await aWorld({ issuer: 'https://auth.example.com/tenant' });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    expect(page.body).toContain('action="/tenant/login"');
    const answer = await browser.post('/tenant/login', form(page));
    expect(answer.status).toBe(303);
    expect(answer.location).toMatch(/^\/tenant\/consent\//);
    expect([...browser.cookies.keys()].sort()).toEqual([
      '__Host-grantry-browser',
      '__Host-grantry-known',
      '__Host-grantry-session',
    ]);
    for (const line of [...page.headers.getSetCookie(), ...answer.headers.getSetCookie()]) {
      const attributes = line.split('; ').slice(1).sort();
      const lasts = line.startsWith('__Host-grantry-known=') ? ['Max-Age=34560000'] : [];
      expect(attributes).toEqual(['HttpOnly', ...lasts, 'Path=/', 'SameSite=Lax', 'Secure']);
    }
  });

  it('keeps only a hash of the session cookie in the store', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    await browser.post('/login', form(page));
    const cookie = browser.cookies.get(SESSION) ?? '';
    expect(await world.stores.sessions.use(cookie)).toBeUndefined();
  });

  it('goes on to the way back at once when consent was given before', async () => {
    const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
    const { browser, page } = await atLogin(world);
    const answer = await browser.post('/login', form(page));
    expect(answer.status).toBe(303);
    expect(answer.location).toMatch(/^\/authorize\/resume\//);
  });
});

describe('a session id', () => {
  it('that was planted before the sign-in is not taken over', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const planted = 'A'.repeat(43);
    browser.cookies.set(SESSION, planted);
    await browser.post('/login', form(page));
    expect(browser.cookies.get(SESSION)).not.toBe(planted);
    const attacker = world.browser();
    attacker.cookies.set(SESSION, planted);
    expect((await attacker.get(world.authorizePath())).body).toContain('name="password"');
  });

  it('is new at each sign-in, and the former one has ended', async () => {
    const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
    const { browser, page } = await atLogin(world);
    await browser.post('/login', form(page));
    const former = browser.cookies.get(SESSION) ?? '';
    await browser.post('/login', form(page));
    expect(browser.cookies.get(SESSION)).not.toBe(former);
    const other = world.browser();
    other.cookies.set(SESSION, former);
    expect((await other.get(world.authorizePath())).body).toContain('name="password"');
    expect((await browser.get(world.authorizePath())).status).toBe(302);
    expect(world.events.filter(({ type }) => type === 'session.ended')).toEqual([
      { type: 'session.ended', subject: world.subject('alice'), reason: 'signed_in_again' },
    ]);
  });

  it.each([
    ['an hour without use', 3_600_000, 1],
    ['twelve hours of use', 1_800_000, 24],
  ])('ends after %s', async (_what, step, steps) => {
    const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
    const { browser, page } = await atLogin(world);
    await browser.post('/login', form(page));
    for (let count = 1; count < steps; count += 1) {
      world.advance(step);
      expect((await browser.get(world.authorizePath())).status).toBe(302);
    }
    world.advance(step);
    expect((await browser.get(world.authorizePath())).body).toContain('name="password"');
  });
});

describe('a wrong password', () => {
  it('is answered 422 with the page again: the name kept, the password not, the error first in focus', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const answer = await browser.post('/login', form(page, { password: 'wrong-canary' }));
    expect(answer.status).toBe(422);
    expect(answer.body).toContain('value="alice"');
    expect(answer.body).not.toContain('wrong-canary');
    expect(answer.body).toMatch(/<div class="problem" role="alert" tabindex="-1" autofocus/);
    expect(browser.cookies.has(SESSION)).toBe(false);
    expect((await browser.post('/login', form(answer))).status).toBe(303);
  });

  it('leaves an audit line that names neither what was typed nor a person', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    await browser.post('/login', form(page, { username: 'typed-name', password: 'wrong' }));
    expect(world.events).toEqual([
      { type: 'login.failed', clientId: WEB.clientId, reason: 'credentials_wrong', address: '127.0.0.1' },
    ]);
  });

  it('for a name that exists → the audit line has its subject, also of a disabled person and above the limit', async () => {
    const world = await aWorld({ disabled: ['bob'] });
    const { browser, page } = await atLogin(world);
    const fail = (username: string) => browser.post('/login', form(page, { username, password: 'wrong' }));
    for (let count = 0; count < 6; count += 1) await fail('alice');
    await fail('bob');
    const common = { type: 'login.failed', clientId: WEB.clientId, address: '127.0.0.1' };
    expect(world.events).toEqual([
      ...Array(5).fill({ ...common, subject: world.subject('alice'), reason: 'credentials_wrong' }),
      { ...common, subject: world.subject('alice'), reason: 'login_rate_limited' },
      { ...common, subject: world.subject('bob'), reason: 'credentials_wrong' },
    ]);
  });

  it('looks the same for an unknown and for a disabled user', async () => {
    const world = await aWorld({ disabled: ['bob'] });
    const pages = await Promise.all(
      ['alice', 'bob', 'mallory'].map(async (username) => {
        const { browser, page } = await atLogin(world);
        const answer = await browser.post('/login', form(page, { username, password: 'wrong' }));
        const body = answer.body.replaceAll(username, 'NAME').replace(/(name="(request|csrf)" value=")[^"]*/g, '$1');
        return { status: answer.status, body };
      }),
    );
    expect(pages[1]).toEqual(pages[0]);
    expect(pages[2]).toEqual(pages[0]);
  });

  it('may be the right one of a disabled user', async () => {
    const world = await aWorld({ disabled: ['alice'] });
    const { browser, page } = await atLogin(world);
    expect((await browser.post('/login', form(page))).status).toBe(422);
  });

  it.each([
    ['username', { username: '' }, ['username']],
    ['password', { password: '' }, ['password']],
    ['both', { username: '', password: '' }, ['username', 'password']],
  ])('that is no attempt (%s left empty) is asked for and not counted', async (_what, fields, missing) => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    for (let count = 0; count < 7; count += 1) {
      const answer = await browser.post('/login', form(page, fields));
      expect(answer.status).toBe(422);
      for (const name of missing) {
        expect(answer.body).toContain(`aria-invalid="true" aria-describedby="${name}-error"`);
        expect(answer.body).toContain(`<a href="#${name}">`);
      }
    }
    expect(world.events).toEqual([]);
  });

  it('keeps a hostile name as text', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const username = '"><script>alert(1)</script><img src=x onerror=alert(2)>';
    const answer = await browser.post('/login', form(page, { username }));
    expect(answer.body).not.toContain('<script');
    expect(answer.body).not.toContain('<img');
    expect(answer.body).toContain('&#34;&#62;&#60;script&#62;');
  });
});

describe('a login form', () => {
  const fault: [string, (page: Page) => Record<string, string>, Record<string, string>, string][] = [
    ['another site posts', (page) => form(page), { origin: 'https://evil.example' }, 'interaction_foreign_origin'],
    [
      'another site posts without an origin',
      (page) => form(page),
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      'interaction_foreign_origin',
    ],
    ['has no csrf value', (page) => form(page, { csrf: '' }), {}, 'interaction_bad_csrf'],
    ['has another csrf value', (page) => form(page, { csrf: 'A'.repeat(43) }), {}, 'interaction_bad_csrf'],
    ['has no request', (page) => form(page, { request: '' }), {}, 'interaction_request_missing'],
    [
      'has a tampered request',
      (page) => form(page, { request: `${hidden(page, 'request').slice(0, -6)}AAAAAA` }),
      {},
      'interaction_bad_csrf',
    ],
  ];
  it.each(fault)('that %s gets the 400 page and no session', async (_what, fields, headers, reason) => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const answer = await browser.post('/login', fields(page), headers);
    expect(answer.status).toBe(400);
    expect(answer.location).toBeUndefined();
    expect(browser.cookies.has(SESSION)).toBe(false);
    expect(world.lastReason()).toBe(reason);
  });

  it('posted under no-referrer (Origin: null) from our own page is accepted', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const headers = { origin: 'null', 'sec-fetch-site': 'same-origin' };
    expect((await browser.post('/login', form(page), headers)).status).toBe(303);
  });

  it('of another browser gets the 400 page', async () => {
    const world = await aWorld();
    const { page } = await atLogin(world);
    const stranger = world.browser();
    expect((await stranger.post('/login', form(page))).status).toBe(400);
    await stranger.get(world.authorizePath());
    expect((await stranger.post('/login', form(page))).status).toBe(400);
    expect(world.lastReason()).toBe('interaction_bad_csrf');
  });

  it('expires in ten minutes', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    world.advance(600_000);
    expect((await browser.post('/login', form(page))).status).toBe(400);
    expect(world.lastReason()).toBe('interaction_expired');
  });

  it('with a doubled field gets the 400 page', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    for (const name of ['username', 'password', 'csrf', 'request']) {
      const fields = Object.entries(form(page));
      const doubled = fields.filter(([field]) => field === name);
      expect((await browser.post('/login', [...fields, ...doubled])).status).toBe(400);
      expect(world.lastReason()).toBe('duplicate_parameter');
    }
  });

  it('cannot change the request by further fields, and follows no return address', async () => {
    const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
    const { browser, page } = await atLogin(world);
    const further = {
      redirect_uri: 'https://evil.example/',
      client_id: 'evil',
      scope: 'shop/write',
      state: 'other',
      return_to: 'https://evil.example/',
      next: '//evil.example',
    };
    const answer = await browser.post('/login', form(page, further));
    expect(answer.location).toMatch(/^\/authorize\/resume\//);
    const back = await browser.get(answer.location ?? '');
    expect(back.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    expect(new URL(back.location ?? '').searchParams.get('state')).toBe('st&te= 1');
  });

  it('of a client that is gone by now gets the 400 page, before the password is checked', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    world.setClients([]);
    expect((await browser.post('/login', form(page))).status).toBe(400);
    expect(world.lastReason()).toBe('client_gone');
    expect(browser.cookies.has(SESSION)).toBe(false);
  });

  it('of a client that lost the scope by now is answered at the client, by 303', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    world.setClients([{ ...WEB, scopes: ['shop/write'], defaultScopes: [] }]);
    const answer = await browser.post('/login', form(page));
    expect(answer.status).toBe(303);
    expect(new URL(answer.location ?? '').searchParams.get('error')).toBe('invalid_scope');
  });

  it('is only posted: GET and HEAD sign no person in, and lead to the account page without the query', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const fields = new URLSearchParams(form(await browser.get(world.authorizePath())));
    for (const name of ['username', 'password']) fields.delete(name);
    for (const method of ['GET', 'HEAD']) {
      const answer = await browser.send(method, `/login?${fields}`, {});
      expect([method, answer.status, answer.location]).toEqual([method, 302, '/account']);
    }
  });
});

describe('the limit on sign-in', () => {
  async function fail(browser: TestBrowser, page: Page, times: number, username = 'alice'): Promise<number[]> {
    const statuses: number[] = [];
    for (let count = 0; count < times; count += 1) {
      statuses.push((await browser.post('/login', form(page, { username, password: 'wrong' }))).status);
    }
    return statuses;
  }

  it('stops the sixth attempt on a user within a minute, also with the right password', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    expect(await fail(browser, page, 5)).toEqual([422, 422, 422, 422, 422]);
    const answer = await browser.post('/login', form(page));
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe('60');
    expect(answer.body).toContain('60 seconds');
    expect(browser.cookies.has(SESSION)).toBe(false);
    expect(world.events.at(-1)).toMatchObject({ type: 'login.failed', reason: 'login_rate_limited' });
    expect(await world.metrics()).toContain('grantry_rate_limited_total{limit="login_rate_limited"} 1');
  });

  it('ends after a minute', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    await fail(browser, page, 6);
    world.advance(60_000);
    expect((await browser.post('/login', form(page))).status).toBe(303);
  });

  it('does not lock the user out at another address', async () => {
    const world = await aWorld({ trustedProxies: ['127.0.0.1'] });
    const { browser, page } = await atLogin(world);
    const attacker = { 'x-forwarded-for': '203.0.113.9' };
    for (let count = 0; count < 10; count += 1) {
      await browser.post('/login', form(page, { password: 'wrong' }), attacker);
    }
    expect((await browser.post('/login', form(page), attacker)).status).toBe(429);
    expect((await browser.post('/login', form(page), { 'x-forwarded-for': '198.51.100.7' })).status).toBe(303);
  });

  it('counts all addresses of an IPv6 /64 as one', async () => {
    const world = await aWorld({ trustedProxies: ['127.0.0.1'] });
    const { browser, page } = await atLogin(world);
    const from = (host: number) => ({ 'x-forwarded-for': `2001:db8:1:2::${host}` });
    for (let host = 1; host <= 5; host += 1) {
      await browser.post('/login', form(page, { password: 'wrong' }), from(host));
    }
    expect((await browser.post('/login', form(page), from(6))).status).toBe(429);
  });

  it('does not concern another user at the same address', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    await fail(browser, page, 6);
    expect((await browser.post('/login', form(page, { username: 'bob' }))).status).toBe(303);
  });

  it('holds for an address that tries one name after another', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const fields = form(page, { username: `user-${index}`, password: 'wrong' });
        return (await browser.post('/login', fields)).status;
      }),
    );
    expect(statuses.filter((status) => status === 422)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  });

  it('does not count right passwords', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    for (let count = 0; count < 8; count += 1) {
      expect((await browser.post('/login', form(page))).status).toBe(303);
    }
  });

  it('verifies no more than five of many guesses made at once', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const guesses = Array.from({ length: 20 }, () => browser.post('/login', form(page, { password: 'wrong' })));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 422)).toHaveLength(5);
  });

  it('is for one person 300 sessions in ten minutes, wherever they come from, and for no other person', async () => {
    const world = await aWorld({ trustedProxies: ['127.0.0.1'] });
    const { browser, page } = await atLogin(world);
    const limit = new LoginLimit({
      ...world,
      store: world.stores.rateLimits,
      clock: world,
      pepper: new Uint8Array(32),
    });
    for (let count = 1; count < 300; count += 1) expect(await limit.signedIn(world.subject('alice'))).toBe(0);
    const signIn = (from: number, fields = {}) =>
      browser.post('/login', form(page, fields), { 'x-forwarded-for': `198.51.100.${from}` });
    expect((await signIn(1)).status).toBe(303);
    browser.cookies.delete(SESSION);
    const answer = await signIn(2);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '600']);
    expect(browser.cookies.has(SESSION)).toBe(false);
    expect((await signIn(3, { username: 'bob' })).status).toBe(303);
    world.advance(599_999);
    expect((await signIn(4)).status).toBe(429);
    world.advance(1);
    const fresh = await atLogin(world);
    expect((await fresh.browser.post('/login', form(fresh.page))).status).toBe(303);
  });

  it('is off when rate limits are off', async () => {
    const world = await aWorld({ rateLimits: false });
    const { browser, page } = await atLogin(world);
    expect(await fail(browser, page, 8)).not.toContain(429);
    expect((await browser.post('/login', form(page))).status).toBe(303);
  });
});

describe('a sign-in that cannot be verified now', () => {
  it('because too many others wait is answered 503 with Retry-After, and counts for nothing', async () => {
    const world = await aWorld({ hashing: { concurrent: 1, waiting: 0 } });
    const { browser, page } = await atLogin(world);
    const attempts = await Promise.all(Array.from({ length: 12 }, () => browser.post('/login', form(page))));
    const busy = attempts.filter(({ status }) => status === 503);
    expect(busy.length).toBeGreaterThan(0);
    expect(busy[0]?.headers.get('retry-after')).toBe('5');
    expect(attempts.every(({ status }) => status === 303 || status === 503)).toBe(true);
    expect((await browser.post('/login', form(page))).status).toBe(303);
  });

  it('for any other reason counts for nothing either, and why is in the log', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    const broken = form(page, { username: 'alice' });
    const authenticate = vi.spyOn(LocalUsers.prototype, 'authenticate').mockRejectedValue(new Error('users broken'));
    onTestFinished(() => authenticate.mockRestore());
    for (let count = 0; count < 7; count += 1) expect((await browser.post('/login', broken)).status).toBe(500);
    expect(world.logs().findLast(({ msg }) => msg === 'unexpected error')?.cause).toContain('users broken');
    authenticate.mockRestore();
    expect((await browser.post('/login', form(page))).status).toBe(303);
  });

  it('because the store is unavailable is answered 503 with Retry-After', async () => {
    const world = await aWorld();
    const { browser, page } = await atLogin(world);
    world.breakStore('sessions');
    const answer = await browser.post('/login', form(page));
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(answer.headers.get('content-type')).toContain('text/html');
  });
});
