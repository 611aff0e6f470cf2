import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { answerOf, hidden, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, CALLBACK, LEAVING_POLICY, NATIVE, PASSWORD, WEB, type World } from './sign-in-world.ts';

const SKIP = { ...WEB, consent: 'Skip' } as const;

async function signedIn(world: World): Promise<TestBrowser> {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  const fields = {
    username: 'alice',
    password: PASSWORD,
    csrf: hidden(page, 'csrf'),
    request: hidden(page, 'request'),
  };
  expect((await browser.post('/login', fields)).status).toBe(303);
  return browser;
}

describe('a request that has no client to be answered to', () => {
  it.each([
    ['no client', { client_id: undefined }, 'client_id_missing'],
    ['an unknown client', { client_id: '<b>mallory</b>' }, 'client_unknown'],
    ['a doubled client', { client_id: ['shop.web', 'shop.web'] }, 'client_id_duplicate'],
    ['no redirect URI', { redirect_uri: undefined }, 'redirect_uri_missing'],
    ['another redirect URI', { redirect_uri: 'https://evil.example/"><script>x' }, 'redirect_uri_mismatch'],
    ['a doubled redirect URI', { redirect_uri: [CALLBACK, CALLBACK] }, 'redirect_uri_duplicate'],
    ['a script as redirect URI', { redirect_uri: 'javascript:alert(1)' }, 'redirect_uri_mismatch'],
  ])(
    '(%s) gets a 400 page that goes nowhere, reflects nothing and shows a request id',
    async (_what, changes, reason) => {
      const world = await aWorld();
      const answer = await world.browser().get(world.authorizePath(changes));
      expect(answer.status).toBe(400);
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.location).toBeUndefined();
      expect(answer.body).not.toMatch(/mallory|evil|javascript|<script|st&te/);
      expect(answer.body).not.toMatch(/<a |<form/);
      expect(world.lastReason()).toBe(reason);
      const requestId = world.logs().at(-1)?.requestId;
      expect(requestId).toBeTruthy();
      expect(answer.body).toContain(`<code>${requestId}</code>`);
    },
  );

  it('names the registered client in the log line, and never what merely claims to be one', async () => {
    const world = await aWorld();
    const clientIdOf = async (changes: Parameters<World['authorizePath']>[0]) => {
      await world.browser().get(world.authorizePath(changes));
      return world.logs().at(-1)?.clientId;
    };
    expect(await clientIdOf({ redirect_uri: 'https://evil.example/' })).toBe(WEB.clientId);
    expect(await clientIdOf({ redirect_uri: undefined })).toBe(WEB.clientId);
    expect(await clientIdOf({ client_id: 'mallory' })).toBeUndefined();
  });

  it('is refused the same way for a signed-in person', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    expect((await browser.get(world.authorizePath({ redirect_uri: 'https://evil.example/' }))).status).toBe(400);
  });
});

describe('an error of a known client', () => {
  it.each([
    ['a response type', { response_type: 'token' }, 'unsupported_response_type'],
    ['no challenge', { code_challenge: undefined }, 'invalid_request'],
    ['the challenge method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a scope', { scope: 'shop/read admin' }, 'invalid_scope'],
    ['a resource', { resource: 'https://other.example/' }, 'invalid_target'],
    ['a doubled parameter', { scope: ['shop/read', 'shop/read'] }, 'invalid_request'],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
  ])('(%s) is redirected at once by 302 with state and iss, also without a sign-in', async (_what, changes, error) => {
    const world = await aWorld();
    const answer = await world.browser().get(world.authorizePath(changes));
    expect(answer.status).toBe(302);
    expect(answer.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    expect(answerOf(answer)).toMatchObject({ error, state: 'st&te= 1', iss: world.issuer });
  });
});

describe('a refused request', () => {
  it('is counted once by its error and its reason, on a page or at the client, and by nothing that it said', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const counted = async () => (await world.metrics()).match(/(?<=^grantry_token_errors_total)\{.*/gm) ?? [];
    const browser = await signedIn(world);
    expect((await browser.get(world.authorizePath())).status).toBe(302);
    expect(await counted()).toEqual([]);
    const ask = (changes: Parameters<World['authorizePath']>[0]) => browser.get(world.authorizePath(changes));
    await ask({ redirect_uri: 'https://evil.example/one' });
    await ask({ redirect_uri: 'https://evil.example/two' });
    await ask({ client_id: 'mallory' });
    await ask({ scope: 'shop/read admin' });
    world.breakStore('consents');
    await ask({});
    expect((await counted()).sort()).toEqual([
      '{endpoint="authorize",error="invalid_request",reason="client_unknown"} 1',
      '{endpoint="authorize",error="invalid_request",reason="redirect_uri_mismatch"} 2',
      '{endpoint="authorize",error="invalid_scope",reason="scope_not_registered"} 1',
      '{endpoint="authorize",error="temporarily_unavailable",reason="store_unavailable"} 1',
    ]);
  });
});

describe('a person not signed in', () => {
  it('gets the login page as the answer, and a cookie that identifies this browser', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    expect(page.status).toBe(200);
    expect(page.body).toContain('<h1>Sign in</h1>');
    expect(page.body).toContain('to continue to <bdi>Shop</bdi>');
    expect(page.body).not.toContain('<script');
    expect([...browser.cookies.keys()]).toEqual(['grantry-browser']);
    const again = await browser.get(world.authorizePath());
    expect(again.headers.getSetCookie()).toEqual([]);
  });

  it('leaves nothing in any store', async () => {
    const world = await aWorld();
    for (const name of Object.keys(world.stores) as (keyof typeof world.stores)[]) world.breakStore(name);
    for (let count = 0; count < 50; count += 1) {
      expect((await world.browser().get(world.authorizePath({ state: `${count}` }))).status).toBe(200);
    }
  });

  it('gets no state, challenge or redirect URI in a cookie', async () => {
    const world = await aWorld();
    const page = await world.browser().get(world.authorizePath({ state: 'canary-state' }));
    expect(page.headers.getSetCookie().join()).not.toMatch(/canary|shop|E9Mel/);
    expect(page.body).not.toContain('canary-state');
  });

  it('with a session cookie of no session, or of a form that we never make, gets the login page', async () => {
    const world = await aWorld();
    for (const value of ['A'.repeat(43), '', 'short', '"><script>']) {
      const browser = world.browser();
      browser.cookies.set('grantry-session', value);
      expect((await browser.get(world.authorizePath())).body).toContain('name="password"');
    }
  });
});

describe('a person signed in', () => {
  it('who need not be asked goes straight to the client by 302, with code, state and iss', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    const answer = await browser.get(world.authorizePath());
    expect(answer.status).toBe(302);
    const { code, ...rest } = answerOf(answer);
    expect(code).toMatch(/^ac1\./);
    expect(rest).toEqual({ state: 'st&te= 1', iss: world.issuer });
  });

  it('gets another code each time', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    const codes = await Promise.all([1, 2, 3].map(async () => answerOf(await browser.get(world.authorizePath())).code));
    expect(new Set(codes).size).toBe(3);
  });

  it('who must be asked goes to the consent page by 302', async () => {
    const world = await aWorld();
    const browser = await signedIn(world);
    const answer = await browser.get(world.authorizePath());
    expect(answer.status).toBe(302);
    expect(answer.location).toMatch(/^\/consent\/[A-Za-z0-9_-]{43}\?client=shop\.web$/);
  });

  it('and disabled since then is signed out and gets the login page', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    world.setDisabled(['alice']);
    expect((await browser.get(world.authorizePath())).body).toContain('name="password"');
    expect(world.events.at(-1)).toEqual({
      type: 'sessions.ended_all',
      subject: world.subject('alice'),
      reason: 'credential_changed',
    });
    world.setDisabled([]);
    expect((await browser.get(world.authorizePath())).body).toContain('name="password"');
  });

  it.each([
    ['everybody', { kind: 'global' }],
    ['this person', { kind: 'user', subject: 'usr__opn0Ky1LrfMdvbK8-HI2s' }],
    ['this client', { kind: 'client', clientUid: WEB.uid }],
    [
      'what this person let this client do',
      { kind: 'consent', clientUid: WEB.uid, subject: 'usr__opn0Ky1LrfMdvbK8-HI2s' },
    ],
  ] as const)('before a revocation for %s signs in again', async (_what, watermark) => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    world.advance(1000);
    await world.stores.watermarks.raise(watermark, world.now());
    world.advance(1000);
    const page = await browser.get(world.authorizePath());
    expect(page.body).toContain('name="password"');
    const fields = {
      username: 'alice',
      password: PASSWORD,
      csrf: hidden(page, 'csrf'),
      request: hidden(page, 'request'),
    };
    const answer = await browser.post('/login', fields);
    expect(answerOf(await browser.get(answer.location ?? '')).code).toMatch(/^ac1\./);
  });
});

describe('a fault of ours', () => {
  const STORES = ['sessions', 'watermarks', 'consents', 'grants'] as const;

  it('is reported to the client by 302 with state and iss: temporarily_unavailable while a store is unavailable', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    for (const name of STORES) {
      world.breakStore(name);
      const answer = await browser.get(world.authorizePath());
      expect(answer.status).toBe(302);
      expect(answer.location?.startsWith(`${CALLBACK}?`)).toBe(true);
      const { error_description: _text, ...rest } = answerOf(answer);
      expect(rest).toEqual({ error: 'temporarily_unavailable', state: 'st&te= 1', iss: world.issuer });
      expect(answer.headers.get('retry-after')).toBeNull();
      expect(world.logs().at(-1)).toMatchObject({ clientId: WEB.clientId, reason: 'store_unavailable' });
      world.mendStores();
    }
    expect(answerOf(await browser.get(world.authorizePath())).code).toMatch(/^ac1\./);
  });

  it.each([
    ['an error', new Error('broken')],
    ['what is no error', 'a mere text'],
  ])(
    'is server_error there when something unexpected throws %s, and its cause is in the log',
    async (_what, thrown) => {
      const world = await aWorld({ clients: [SKIP] });
      const browser = await signedIn(world);
      world.breakStore('grants', thrown);
      const answer = await browser.get(world.authorizePath());
      expect(answer.status).toBe(302);
      expect(answerOf(answer)).toMatchObject({ error: 'server_error', state: 'st&te= 1', iss: world.issuer });
      const line = world.logs().findLast(({ msg }) => msg === 'unexpected error');
      expect(line?.cause).toContain(thrown instanceof Error ? thrown.message : thrown);
    },
  );

  it('is logged with the first word of what the store said, which may quote what it was sent', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    const said = new Error("MISCONF cannot write 'planted'");
    world.breakStore('grants', new StoreUnavailableError('grantIssue', said, { reason: 'cannot_persist' }));
    expect((await browser.get(world.authorizePath())).status).toBe(302);
    const line = world.logs().findLast(({ msg }) => msg === 'store unavailable');
    expect(line).toMatchObject({ level: 'warn', operation: 'grantIssue', reason: 'cannot_persist' });
    expect(line?.cause).toMatch(/^caused by Error: MISCONF$/m);
    expect(line?.cause).not.toContain('planted');
  });

  it('redirects nowhere while client or redirect URI are not certain', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    for (const name of STORES) world.breakStore(name);
    for (const changes of [{ client_id: 'mallory' }, { redirect_uri: 'https://evil.example/' }]) {
      const answer = await browser.get(world.authorizePath(changes));
      expect([answer.status, answer.location]).toEqual([400, undefined]);
    }
  });

  it('on the way back is reported to the client once it is certain, and before that on a page that may be reloaded', async () => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const { location = '' } = await browser.post('/login', { username: 'alice', password: PASSWORD, ...fields });
    expect(location).toMatch(/^\/authorize\/resume\//);
    for (const name of ['sessions', 'interactions'] as const) {
      world.breakStore(name);
      const answer = await browser.get(location);
      expect([answer.status, answer.location, answer.headers.get('retry-after')]).toEqual([503, undefined, '1']);
      world.mendStores();
    }
    world.breakStore('grants');
    const answer = await browser.get(location);
    expect(answer.status).toBe(302);
    const expected = { error: 'temporarily_unavailable', state: 'st&te= 1', iss: world.issuer };
    expect(answerOf(answer)).toMatchObject(expected);
  });
});

describe('/authorize', () => {
  it.each(['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s with 405 and Allow: GET', async (method) => {
    const world = await aWorld({ clients: [SKIP] });
    const browser = await signedIn(world);
    const answer = await browser.send(method, world.authorizePath(), { origin: 'https://shop.example' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET');
    expect(answer.location).toBeUndefined();
  });

  it('has no CORS', async () => {
    const world = await aWorld({ clients: [{ ...SKIP, allowedCorsOrigins: ['https://shop.example'] }] });
    const answer = await world.browser().get(world.authorizePath(), { origin: 'https://shop.example' });
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it.each([
    'https://shop.example/callback',
    'http://127.0.0.1:49152/callback',
    'http://[::1]:49152/callback',
    'com.example.app:/callback',
  ])('lets forms of the login page end at %s and wherever it redirects on', async (redirectUri) => {
    const world = await aWorld();
    const client = redirectUri === CALLBACK ? WEB : NATIVE;
    const page = await world
      .browser()
      .get(world.authorizePath({ client_id: client.clientId, redirect_uri: redirectUri }));
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toBe(LEAVING_POLICY);
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  });
});

describe('the style sheet and the icon', () => {
  it('are ours, kept for a year, and at paths that change with them', async () => {
    const world = await aWorld({ issuer: 'https://auth.example.com/tenant' });
    const page = await world.browser().get(world.authorizePath());
    const paths = [...page.body.matchAll(/<link [^>]*href="([^"]*)"/g)].map(([, path]) => path ?? '');
    expect(paths).toEqual([
      expect.stringMatching(/^\/tenant\/assets\/style\.[0-9a-f]{16}\.css$/),
      expect.stringMatching(/^\/tenant\/assets\/icon\.[0-9a-f]{16}\.svg$/),
    ]);
    for (const [path, type] of [
      [paths[0] ?? '', 'text/css; charset=utf-8'],
      [paths[1] ?? '', 'image/svg+xml'],
    ] as const) {
      const asset = await world.browser().get(path);
      expect(asset.status).toBe(200);
      expect(asset.headers.get('content-type')).toBe(type);
      expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
    expect((await world.browser().get('/tenant/assets/style.css')).status).toBe(404);
  });

  it('are linked from error pages too', async () => {
    const world = await aWorld();
    const page = await world.browser().get('/nowhere');
    expect(page.status).toBe(404);
    expect(page.body).toMatch(/href="\/assets\/style\.[0-9a-f]{16}\.css"/);
  });
});
