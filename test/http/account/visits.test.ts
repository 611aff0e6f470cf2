// How a person comes to the pages of an account, and what no other party can do with their forms.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { hidden } from '../sign-in/sign-in-browser.ts';
import { OWN_POLICY, PASSWORD } from '../sign-in/sign-in-world.ts';
import { type AccountForm, anAccountWorld, formOf, formsOf, SHOP } from './account-world.ts';

const PATHS = ['/account', '/account/sessions', '/account/applications'] as const;

describe('a page of the account', () => {
  it.each(PATHS)('%s, given no session → the login page, which leads there', async (path) => {
    const world = await anAccountWorld();
    const browser = world.browser();
    const page = await browser.get(path);
    expect(page.status).toBe(200);
    expect(page.body).toContain('to see your account');
    await browser.signIn('alice', path);
    const { body } = await browser.get(path);
    const current = [...body.matchAll(/<a href="([^"]*)" aria-current="page">/g)].map(([, href]) => href);
    expect(current).toEqual([path]);
  });

  it('given an issuer with a path → all is below it', async () => {
    const world = await anAccountWorld({ issuer: 'https://id.example/tenant' });
    const browser = world.browser();
    await browser.signIn('alice', '/tenant/account');
    const page = await browser.get('/tenant/account');
    const links = [...page.body.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, link]) => link ?? '');
    expect(links.filter((link) => !link.startsWith('/tenant/'))).toEqual([]);
    const answer = await browser.press(formOf(page, 'sign_out'));
    expect([answer.status, answer.location]).toEqual([303, '/tenant/logout']);
  });

  it.each(PATHS)('%s is kept by no cache, is in no frame and loads nothing from elsewhere', async (path) => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const { headers } = await browser.get(path);
    const login = await world.browser().get(path);
    expect(login.headers.get('content-security-policy')).toBe(OWN_POLICY);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toBe(OWN_POLICY);
  });

  it.each(PATHS)('%s, given a browser that prefers German → in German', async (path) => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    await browser.letIn(SHOP);
    const page = await browser.get(path, { 'accept-language': 'de-AT, en;q=0.5' });
    expect(page.body).toContain('<html lang="de">');
    expect(page.body).toContain('Seiten Ihres Kontos');
    expect(page.body.replace(/<[^>]+>/g, ' ')).not.toMatch(/\b(sign(ed)?|applications?|revoke|access)\b/i);
  });

  it('"use another account" → signed out, and the login page, which leads there; the link alone signs out none', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const answer = await browser.press(formOf(await browser.get('/account'), 'other_account'));
    expect([answer.status, answer.location]).toEqual([303, '/account?prompt=select_account']);
    expect((await browser.get('/account')).body).toContain('name="password"');
    const page = await browser.get(answer.location ?? '');
    const fields = {
      username: 'bob',
      password: PASSWORD,
      csrf: hidden(page, 'csrf'),
      request: hidden(page, 'request'),
    };
    expect((await browser.post('/login', fields)).location).toBe('/account');
    expect((await browser.get('/account')).body).toContain('<bdi>bob</bdi>');
    expect((await browser.get('/account?prompt=select_account')).body).toContain('name="password"');
    expect((await browser.get('/account')).body).toContain('<bdi>bob</bdi>');
  });

  it('shows who is signed in, as text', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    const { body } = await browser.get('/account');
    expect(body).toContain('Alice Ang (alice)');
    expect(body).toContain('alice@shop.example');
    expect(body).toContain('Signed in with: password<');
  });

  it('given a wrong password → the login page again, and the right one leads to the page', async () => {
    const world = await anAccountWorld();
    const browser = world.browser();
    const page = await browser.get('/account/sessions');
    const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const again = await browser.post('/login', { username: 'alice', password: 'wrong', ...sealed });
    expect(again.status).toBe(422);
    const fields = {
      username: 'alice',
      password: PASSWORD,
      csrf: hidden(again, 'csrf'),
      request: hidden(again, 'request'),
    };
    expect((await browser.post('/login', fields)).location).toBe('/account/sessions');
    expect(world.audits()).toEqual([
      expect.objectContaining({ event: 'login.failed', reason: 'credentials_wrong' }),
      expect.objectContaining({ event: 'login.succeeded' }),
    ]);
  });

  it('given an address to go on to in the query → nothing follows it', async () => {
    const world = await anAccountWorld();
    const browser = world.browser();
    const path = '/account?path=https://evil.example&return_to=//evil.example&redirect_uri=https://evil.example';
    const page = await browser.get(path);
    const fields = {
      username: 'alice',
      password: PASSWORD,
      csrf: hidden(page, 'csrf'),
      request: hidden(page, 'request'),
    };
    expect((await browser.post('/login?path=https://evil.example', fields)).location).toBe('/account');
    expect((await browser.get(path)).body).not.toContain('evil.example');
  });

  it('given a watermark of the person or of everything, above the sign-in → the login page', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    await world.stores.watermarks.raise({ kind: 'global' }, world.clock.now());
    expect((await browser.get('/account')).body).toContain('name="password"');
    world.clock.advance(1);
    await browser.signIn();
    const subject = String(world.audits().at(-1)?.subject);
    await world.stores.watermarks.raise({ kind: 'user', subject });
    expect((await browser.get('/account')).body).toContain('name="password"');
  });

  it('given many visits without a session → no store holds anything of them', async () => {
    const world = await anAccountWorld();
    const before = await world.stores.sessions.list('usr__opn0Ky1LrfMdvbK8-HI2s');
    for (let visit = 0; visit < 20; visit++) await world.browser().get('/account/applications');
    expect(await world.stores.sessions.list('usr__opn0Ky1LrfMdvbK8-HI2s')).toEqual(before);
  });

  it('given another method → 405 with Allow', async () => {
    const world = await anAccountWorld();
    for (const method of ['PUT', 'DELETE', 'HEAD']) {
      const answer = await world.browser().send(method, '/account', {});
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, POST']);
    }
  });
});

describe('a form of the account', () => {
  async function shown() {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    await browser.letIn(SHOP);
    const elsewhere = await world.browser().signIn();
    const forms = {
      signOut: formOf(await browser.get('/account'), 'sign_out'),
      everywhere: await browser.formAfter('/account', 'sign_out_everywhere'),
      endOne: await browser.formAfter('/account/sessions', 'sign_out', 1),
      revoke: await browser.formAfter('/account/applications', 'revoke'),
    };
    const subject = String(world.audits().at(-1)?.subject);
    /** All that the forms could end. */
    const held = async () => ({
      sessions: (await world.stores.sessions.list(subject)).length,
      consents: await world.stores.consents.list(subject),
      uses: await world.stores.uses.list(subject),
      watermark: await world.stores.watermarks.read('uid-of-shop.web', subject),
      audits: world.audits().length,
    });
    return { world, browser, elsewhere, forms, held };
  }
  const NAMES = ['signOut', 'everywhere', 'endOne', 'revoke'] as const;

  type Change = (form: AccountForm, others: Readonly<Record<(typeof NAMES)[number], AccountForm>>) => AccountForm;
  const HOSTILE: readonly (readonly [name: string, change: Change, headers: Record<string, string>, reason: string])[] =
    [
      ['of another site', (form) => form, { origin: 'https://evil.example' }, 'account_foreign_origin'],
      [
        'of a frame of another site',
        (form) => form,
        { origin: 'null', 'sec-fetch-site': 'cross-site' },
        'account_foreign_origin',
      ],
      [
        'of a sibling site',
        (form) => form,
        { origin: 'null', 'sec-fetch-site': 'same-site' },
        'account_foreign_origin',
      ],
      ['without csrf', (form) => ({ ...form, csrf: '' }), {}, 'account_bad_csrf'],
      ['with a made-up csrf', (form) => ({ ...form, csrf: 'A'.repeat(43) }), {}, 'account_bad_csrf'],
      [
        'about another subject',
        (form) => ({ ...form, subject: randomBytes(16).toString('base64url') }),
        {},
        'account_bad_csrf',
      ],
      [
        'with the csrf of another form',
        (form, { signOut, everywhere }) => ({
          ...form,
          csrf: (form.csrf === signOut.csrf ? everywhere : signOut).csrf,
        }),
        {},
        'account_bad_csrf',
      ],
      ['with an unknown action', (form) => ({ ...form, action: 'delete_account' }), {}, 'account_action_unknown'],
      [
        'with an action that every object has',
        (form) => ({ ...form, action: 'constructor' }),
        {},
        'account_action_unknown',
      ],
      ['without an action', (form) => ({ ...form, action: '' }), {}, 'account_action_unknown'],
    ];

  it.each(HOSTILE)('%s → 400, and nothing changes', async (_name, change, headers, reason) => {
    const { world, browser, forms, held } = await shown();
    const before = await held();
    for (const name of NAMES) {
      const answer = await browser.press(change(forms[name], forms), headers);
      expect([name, answer.status, world.lastReason()]).toEqual([name, 400, reason]);
      expect(answer.body).toContain('<h1>Nothing has changed</h1>');
    }
    expect(await held()).toEqual(before);
  });

  it('of one page at another → 400, and nothing changes', async () => {
    const { world, browser, forms, held } = await shown();
    const before = await held();
    const answer = await browser.press({ ...forms.revoke, target: '/account/sessions' });
    expect([answer.status, world.lastReason()]).toEqual([400, 'account_action_unknown']);
    // The same action, about a session, at the page whose action is about this browser.
    const moved = await browser.press({ ...forms.endOne, target: '/account', subject: '' });
    expect([moved.status, world.lastReason()]).toEqual([400, 'account_bad_csrf']);
    expect(await held()).toEqual(before);
  });

  it('of another session of the same person, or of another person → 400, and nothing changes', async () => {
    const { world, forms, elsewhere, held } = await shown();
    const bob = await world.browser().signIn('bob');
    const before = await held();
    for (const browser of [elsewhere, bob]) {
      for (const name of NAMES) {
        const answer = await browser.press(forms[name]);
        expect([name, answer.status, world.lastReason()]).toEqual([name, 400, 'account_bad_csrf']);
      }
    }
    expect(await held()).toEqual(before);
  });

  it.each(['csrf', 'action', 'subject'])('with %s twice → 400, and nothing changes', async (field) => {
    const { browser, forms, held } = await shown();
    const before = await held();
    const { target, asks: _, ...fields } = forms.revoke;
    const twice = [...Object.entries(fields), ...Object.entries(fields).filter(([name]) => name === field)];
    expect((await browser.post(target, twice as [string, string][])).status).toBe(400);
    expect(await held()).toEqual(before);
  });

  it('given a session that has ended since → the page, which is the login page, and nothing changes', async () => {
    const { world, browser, forms, held } = await shown();
    const stale = browser.at(world.one);
    await browser.press(forms.signOut);
    const before = await held();
    for (const name of ['endOne', 'revoke', 'everywhere'] as const) {
      const answer = await stale.press(forms[name]);
      expect([answer.status, answer.location]).toEqual([303, forms[name].target]);
    }
    expect((await stale.get('/account')).body).toContain('name="password"');
    expect(await held()).toEqual(before);
  });

  it('names neither the id nor the cookie of a session, nor its sid', async () => {
    const { world, browser } = await shown();
    const page = await browser.get('/account/sessions');
    const [{ subject } = { subject: '' }] = world.audits().map((line) => ({ subject: String(line.subject) }));
    const sessions = await world.stores.sessions.list(subject);
    expect(sessions).toHaveLength(2);
    for (const { sessionId, sid } of sessions) {
      expect(page.body).not.toContain(sessionId.slice(4));
      expect(page.body).not.toContain(sid);
    }
    expect(formsOf(page)).toHaveLength(2);
  });
});
