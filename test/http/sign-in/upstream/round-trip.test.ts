// Sign-in by an identity provider over HTTP: from the authorization request to the provider and back to the client.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { json, ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, LEAVING_POLICY, WEB, type World } from '../sign-in-world.ts';

const ADA = {
  preferred_username: 'ada',
  name: 'Ada Lovelace',
  email: 'ada@corp.example.com',
  email_verified: true,
  groups: ['dev'],
};
const SKIPS_CONSENT = Object.assign({}, WEB, { consent: 'Skip' as const });
const OPENID = Object.assign({}, SKIPS_CONSENT, {
  scopes: ['openid', 'profile', 'email', 'groups'],
  grantTypes: ['authorization_code', 'refresh_token'],
});

let upstream: ScriptedProvider;
let other: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  other = await ScriptedProvider.start();
});
afterAll(() => {
  upstream.stop();
  other.stop();
});
beforeEach(() => {
  upstream.claims = ADA;
  upstream.answers.clear();
  upstream.redeemed.length = 0;
});

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes));
const partner = () =>
  anOidcProvider({ name: 'partner', uid: 'uid-partner', displayName: 'Partner', issuer: other.issuer });

/** Of one provider and no local users, unless `options` say otherwise. */
function worldOf(options: Parameters<typeof aWorld>[0] = {}): Promise<World> {
  return aWorld(Object.assign({ clients: [SKIPS_CONSENT], providers: [corp()], hasNoUsers: true }, options));
}

/** The request that a redirect to the provider is. */
function signInOf(page: Page): URLSearchParams {
  const url = new URL(page.location ?? '');
  expect(`${url.origin}${url.pathname}`).toBe(`${upstream.issuer}/authorize`);
  upstream.nonce = url.searchParams.get('nonce') ?? '';
  return url.searchParams;
}

interface Return {
  readonly name?: string;
  readonly query?: string;
}

/** The browser comes back from the provider. */
function comeBack(
  browser: TestBrowser,
  upstreamRequest: URLSearchParams,
  { name = 'corp', query = 'code=c1' }: Return = {},
) {
  return browser.get(`/login/callback/${name}?state=${upstreamRequest.get('state')}&${query}`);
}

/** Follows redirects of this server to the client. */
async function toTheClient(browser: TestBrowser, page: Page): Promise<Page> {
  let at = page;
  while (at.location?.startsWith('/')) at = await browser.get(at.location);
  return at;
}

async function signIn(world: World, browser = world.browser(), path = world.authorizePath()): Promise<Page> {
  const upstreamRequest = signInOf(await browser.get(path));
  return await toTheClient(browser, await comeBack(browser, upstreamRequest));
}

describe('one provider, and no other way to sign in', () => {
  it('→ straight through to it, and back with a code', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    expect(page.status).toBe(302);
    const upstreamRequest = signInOf(page);
    expect(upstreamRequest.get('redirect_uri')).toBe(`${world.issuer}/login/callback/corp`);
    expect(world.storeCalls().filter((call) => !call.startsWith('rateLimits'))).toEqual([]);
    const arrived = await toTheClient(browser, await comeBack(browser, upstreamRequest));
    expect(arrived.location).toMatch(CALLBACK);
    expect(answerOf(arrived)).toMatchObject({ code: expect.anything(), state: 'st&te= 1' });
    expect(world.events).toEqual([
      expect.objectContaining({ type: 'login.succeeded', provider: 'corp', subject: expect.stringMatching(/^usr_/) }),
    ]);
    expect([...browser.cookies.keys()].filter((name) => name.includes('away'))).toEqual([]);
  });

  it('a second visit → the session, without the provider', async () => {
    const world = await worldOf();
    const browser = world.browser();
    await signIn(world, browser);
    expect((await browser.get(world.authorizePath())).location).toMatch(CALLBACK);
    expect(upstream.redeemed).toHaveLength(1);
  });

  it('prompt=none → the error, and no redirect to the provider', async () => {
    const world = await worldOf({
      clients: [Object.assign({}, SKIPS_CONSENT, { scopes: ['openid'], defaultScopes: ['openid'] })],
    });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath({ scope: 'openid', prompt: 'none' }));
    expect(page.location?.startsWith(upstream.issuer) ?? false).toBe(false);
    expect(browser.cookies.size).toBe(0);
  });

  it('login_hint and ui_locales → go on to it; tags that are none do not', async () => {
    const scopes = [...OPENID.scopes, ...(WEB.scopes ?? [])];
    const world = await worldOf({ clients: [Object.assign({}, OPENID, { scopes })] });
    const sent = { scope: 'openid', login_hint: 'ada@corp.example.com', ui_locales: 'de-AT <b> en' };
    const upstreamRequest = signInOf(await world.browser().get(world.authorizePath(sent)));
    expect(upstreamRequest.get('login_hint')).toBe('ada@corp.example.com');
    expect(upstreamRequest.get('ui_locales')).toBe('de-AT en');
    const plain = signInOf(await world.browser().get(world.authorizePath({ ui_locales: 'fr', login_hint: 'ada' })));
    expect([plain.get('ui_locales'), plain.get('login_hint')]).toEqual(['fr', null]);
  });

  it('a state of 4 KiB → travels along', async () => {
    const world = await worldOf();
    const state = Array.from({ length: 1024 }, (_, index) => (index * 7919).toString(36).padStart(4, '0'))
      .join('')
      .slice(0, 4096);
    const page = await signIn(world, world.browser(), world.authorizePath({ state }));
    expect(answerOf(page).state).toBe(state);
  });
});

describe('several ways to sign in', () => {
  it('→ a page with a password and a button each, which leads to the provider', async () => {
    const world = await worldOf({ providers: [corp(), partner()], hasNoUsers: false });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    expect(page.body).toContain('name="password"');
    expect(page.body).toContain('<bdi>Corp</bdi>');
    expect(page.body).toContain('<bdi>Partner</bdi>');
    for (const { headers } of [page, await world.browser().get('/account')]) {
      expect(headers.get('content-security-policy')).toBe(LEAVING_POLICY);
    }
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const left = await browser.post('/login/upstream/corp', fields);
    expect(left.status).toBe(303);
    const arrived = await toTheClient(browser, await comeBack(browser, signInOf(left)));
    expect(answerOf(arrived).code).toBeDefined();
  });

  it('the button of another site, with a wrong token, or of an unknown provider → nothing leaves', async () => {
    const world = await worldOf({ hasNoUsers: false });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    expect((await browser.post('/login/upstream/corp', fields, { origin: 'https://evil.example' })).status).toBe(400);
    expect((await browser.post('/login/upstream/corp', { request: fields.request, csrf: 'x' })).status).toBe(400);
    expect((await browser.post('/login/upstream/unknown', fields)).status).toBe(404);
  });

  it('suspended ones → no button, and 404', async () => {
    const world = await worldOf({ providers: [corp({ isSuspended: true })], hasNoUsers: false });
    const browser = world.browser();
    expect((await browser.get(world.authorizePath())).body).not.toContain('Corp');
    expect((await browser.get('/login/callback/corp?state=abcdefghij&code=c')).status).toBe(404);
  });
});

describe('a provider whose Secret cannot be used', () => {
  const unusable = () => corp({ credentials: undefined });

  it('beside others → no button; and the other one is a choice', async () => {
    const world = await worldOf({ providers: [unusable(), partner()] });
    const page = await world.browser().get(world.authorizePath());
    expect([page.status, page.location]).toEqual([200, undefined]);
    expect([page.body.includes('<bdi>Corp</bdi>'), page.body.includes('<bdi>Partner</bdi>')]).toEqual([false, true]);
  });

  it('beside local users → their form alone', async () => {
    const world = await worldOf({ providers: [unusable()], hasNoUsers: false });
    const page = await world.browser().get(world.authorizePath());
    expect([page.status, page.body.includes('name="password"'), page.body.includes('/login/upstream/')]).toEqual([
      200,
      true,
      false,
    ]);
  });

  it.each([
    ['alone', () => [unusable()]],
    ['as all others', () => [unusable(), Object.assign({}, partner(), { credentials: undefined })]],
  ])('%s → 503 for now, without a form, and the page says that it is for now', async (_, providers) => {
    const world = await worldOf({ providers: providers() });
    const page = await world.browser().get(world.authorizePath());
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '10']);
    expect([page.body.includes('name="password"'), page.body.includes('/login/upstream/')]).toEqual([false, false]);
    expect(page.body).toContain('cannot be reached right now. Wait a little');
    expect(page.body).not.toContain('There is no way to sign in');
  });
});

describe('a callback of another sign-in → 400, and no call', () => {
  it.each<[string, (browser: TestBrowser, world: World, upstreamRequest: URLSearchParams) => Promise<Page>]>([
    ['of another browser', (_browser, world, upstreamRequest) => comeBack(world.browser(), upstreamRequest)],
    ['with another state', (browser) => browser.get('/login/callback/corp?state=abcdefghijklmnop&code=c1')],
    ['without a state', (browser) => browser.get('/login/callback/corp?code=c1')],
    [
      'with two states',
      (browser, _world, upstreamRequest) => comeBack(browser, upstreamRequest, { query: `state=x&code=c1` }),
    ],
    [
      'with two codes',
      (browser, _world, upstreamRequest) => comeBack(browser, upstreamRequest, { query: 'code=c1&code=c2' }),
    ],
    [
      'with two issuers',
      (browser, _world, upstreamRequest) => comeBack(browser, upstreamRequest, { query: 'code=c1&iss=a&iss=b' }),
    ],
    [
      'at another provider',
      (browser, _world, upstreamRequest) => comeBack(browser, upstreamRequest, { name: 'partner' }),
    ],
    [
      'after ten minutes',
      (browser, world, upstreamRequest) => {
        world.advance(600_000);
        return comeBack(browser, upstreamRequest);
      },
    ],
  ])('%s', async (_case, attempt) => {
    const world = await worldOf({ providers: [corp(), partner()] });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const upstreamRequest = signInOf(await browser.post('/login/upstream/corp', fields));
    const answered = await attempt(browser, world, upstreamRequest);
    expect([answered.status, world.lastReason()]).toEqual([400, 'interaction_upstream_unknown']);
    expect(upstream.redeemed).toEqual([]);
    expect(world.events).toEqual([]);
  });

  it('the second of two, with the same cookie', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
    await comeBack(browser, upstreamRequest);
    expect((await comeBack(browser, upstreamRequest)).status).toBe(400);
    expect(upstream.redeemed).toHaveLength(1);
  });

  it('to a provider of the same name that is another one since', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
    await world.setProviders([corp({ uid: 'uid-of-another' })]);
    expect((await comeBack(browser, upstreamRequest)).status).toBe(400);
    expect(upstream.redeemed).toEqual([]);
  });
});

describe('what the provider answers → the login page, with the request still open', () => {
  it.each<[string, Partial<OidcProvider>, () => void, string, number, string]>([
    ['a person who gives up', {}, () => {}, 'error=access_denied', 422, 'upstream_cancelled'],
    [
      'no answer',
      {},
      () => upstream.answers.set('/token', (_q, r) => r.destroy()),
      'code=c',
      503,
      'upstream_unavailable',
    ],
    [
      'a refused code',
      {},
      () => upstream.answers.set('/token', (_q, r) => json(r, { error: 'invalid_grant' }, 400)),
      'code=c',
      502,
      'upstream_answer_invalid',
    ],
    ['an unknown error', {}, () => {}, 'error=invalid_scope', 502, 'upstream_answer_invalid'],
    [
      'a person of another domain',
      { allow: { emailDomains: ['b.example'], groups: [] } },
      () => {},
      'code=c',
      403,
      'person_not_permitted',
    ],
    [
      'a person without a verified address',
      { allow: { emailDomains: ['b.example'], groups: [] } },
      () => {
        upstream.claims = Object.assign({}, ADA, { email_verified: false });
      },
      'code=c',
      403,
      'email_not_verified',
    ],
    [
      'a person whose provider is revoked until later',
      { revokedBefore: Date.now() + 86_400_000 },
      () => {},
      'code=c',
      403,
      'person_not_permitted',
    ],
  ])('%s', async (_case, provider, arrange, query, status, reason) => {
    const world = await worldOf({ providers: [corp(provider)] });
    const browser = world.browser();
    const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
    arrange();
    const page = await comeBack(browser, upstreamRequest, { query });
    expect([page.status, world.lastReason()]).toEqual([status, reason]);
    expect(page.body).toContain('<bdi>Corp</bdi>');
    expect(browser.cookies.has('grantry-session')).toBe(false);
    // The button tries again.
    upstream.answers.clear();
    upstream.claims = ADA;
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    signInOf(await browser.post('/login/upstream/corp', fields));
  });

  it('31 forged answers in a minute → 429', async () => {
    upstream.answers.set('/token', (_request, response) => json(response, { error: 'invalid_grant' }, 400));
    const world = await worldOf({ rateLimits: true });
    const statuses = new Set<number>();
    for (let count = 0; count < 31; count += 1) {
      const browser = world.browser();
      const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
      statuses.add((await comeBack(browser, upstreamRequest)).status);
    }
    expect([...statuses]).toEqual([502, 429]);
  });
});

describe('a person of a provider', () => {
  it('the account and its sessions → by which provider each began, as it is called now or was then', async () => {
    const world = await worldOf();
    await signIn(world);
    await world.setProviders([corp({ name: 'corp-2', displayName: 'Corp & Sons' })]);
    const browser = world.browser();
    const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
    await toTheClient(browser, await comeBack(browser, upstreamRequest, { name: 'corp-2' }));
    const { body } = await browser.get('/account/sessions');
    const names = [...body.matchAll(/Signed in with: <bdi>([^<]*)</g)].map(([, name]) => name);
    expect(names).toEqual(['Corp &#38; Sons', 'corp']);
    expect((await browser.get('/account')).body).toContain('Signed in with: <bdi>Corp &#38; Sons</bdi>');
  });

  it.each(['login', 'select_account'])('prompt=%s → sees the page, and is sent there with it', async (prompt) => {
    const world = await worldOf({ clients: [OPENID] });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath({ scope: 'openid', prompt }));
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const upstreamRequest = signInOf(await browser.post('/login/upstream/corp', fields));
    expect(upstreamRequest.get('prompt')).toBe(prompt);
    const arrived = await toTheClient(browser, await comeBack(browser, upstreamRequest));
    // The provider does not say when the person signed in.
    expect(answerOf(arrived).error).toBe(prompt === 'login' ? 'login_required' : undefined);
  });

  it('prompt=login, and the provider says that it was just now → a code', async () => {
    const world = await worldOf({ clients: [OPENID] });
    const browser = world.browser();
    const page = await browser.get(world.authorizePath({ scope: 'openid', prompt: 'login' }));
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const upstreamRequest = signInOf(await browser.post('/login/upstream/corp', fields));
    upstream.claims = Object.assign({ auth_time: Math.floor(world.now() / 1000) }, ADA);
    expect(answerOf(await toTheClient(browser, await comeBack(browser, upstreamRequest))).code).toBeDefined();
  });
});

describe('another account → the page first, then the provider with prompt=select_account', () => {
  const ASKS = Object.assign({}, WEB, { scopes: [...(WEB.scopes ?? []), 'openid'] });
  const ADMINS = { identityProviders: [], groups: ['corp:admins'] };

  /** Presses the button of the provider. */
  async function leaveBy(browser: TestBrowser, page: Page): Promise<URLSearchParams> {
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    return signInOf(await browser.post('/login/upstream/corp', fields));
  }

  it.each<[string, Record<string, string>, string]>([
    ['without OpenID Connect', {}, 'select_account'],
    ['with it', { scope: 'openid' }, 'select_account'],
    ['with it and prompt=consent', { scope: 'openid', prompt: 'consent' }, 'select_account'],
    ['with it and prompt=login, which asks for more', { scope: 'openid', prompt: 'login' }, 'login'],
  ])('on the consent page of a request %s', async (_case, query, expected) => {
    const world = await worldOf({ clients: [ASKS] });
    const browser = world.browser();
    upstream.claims = Object.assign({ auth_time: Math.floor(world.now() / 1000) }, ADA);
    let page = await browser.get(world.authorizePath(query));
    const first = page.location === undefined ? await leaveBy(browser, page) : signInOf(page);
    const { location: path = '' } = await comeBack(browser, first);
    const csrf = hidden(await browser.get(path), 'csrf');
    const { location: again = '' } = await browser.post(path, { decision: 'other_account', csrf });
    page = await browser.get(again);
    expect([page.status, browser.cookies.has('grantry-session')]).toEqual([200, false]);
    const upstreamRequest = await leaveBy(browser, page);
    expect(upstreamRequest.get('prompt')).toBe(expected);
    upstream.claims = Object.assign({}, upstream.claims, { sub: 'bob-1', preferred_username: 'bob' });
    const { location: consent = '' } = await comeBack(browser, upstreamRequest);
    expect((await browser.get(consent)).body).toContain('(bob)');
  });

  it('on the account page', async () => {
    const world = await worldOf();
    const browser = world.browser();
    await signIn(world, browser);
    const csrf = /value="([^"]+)">\s*<button[^>]*value="other_account"/.exec((await browser.get('/account')).body)?.[1];
    const left = await browser.post('/account', { action: 'other_account', csrf: csrf ?? '' });
    expect([left.status, left.location]).toEqual([303, '/account?prompt=select_account']);
    const upstreamRequest = await leaveBy(browser, await browser.get(left.location ?? ''));
    expect(upstreamRequest.get('prompt')).toBe('select_account');
    expect((await comeBack(browser, upstreamRequest)).location).toBe('/account');
  });

  it('by the parameter of a request without OpenID Connect, where a session would do', async () => {
    const world = await worldOf();
    const browser = world.browser();
    await signIn(world, browser);
    const page = await browser.get(world.authorizePath({ prompt: 'select_account' }));
    const upstreamRequest = await leaveBy(browser, page);
    expect(upstreamRequest.get('prompt')).toBe('select_account');
    expect(answerOf(await toTheClient(browser, await comeBack(browser, upstreamRequest))).code).toBeDefined();
  });

  it.each<[string, () => Parameters<typeof aWorld>[0]]>([
    ['of the provider', () => ({ providers: [corp({ allow: { emailDomains: ['b.example'], groups: [] } })] })],
    ['of the client', () => ({ clients: [Object.assign({}, SKIPS_CONSENT, { signIn: ADMINS })] })],
  ])('by the button under "may not use this", by the rules %s', async (_case, rules) => {
    const world = await worldOf(rules());
    const browser = world.browser();
    const upstreamRequest = signInOf(await browser.get(world.authorizePath()));
    expect(upstreamRequest.get('prompt')).toBeNull();
    const refused = await comeBack(browser, upstreamRequest);
    expect(refused.status).toBe(403);
    const again = await leaveBy(browser, refused);
    expect(again.get('prompt')).toBe('select_account');
    const cancelled = await comeBack(browser, again, { query: 'error=access_denied' });
    expect((await leaveBy(browser, cancelled)).get('prompt')).toBe('select_account');
  });

  it('but other values of prompt are unknown without OpenID Connect', async () => {
    const world = await worldOf();
    const upstreamRequest = signInOf(await world.browser().get(world.authorizePath({ prompt: 'login' })));
    expect(upstreamRequest.get('prompt')).toBeNull();
  });
});
