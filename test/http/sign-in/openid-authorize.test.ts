// The parameters of OpenID Connect at GET /authorize (Core §3.1.2.1): which are refused, and which page each one leads to.

import { describe, expect, it } from 'vitest';
import { basic, readJson } from '../../grantry.ts';
import { hintFor, idTokenKey, OPENID, openidPath, type Query, signedIn, submitLogin } from './openid-world.ts';
import { answerOf, hidden, type Page } from './sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, WEB, type World } from './sign-in-world.ts';

const ASKS = { ...OPENID, consent: 'Required' } as const;
const LOGIN_PAGE = 'name="password"';

/** Where a person who must be asked is sent. */
const CONSENT_PATH = /^\/consent\/[A-Za-z0-9_-]{43}\?client=shop\.web$/;

async function decide(browser: Awaited<ReturnType<typeof signedIn>>, path: string, decision: string): Promise<Page> {
  return browser.post(path, { decision, csrf: hidden(await browser.get(path), 'csrf') });
}

describe('a parameter of OpenID Connect', () => {
  it.each<[string, Query, string]>([
    ['a nonce of 513 bytes', { nonce: 'n'.repeat(513) }, 'nonce_unreadable'],
    ['a nonce with a control character', { nonce: 'n\u0001' }, 'nonce_unreadable'],
    ['two nonces', { nonce: ['n', 'n'] }, 'duplicate_parameter'],
    ['prompt none login', { prompt: 'none login' }, 'prompt_contradictory'],
    ['two prompts', { prompt: ['login', 'login'] }, 'duplicate_parameter'],
    ['max_age -1', { max_age: '-1' }, 'max_age_malformed'],
    ['max_age 1.5', { max_age: '1.5' }, 'max_age_malformed'],
    ['two of max_age', { max_age: ['', '1'] }, 'duplicate_parameter'],
    ['a hint that is no token', { id_token_hint: 'x' }, 'id_token_hint_invalid'],
    ['two login hints', { login_hint: ['a', 'b'] }, 'duplicate_parameter'],
  ])('given %s → invalid_request at the client, nothing stored, no cookie', async (_what, changes, reason) => {
    const world = await aWorld({ clients: [OPENID] });
    const answer = await world.browser().get(openidPath(world, changes));
    expect([answer.status, answerOf(answer)]).toMatchObject([302, { error: 'invalid_request', state: 'st&te= 1' }]);
    expect(world.lastReason()).toBe(reason);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(world.storeCalls()).toEqual([]);
  });

  it('given a nonce with NUL → the 400 page of each query that holds one', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const answer = await world.browser().get(openidPath(world, { nonce: 'n\0' }));
    expect([answer.status, answer.location, world.lastReason()]).toEqual([400, undefined, 'nul_character']);
  });

  it.each<[string, Query]>([
    ['a prompt that is unknown', { prompt: 'create' }],
    ['an empty max_age', { max_age: '' }],
    ['an empty nonce and prompt', { nonce: '', prompt: '' }],
    ['a nonce of 512 bytes', { nonce: 'n'.repeat(512) }],
    ['a login hint that is too long', { login_hint: 'n'.repeat(255) }],
    ['claims and acr_values', { claims: '{', acr_values: ['a', 'b'], display: 'wap', claims_locales: 'x' }],
  ])('given %s → the same answers as without it', async (_what, changes) => {
    const world = await aWorld({ clients: [OPENID] });
    expect((await world.browser().get(openidPath(world, changes))).body).toContain('maxlength="254" value=""');
    const browser = await signedIn(world);
    expect(answerOf(await browser.get(openidPath(world, changes))).code).toMatch(/^ac1\./);
  });

  it('given a scope without openid → is unknown: a person who is signed in gets a code', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    for (const changes of [
      { prompt: 'none login', nonce: 'n'.repeat(513), max_age: '-1', id_token_hint: 'x', login_hint: 'bob' },
      { prompt: 'login' },
      { prompt: ['consent', 'consent'] },
      { max_age: '0' },
    ]) {
      expect(answerOf(await browser.get(world.authorizePath(changes))).code).toMatch(/^ac1\./);
    }
    const page = await world.browser().get(world.authorizePath({ prompt: 'none', login_hint: 'bob' }));
    expect([page.status, page.body]).toEqual([200, expect.stringContaining('maxlength="254" value=""')]);
  });

  it('given openid by the default scope → counts as with the parameter', async () => {
    const world = await aWorld({ clients: [{ ...OPENID, defaultScopes: ['openid'] }] });
    const answer = await world.browser().get(world.authorizePath({ scope: undefined, prompt: 'none' }));
    expect(answerOf(answer).error).toBe('login_required');
  });

  it('given offline_access that the client cannot have → is answered without it', async () => {
    const world = await aWorld({ clients: [ASKS] });
    const browser = await signedIn(world);
    const { location = '' } = await browser.get(openidPath(world, { scope: 'openid offline_access' }));
    const page = await browser.get(location);
    expect(page.body).toContain('<code>openid</code>');
    expect(page.body).not.toContain('offline_access');
    const other = await browser.get(world.authorizePath({ scope: 'shop/read offline_access' }));
    expect(answerOf(other).error).toBe('invalid_scope');
  });
});

describe('prompt=login', () => {
  it.each<[string, Query]>([
    ['prompt=login', { prompt: 'login' }],
    ['prompt=select_account', { prompt: 'select_account' }],
    ['max_age=0', { max_age: '0' }],
  ])(
    'given %s and a signed-in person → the login page, again after a reload, then the code',
    async (_what, changes) => {
      const world = await aWorld({ clients: [OPENID] });
      const browser = await signedIn(world);
      expect((await browser.get(openidPath(world, changes))).body).toContain(LOGIN_PAGE);
      const reloaded = await browser.get(openidPath(world, changes));
      expect(reloaded.body).toContain(LOGIN_PAGE);
      const answer = await submitLogin(browser, reloaded);
      expect(answer.location).toMatch(/^\/authorize\/resume\//);
      expect(answerOf(await browser.get(answer.location ?? '')).code).toMatch(/^ac1\./);
    },
  );

  it.each(['60', '0'])(
    'given another account on the consent page, and max_age %s → the same request, which asks that person once',
    async (max_age) => {
      const world = await aWorld({ clients: [ASKS] });
      const browser = await signedIn(world);
      const changes = { prompt: 'login', nonce: 'n-0S6&', max_age, dpop_jkt: 'j'.repeat(43), login_hint: 'bob' };
      const { location: path = '' } = await submitLogin(browser, await browser.get(openidPath(world, changes)));
      expect(path).toMatch(CONSENT_PATH);
      expect((await browser.get(path)).body).toContain('Alice Ang (alice)');
      const { location: again = '' } = await decide(browser, path, 'other_account');
      expect(Object.fromEntries(new URL(again, world.issuer).searchParams)).toMatchObject({
        scope: 'openid',
        ...changes,
        prompt: 'login select_account',
      });
      const page = await browser.get(again);
      expect(page.body).toContain('maxlength="254" value="bob"');
      const { location: next = '' } = await submitLogin(browser, page, 'bob');
      expect(next).toMatch(CONSENT_PATH);
      const { location: back = '' } = await decide(browser, next, 'allow');
      expect(answerOf(await browser.get(back)).code).toMatch(/^ac1\./);
    },
  );
});

describe('max_age', () => {
  it.each([
    [60_000, 'the code'],
    [60_001, 'the login page, and then the code'],
  ])('of a minute given a sign-in %i ms ago → %s', async (age) => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    world.advance(age);
    const answer = await browser.get(openidPath(world, { max_age: '60' }));
    if (age === 60_000) return expect(answerOf(answer).code).toMatch(/^ac1\./);
    expect(answer.body).toContain(LOGIN_PAGE);
    const { location = '' } = await submitLogin(browser, answer);
    expect(answerOf(await browser.get(location)).code).toMatch(/^ac1\./);
  });
});

describe('prompt=consent', () => {
  it('given a client that never asks → the consent page, with or without a sign-in before it', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    const { location = '' } = await browser.get(openidPath(world, { prompt: 'consent' }));
    expect(location).toMatch(CONSENT_PATH);
    const { location: back = '' } = await decide(browser, location, 'allow');
    expect(answerOf(await browser.get(back)).code).toMatch(/^ac1\./);
    const page = await browser.get(openidPath(world, { prompt: 'consent login' }));
    const { location: next = '' } = await submitLogin(browser, page);
    expect(next).toMatch(CONSENT_PATH);
    const { location: end = '' } = await decide(browser, next, 'deny');
    expect(answerOf(await browser.get(end)).error).toBe('access_denied');
  });
});

describe('login_hint', () => {
  it('given a name → the login page has it as text, also with a sign-in that does not do', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const hint = { login_hint: 'al"><script>' };
    const browser = await signedIn(world);
    for (const page of [
      await world.browser().get(openidPath(world, hint)),
      await browser.get(openidPath(world, { ...hint, prompt: 'login' })),
    ]) {
      expect(page.body).toContain('maxlength="254" value="al&#34;&#62;&#60;script&#62;"');
    }
  });
});

describe('id_token_hint', () => {
  async function hinted(username: string): Promise<{ readonly world: World; readonly hint: Query }> {
    const key = await idTokenKey();
    const world = await aWorld({ clients: [OPENID], keys: [key] });
    return { world, hint: { id_token_hint: await hintFor(world, username, key) } };
  }

  it('of the person signed in → the code', async () => {
    const { world, hint } = await hinted('alice');
    const browser = await signedIn(world);
    expect(answerOf(await browser.get(openidPath(world, { ...hint, prompt: 'none' }))).code).toMatch(/^ac1\./);
  });

  it('of another person → the login page; that person → the code', async () => {
    const { world, hint } = await hinted('bob');
    const browser = await signedIn(world);
    const page = await browser.get(openidPath(world, hint));
    expect(page.body).toContain(LOGIN_PAGE);
    const { location = '' } = await submitLogin(browser, page, 'bob');
    expect(answerOf(await browser.get(location)).code).toMatch(/^ac1\./);
  });

  it('of another person → after anyone else signs in: login_required at the client, and nothing waits', async () => {
    const { world, hint } = await hinted('bob');
    const browser = world.browser();
    const answer = await submitLogin(browser, await browser.get(openidPath(world, hint)), 'alice');
    expect([answer.status, answer.location?.startsWith(`${CALLBACK}?`)]).toEqual([303, true]);
    const { error_description: _text, ...rest } = answerOf(answer);
    expect(rest).toEqual({ error: 'login_required', state: 'st&te= 1', iss: world.issuer });
    expect(world.logs().at(-1)).toMatchObject({ clientId: WEB.clientId, reason: 'other_person_signed_in' });
    expect(world.storeCalls().filter((call) => call.startsWith('interactions.'))).toEqual([]);
    expect(answerOf(await browser.get(openidPath(world))).code).toMatch(/^ac1\./);
  });

  it('signed with a key that was removed → invalid_request', async () => {
    const { world, hint } = await hinted('alice');
    const browser = await signedIn(world);
    world.setKeys([await idTokenKey()]);
    expect(answerOf(await browser.get(openidPath(world, hint))).error).toBe('invalid_request');
    expect(world.lastReason()).toBe('id_token_hint_invalid');
  });

  it('that is another kind of token → invalid_request', async () => {
    const { world } = await hinted('alice');
    const form = { grant_type: 'client_credentials', scope: 'shop/read' };
    const headers = { authorization: basic(WEB.clientId, SECRET) };
    const { access_token } = await readJson(await world.post('/token', form, { headers }));
    for (const id_token_hint of [access_token, access_token.slice(0, -1), 'rt1.x.y', 'e30.e30.']) {
      const answer = await world.browser().get(openidPath(world, { id_token_hint }));
      expect([answerOf(answer).error, world.lastReason()]).toEqual(['invalid_request', 'id_token_hint_invalid']);
    }
  });

  it('and a nonce, in a request that is answered and in one that is refused → in no log line and no metric', async () => {
    const { world, hint } = await hinted('bob');
    const browser = await signedIn(world);
    const nonce = 'nonce-canary';
    await browser.get(openidPath(world, { ...hint, nonce }));
    await browser.get(openidPath(world, { nonce: 'nonce-canary\u0001' }));
    expect(answerOf(await browser.get(openidPath(world, { nonce, login_hint: 'hint-canary' }))).code).toBeTruthy();
    const seen = JSON.stringify(world.logs()) + (await world.metrics());
    expect(seen).toContain('nonce_unreadable');
    for (const secret of ['canary', String(hint.id_token_hint).slice(-40)]) expect(seen).not.toContain(secret);
  });

  it('of a request that people are asked about → no other account is offered, and one that is posted is refused', async () => {
    const { world, hint } = await hinted('alice');
    world.setClients([ASKS]);
    const browser = await signedIn(world);
    const { location = '' } = await browser.get(openidPath(world, hint));
    expect((await browser.get(location)).body).not.toContain('other_account');
    const answer = await decide(browser, location, 'other_account');
    expect([answer.status, world.lastReason()]).toEqual([400, 'interaction_odd_decision']);
    const { location: free = '' } = await browser.get(openidPath(world));
    expect((await browser.get(free)).body).toContain('other_account');
  });
});
