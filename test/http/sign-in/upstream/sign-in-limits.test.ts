// A client that is for some people only, over HTTP: which ways to sign in are open to it, and what a person gets who may not use it,
// at each place where one gets a code or a token.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Client, SignInLimits } from '../../../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../../../src/oauth/registry/client-secret.ts';
import { PKCE } from '../../../grantry.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { OPENID, submitLogin } from '../openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../sign-in-world.ts';

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
  upstream.redeemed.length = 0;
  asAda(['dev']);
});

/** The person at the provider from now on. */
function asAda(groups: readonly string[]): void {
  upstream.claims = { sub: 'ada-1', preferred_username: 'ada', name: 'Ada', groups };
  upstream.userinfo = { sub: 'ada-1' };
}
function asGrace(): void {
  upstream.claims = { sub: 'grace-1', preferred_username: 'grace', name: 'Grace', groups: ['ops'] };
  upstream.userinfo = { sub: 'grace-1' };
}

const only = (identityProviders: readonly string[], groups: readonly string[] = []): SignInLimits => ({
  identityProviders,
  groups,
});
/** For people of the provider `corp` in its group `ops`. */
const OPS = only([], ['corp:ops']);

/** A client that is for these people. */
const limited = (signIn: SignInLimits | undefined, changes: Partial<Client> = {}): Client =>
  Object.assign({}, OPENID, { grantTypes: ['authorization_code', 'refresh_token'], signIn }, changes);

const OPEN_UID = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0009';
/** Another client, which is for all people. */
const OPEN = limited(undefined, {
  uid: OPEN_UID,
  clientId: 'shop.open',
  secretVerifiers: [secretVerifier(OPEN_UID, SECRET)],
});

interface Options {
  readonly hasNoUsers?: boolean;
  readonly client?: Partial<Client>;
}

/** Of the providers `corp` and `partner`, and local users. */
function worldOf(signIn: SignInLimits | undefined, { hasNoUsers = false, client = {} }: Options = {}): Promise<World> {
  const corp = anOidcProvider({ issuer: upstream.issuer });
  const partner = { name: 'partner', uid: 'uid-partner', displayName: 'Partner', issuer: other.issuer };
  const providers = [corp, anOidcProvider(partner)];
  return aWorld({ clients: [limited(signIn, client), OPEN], providers, hasNoUsers });
}

const openPath = (world: World) => world.authorizePath({ client_id: OPEN.clientId });

/** To the provider `corp` by its button, and back. */
async function byCorp(browser: TestBrowser, page: Page): Promise<Page> {
  return await comeBack(browser, await browser.post('/login/upstream/corp', formOf(page)));
}

async function comeBack(browser: TestBrowser, left: Page): Promise<Page> {
  const { origin, searchParams } = new URL(left.location ?? '');
  expect(origin).toBe(new URL(upstream.issuer).origin);
  upstream.nonce = searchParams.get('nonce') ?? '';
  return await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&code=c1`);
}

function formOf(page: Page): Readonly<Record<string, string>> {
  return { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
}

async function toTheClient(browser: TestBrowser, page: Page): Promise<Page> {
  let at = page;
  while (at.location?.startsWith('/')) at = await browser.get(at.location);
  return at;
}

/** Signs in by `corp` at the client that is for all people. */
async function signedInByCorp(world: World): Promise<TestBrowser> {
  const browser = world.browser();
  expect(answerOf(await toTheClient(browser, await byCorp(browser, await browser.get(openPath(world)))))).toMatchObject(
    {
      code: expect.anything(),
    },
  );
  return browser;
}

const hasSession = (browser: TestBrowser) => browser.cookies.has('grantry-session');
const refusals = (world: World) => world.events.filter(({ type }) => type === 'person.refused');

/** The login page that refuses the person, with its reason and one audit event. */
function expectRefusal(world: World, page: Page, event: Readonly<Record<string, unknown>>): void {
  expect([page.status, world.lastReason()]).toEqual([403, 'person_not_permitted']);
  const type = 'person.refused';
  const reason = 'person_not_permitted';
  const clientId = OPENID.clientId;
  expect(refusals(world)).toEqual([expect.objectContaining({ type, reason, clientId, ...event })]);
  expect(page.location).toBeUndefined();
}

const asClient = { headers: { authorization: `Basic ${btoa(`${OPENID.clientId}:${SECRET}`)}` } };

const redeem = (world: World, { code = '' }: Readonly<Record<string, string>>) =>
  world.post(
    '/token',
    { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier },
    asClient,
  );
const refresh = (world: World, token: string) =>
  world.post('/token', { grant_type: 'refresh_token', refresh_token: token }, asClient);

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** Tokens of a person of `corp` at the client. */
async function tokensOf(world: World, browser: TestBrowser): Promise<Tokens> {
  const answer = await redeem(world, answerOf(await browser.get(world.authorizePath())));
  expect(answer.status).toBe(200);
  return (await answer.json()) as Tokens;
}

describe('the ways to sign in that are open to a client', () => {
  it.each<[SignInLimits | undefined, readonly string[]]>([
    [undefined, ['password', 'corp', 'partner']],
    [OPS, ['password', 'corp', 'partner']],
    [only(['local']), ['password']],
    [only(['local', 'partner']), ['password', 'partner']],
    [only(['corp', 'partner']), ['corp', 'partner']],
    [only(['partner', 'missing', 'local']), ['password', 'partner']],
    [only(['missing']), []],
  ])('given %o → the page has %o', async (signIn, expected) => {
    const world = await worldOf(signIn);
    const page = await world.browser().get(world.authorizePath());
    expect(page.status).toBe(200);
    const buttons = [...page.body.matchAll(/action="\/login\/upstream\/([a-z]+)"/g)].map(([, name]) => name);
    expect([...(page.body.includes('name="password"') ? ['password'] : []), ...buttons]).toEqual(expected);
    expect(page.body.includes('There is no way to sign in')).toBe(expected.length === 0);
    // A page of ours is open to all.
    const account = await world.browser().get('/account');
    expect(account.body).toContain('name="password"');
    expect(account.body).toContain('/login/upstream/partner');
  });

  it('one provider, whatever else there is → straight through to it', async () => {
    const world = await worldOf(only(['corp']));
    const page = await world.browser().get(world.authorizePath());
    expect([page.status, page.location?.startsWith(upstream.issuer)]).toEqual([302, true]);
  });

  it('no local users, and one of two providers → straight through; both → the page', async () => {
    const world = await worldOf(only(['local', 'corp']), { hasNoUsers: true });
    expect((await world.browser().get(world.authorizePath())).location).toContain(upstream.issuer);
    world.setClients([limited(undefined)]);
    expect((await world.browser().get(world.authorizePath())).status).toBe(200);
  });

  it('a button that the manifest has closed since → 403, no redirect to the provider, and the request stays open', async () => {
    const world = await worldOf(undefined);
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    world.setClients([limited(only(['partner', 'local']))]);
    const refused = await browser.post('/login/upstream/corp', formOf(page));
    expect([refused.status, refused.location, world.lastReason()]).toEqual([403, undefined, 'source_not_permitted']);
    expect([...browser.cookies.keys()].filter((name) => name.includes('away'))).toEqual([]);
    expect(refused.body).not.toContain('/login/upstream/corp');
    expect((await submitLogin(browser, refused)).status).toBe(303);
  });

  it('a password where none is taken → 403, right or wrong or missing, and no password is verified', async () => {
    const world = await worldOf(undefined);
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    world.setClients([limited(only(['corp', 'partner']))]);
    const before = world.storeCalls().length;
    const bodies = new Set<string>();
    for (const fields of [
      { username: 'alice', password: 'correct horse battery' },
      { username: 'alice', password: 'x' },
      { username: 'mallory', password: 'x' },
      {},
    ]) {
      const answer = await browser.post('/login', { ...formOf(page), ...fields });
      expect([answer.status, world.lastReason()]).toEqual([403, 'source_not_permitted']);
      bodies.add(answer.body.replaceAll(/value="[^"]*"/g, ''));
    }
    expect(bodies.size).toBe(1);
    expect(world.storeCalls().slice(before)).toEqual([]);
    expect([hasSession(browser), world.events]).toEqual([false, []]);
  });
});

describe('a person with a session who may not use the client', () => {
  it('→ 403 and who it is; the session stays; another account gets a code', async () => {
    const world = await worldOf(OPS);
    const browser = await signedInByCorp(world);
    const page = await browser.get(world.authorizePath());
    expectRefusal(world, page, { provider: 'corp', subject: expect.stringMatching(/^usr_/) });
    expect(page.body).toContain('<bdi>ada</bdi> at <bdi>Corp</bdi>');
    expect(answerOf(await browser.get(openPath(world))).code).toBeDefined();
    asGrace();
    expect(answerOf(await toTheClient(browser, await byCorp(browser, page))).code).toBeDefined();
  });

  it('prompt=none → access_denied at the client, and the session stays', async () => {
    const world = await worldOf(OPS);
    const browser = await signedInByCorp(world);
    const page = await browser.get(world.authorizePath({ scope: 'openid', prompt: 'none' }));
    expect(page.location).toMatch(CALLBACK);
    expect(answerOf(page)).toMatchObject({ error: 'access_denied', state: 'st&te= 1', iss: world.issuer });
    expect(world.lastReason()).toBe('person_not_permitted');
    expect(refusals(world)).toHaveLength(1);
    expect(answerOf(await browser.get(openPath(world))).code).toBeDefined();
  });

  it('of a source that is not open, where one other is → the page, and no redirect', async () => {
    const world = await worldOf(only(['corp']));
    const browser = world.browser();
    await submitLogin(browser, await browser.get(openPath(world)));
    const page = await browser.get(world.authorizePath());
    expectRefusal(world, page, { subject: world.subject('alice') });
    expect(page.body).toContain('<bdi>alice</bdi> may not');
    expect(answerOf(await toTheClient(browser, await byCorp(browser, page))).code).toBeDefined();
  });

  it('who is asked for consent meanwhile → no code at resume, and the page', async () => {
    const world = await worldOf(undefined, { client: { consent: 'Required' } });
    const browser = await signedInByCorp(world);
    const consent = await browser.get((await browser.get(world.authorizePath())).location ?? '');
    world.setClients([limited(OPS, { consent: 'Required' })]);
    const action = /action="(\/consent\/[^"]+)"/.exec(consent.body)?.[1] ?? '';
    const decided = await browser.post(action, { csrf: hidden(consent, 'csrf'), decision: 'allow' });
    expectRefusal(world, await browser.get(decided.location ?? ''), { provider: 'corp' });
  });
});

describe('a sign-in at a client that is not for the person', () => {
  it('by a password → 403 without a session; another account gets a code', async () => {
    const world = await worldOf(only(['local'], ['team-7']));
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const refused = await submitLogin(browser, page, 'bob');
    expectRefusal(world, refused, { subject: world.subject('bob') });
    expect([hasSession(browser), world.events]).toEqual([false, refusals(world)]);
    expect(answerOf(await toTheClient(browser, await submitLogin(browser, refused, 'alice'))).code).toBeDefined();
  });

  it('of a browser with the session of another person → that session stays', async () => {
    const world = await worldOf(only(['local'], ['team-7']));
    const browser = world.browser();
    await submitLogin(browser, await browser.get(openPath(world)), 'alice');
    const page = await browser.get(world.authorizePath({ scope: 'openid', prompt: 'login' }));
    expectRefusal(world, await submitLogin(browser, page, 'bob'), { subject: world.subject('bob') });
    expect(answerOf(await browser.get(world.authorizePath())).code).toBeDefined();
  });

  it('by a provider → 403 without a session; another account gets a code', async () => {
    const world = await worldOf(only(['corp'], ['corp:ops']));
    const browser = world.browser();
    const refused = await comeBack(browser, await browser.get(world.authorizePath()));
    expectRefusal(world, refused, { provider: 'corp', subject: expect.stringMatching(/^usr_/) });
    expect(refused.body).toContain('<bdi>ada</bdi> at <bdi>Corp</bdi>');
    expect([hasSession(browser), world.events]).toEqual([false, refusals(world)]);
    asGrace();
    const left = await browser.post('/login/upstream/corp', formOf(refused));
    expect(new URL(left.location ?? '').searchParams.get('prompt')).toBe('select_account');
    expect(answerOf(await toTheClient(browser, await comeBack(browser, left))).code).toBeDefined();
  });

  it('by a provider that the manifest has closed since → the same', async () => {
    const world = await worldOf(only(['corp']));
    const browser = world.browser();
    const left = await browser.get(world.authorizePath());
    world.setClients([limited(only(['partner', 'local']))]);
    expectRefusal(world, await comeBack(browser, left), { provider: 'corp' });
    expect(hasSession(browser)).toBe(false);
  });
});

describe('what a person has of the client', () => {
  it('a code, and the manifest leaves the person out → invalid_grant', async () => {
    const world = await worldOf(undefined);
    const browser = await signedInByCorp(world);
    const answer = answerOf(await browser.get(world.authorizePath()));
    world.setClients([limited(OPS)]);
    const response = await redeem(world, answer);
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'invalid_grant' }),
    ]);
    expect(world.lastReason()).toBe('person_not_permitted');
  });

  it('a refresh token, and the manifest leaves the person out → invalid_grant; in again → the same token works', async () => {
    const world = await worldOf(only(['corp'], ['corp:dev']));
    const browser = await signedInByCorp(world);
    const tokens = await tokensOf(world, browser);
    for (const signIn of [OPS, only(['partner']), only(['local']), only(['partner'], ['corp:dev'])]) {
      world.setClients([limited(signIn)]);
      const response = await refresh(world, tokens.refresh_token);
      expect([response.status, await response.json()]).toEqual([
        400,
        expect.objectContaining({ error: 'invalid_grant' }),
      ]);
      expect(world.lastReason()).toBe('person_not_permitted');
    }
    world.setClients([limited(only(['partner', 'corp'], ['corp:dev', 'corp:ops']))]);
    expect((await refresh(world, tokens.refresh_token)).status).toBe(200);
  });

  it('a refresh token, and the provider says other groups at a sign-in elsewhere → invalid_grant', async () => {
    const world = await worldOf(only([], ['corp:dev']));
    const tokens = await tokensOf(world, await signedInByCorp(world));
    asAda(['guests']);
    // A sign-in that the client itself refuses says it, too.
    const elsewhere = world.browser();
    expect((await byCorp(elsewhere, await elsewhere.get(world.authorizePath()))).status).toBe(403);
    expect((await refresh(world, tokens.refresh_token)).status).toBe(400);
    expect(world.lastReason()).toBe('person_not_permitted');
    asAda(['dev']);
    await signedInByCorp(world);
    expect((await refresh(world, tokens.refresh_token)).status).toBe(200);
  });

  it('an access token → lives on: introspection and userinfo answer as before', async () => {
    const world = await worldOf(undefined, {
      client: { tokens: Object.assign({}, OPENID.tokens, { accessTokenFormat: 'opaque' }) },
    });
    const browser = await signedInByCorp(world);
    const { access_token } = await tokensOf(world, browser);
    world.setClients([limited(OPS)]);
    const introspected = await world.post('/introspect', { token: access_token }, asClient);
    expect(await introspected.json()).toMatchObject({ active: true });
  });

  it('a refresh with limits → the calls of stores that one without them makes', async () => {
    const callsOf = async (signIn: SignInLimits | undefined) => {
      const world = await worldOf(signIn);
      const { refresh_token } = await tokensOf(world, await signedInByCorp(world));
      const before = world.storeCalls().length;
      expect((await refresh(world, refresh_token)).status).toBe(200);
      return world.storeCalls().slice(before);
    };
    expect(await callsOf(only(['corp'], ['corp:dev']))).toEqual(await callsOf(undefined));
  });
});

describe('the consent page', () => {
  it.each([
    ['en', 'Only some accounts'],
    ['de', 'Nur bestimmte Konten'],
  ])('of a limited client, in %s → says so; of another one → does not', async (language, sentence) => {
    const world = await worldOf(only(['corp']), { client: { consent: 'Required' } });
    const browser = await signedInByCorp(world);
    const shown = async () => {
      const { location = '' } = await browser.get(world.authorizePath());
      return (await browser.get(location, { 'accept-language': language })).body;
    };
    expect(await shown()).toContain(sentence);
    world.setClients([limited(undefined, { consent: 'Required' })]);
    expect(await shown()).not.toContain(sentence);
  });
});
