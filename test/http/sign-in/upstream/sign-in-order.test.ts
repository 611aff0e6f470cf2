// The login page where people sign in by identity providers and by password: what comes first, and when the form for a password
// is open.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { OPENID, openidPath, signedIn, submitLogin } from '../openid-world.ts';
import { hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, type World, type WorldOptions } from '../sign-in-world.ts';

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
  upstream.claims = { preferred_username: 'ada' };
  upstream.userinfo = { sub: 'ada-1' };
});
afterAll(() => upstream.stop());

/** With two providers, and local users. */
function worldOf(options: WorldOptions = {}): Promise<World> {
  const corp = anOidcProvider({ issuer: upstream.issuer });
  const partner = anOidcProvider({
    name: 'partner',
    uid: 'uid-partner',
    displayName: 'Partner',
    issuer: upstream.issuer,
  });
  return aWorld(Object.assign({ clients: [OPENID], providers: [corp, partner] }, options));
}

const FORMS =
  /<details[^>]*>|<\/details>|action="[^"]*"|<input[^>]*autofocus|<div class="problem"[^>]*autofocus|Enter your password only on [^<]*<\/p>\s*(<\/form>)?/g;

/** The forms of a page in their order, what folds them, what has the focus, and what is said of the password. */
function outline({ body }: Page): readonly string[] {
  return [...body.matchAll(FORMS)].map(([found]) => {
    if (found.startsWith('<div')) return 'focus: problem';
    if (found.startsWith('Enter')) return found.endsWith('</form>') ? NOTE : 'outside of the form';
    if (found.startsWith('<input')) return `focus: ${/name="(\w+)"/.exec(found)?.[1]}`;
    return found.replace(/ class="[^"]*"/, '').replace(/action="([^"]*)"/, '$1');
  });
}

const PROVIDERS = ['/login/upstream/corp', '/login/upstream/partner'];
/** The end of the form for a password. */
const NOTE = 'the password is for this host';
const FOLDED = [...PROVIDERS, '<details>', '/login', NOTE, '</details>'];
const OPEN = [...PROVIDERS, '<details open>', '/login', NOTE, '</details>'];

const usernameOn = ({ body }: Page) => /maxlength="254" value="([^"]*)"/.exec(body)?.[1];

async function post(browser: TestBrowser, page: Page, fields: Readonly<Record<string, string>>): Promise<Page> {
  const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return await browser.post('/login', Object.assign(sealed, fields));
}

async function leaveAndComeBack(browser: TestBrowser, page: Page, answer: string): Promise<Page> {
  const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const left = await browser.post('/login/upstream/corp', sealed);
  const { searchParams } = new URL(left.location ?? '');
  upstream.nonce = searchParams.get('nonce') ?? '';
  return await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&${answer}`);
}

describe('the login page with providers and local users', () => {
  it('the buttons first, then the form folded; nothing in it has the focus, and it signs in all the same', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const page = await browser.get(openidPath(world));
    expect(outline(page)).toEqual(FOLDED);
    expect((await submitLogin(browser, page)).status).toBe(303);
  });

  it('given local-first → the form first and in focus, the buttons below', async () => {
    const world = await worldOf({ signInOrder: 'local-first' });
    const page = await world.browser().get(openidPath(world));
    expect(outline(page)).toEqual(['/login', 'focus: username', NOTE, ...PROVIDERS]);
  });

  it.each(['alice', 'ada@corp.example', 'no-account-has-it'])(
    'given the login hint %s → the form is open, with the name, and the same but for it',
    async (login_hint) => {
      const world = await worldOf();
      const page = await world.browser().get(openidPath(world, { login_hint }));
      const opened = OPEN.toSpliced(4, 0, 'focus: password');
      expect([usernameOn(page), outline(page)]).toEqual([login_hint, opened]);
    },
  );

  it.each([
    ['a wrong password', { username: 'alice', password: 'wrong' }],
    ['no account of the name', { username: 'mallory', password: 'wrong' }],
    ['no password', { username: 'alice', password: '' }],
    ['no username', { username: '', password: 'some' }],
    ['neither', { username: '', password: '' }],
  ])('given %s → the form is open, with what was typed, and the focus on the problem', async (_what, fields) => {
    const world = await worldOf();
    const browser = world.browser();
    const page = await post(browser, await browser.get(openidPath(world)), fields);
    expect([usernameOn(page), outline(page)]).toEqual([fields.username, ['focus: problem', ...OPEN]]);
  });

  it('given too many wrong passwords → open', async () => {
    const world = await worldOf();
    const browser = world.browser();
    let page = await browser.get(openidPath(world));
    for (let count = 0; count < 6; count += 1) page = await post(browser, page, { username: 'alice', password: 'x' });
    expect([page.status, outline(page)]).toEqual([429, ['focus: problem', ...OPEN]]);
  });

  it('given a local user who may not use the client → open and empty, for another one', async () => {
    const other = Object.assign({}, OPENID, { clientId: 'shop.open', uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0009' });
    const ofGroup = Object.assign({}, OPENID, { signIn: { identityProviders: [], groups: ['staff'] } });
    const world = await worldOf({ clients: [ofGroup, other] });
    const browser = await signedIn(world, 'alice', { client_id: other.clientId });
    const page = await browser.get(openidPath(world, { login_hint: 'alice' }));
    expect([page.status, usernameOn(page), outline(page)]).toEqual([403, '', ['focus: problem', ...OPEN]]);
  });

  it('given a person of a provider who may not use the client → folded', async () => {
    const ofGroup = Object.assign({}, OPENID, { signIn: { identityProviders: [], groups: ['staff'] } });
    const world = await worldOf({ clients: [ofGroup] });
    const browser = world.browser();
    const page = await leaveAndComeBack(browser, await browser.get(openidPath(world)), 'code=c1');
    expect([page.status, outline(page)]).toEqual([403, ['focus: problem', ...FOLDED]]);
  });

  it.each([
    ['', {}, FOLDED],
    [', with the hint of the client', { login_hint: 'ada' }, OPEN],
  ])('given a sign-in at the provider that was not finished%s → as before it', async (_what, changes, forms) => {
    const world = await worldOf();
    const browser = world.browser();
    const page = await browser.get(openidPath(world, changes));
    const back = await leaveAndComeBack(browser, page, 'error=access_denied');
    expect([back.status, outline(back)]).toEqual([422, ['focus: problem', ...forms]]);
  });
});

describe('the login page without a choice', () => {
  it('no provider → the form, not folded and in focus', async () => {
    const world = await worldOf({ providers: [] });
    const page = await world.browser().get(openidPath(world));
    expect(outline(page)).toEqual(['/login', 'focus: username', NOTE]);
  });

  it('a provider without its Secret alone → the form, not folded and in focus', async () => {
    const world = await worldOf({ providers: [anOidcProvider({ credentials: undefined })] });
    const page = await world.browser().get(openidPath(world));
    expect(outline(page)).toEqual(['/login', 'focus: username', NOTE]);
  });

  it('no local users → the buttons alone', async () => {
    const world = await worldOf({ hasNoUsers: true });
    const page = await world.browser().get(openidPath(world));
    expect(outline(page)).toEqual(PROVIDERS);
  });
});
