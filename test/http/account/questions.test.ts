// The questions before something ends: what they name, and that neither they nor the way to them end anything.

import { describe, expect, it } from 'vitest';
import { OWN_POLICY } from '../sign-in/sign-in-world.ts';
import {
  type AccountForm,
  type AccountWorldOptions,
  anAccountWorld,
  formOf,
  formsOf,
  MAIL,
  questionPath,
  SHOP,
} from './account-world.ts';

const ALICE = 'usr__opn0Ky1LrfMdvbK8-HI2s';
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

/** Each button that ends something: its page, and its place on it among those with its action. */
const BUTTONS = [
  ['/account', 'sign_out_everywhere', 0],
  ['/account/sessions', 'sign_out', 1],
  ['/account/applications', 'revoke', 0],
  ['/account/applications', 'revoke', 1],
] as const;

/** A person in two browsers, with two applications. */
async function shown(options: AccountWorldOptions = {}) {
  const world = await anAccountWorld(options);
  const browser = await world.browser().signIn();
  for (const client of [SHOP, MAIL]) await browser.letIn(client);
  world.clock.advance(60_000);
  await world.browser(FIREFOX).signIn();
  const held = async () => ({
    sessions: (await world.stores.sessions.list(ALICE)).length,
    consents: await world.stores.consents.list(ALICE),
    uses: await world.stores.uses.list(ALICE),
    watermarks: await Promise.all(
      ['', 'uid-of-shop.web', 'uid-of-shop.mail'].map((uid) => world.stores.watermarks.read(uid, ALICE)),
    ),
    audits: world.audits().length,
  });
  return { world, browser, held };
}

describe('a button that ends something', () => {
  it.each(BUTTONS)(
    'at %s, %s of entry %i → a question, and nothing ends before its answer',
    async (path, action, index) => {
      const { browser, held } = await shown();
      const before = await held();
      const button = formOf(await browser.get(path), action, index);
      expect([button.asks, button.csrf]).toEqual([true, '']);
      const question = await browser.press(button);
      expect(question.status).toBe(200);
      expect(question.headers.get('cache-control')).toBe('no-store');
      expect(question.headers.get('content-security-policy')).toBe(OWN_POLICY);
      expect(question.headers.get('x-frame-options')).toBe('DENY');
      // A reload, and a second visit.
      expect((await browser.press(button)).body).toBe(question.body);
      const [cancel, form, ...others] = formsOf(question);
      expect([cancel, others]).toEqual([{ target: path, asks: true, action: '', csrf: '', subject: '' }, []]);
      expect(form).toMatchObject({ target: path, action, subject: button.subject, asks: false });
      expect(await held()).toEqual(before);
      expect((await browser.press(form as AccountForm)).status).toBe(303);
      expect(await held()).not.toEqual(before);
    },
  );

  it.each(BUTTONS)('at %s, %s of entry %i, posted as it is → 400, and nothing ends', async (path, action, index) => {
    const { world, browser, held } = await shown();
    const before = await held();
    const button = formOf(await browser.get(path), action, index);
    expect((await browser.press({ ...button, asks: false })).status).toBe(400);
    expect(world.lastReason()).toBe('account_bad_csrf');
    expect(await held()).toEqual(before);
  });
});

describe('a question', () => {
  it('about everything → names the person, and what ends', async () => {
    const { browser } = await shown();
    const { body } = await browser.press(formOf(await browser.get('/account'), 'sign_out_everywhere'));
    expect(body).toContain('<h1>Sign out everywhere?</h1>');
    expect(body).toContain('Alice Ang (alice)');
    expect(body).toContain('Signs you out in every browser');
  });

  it('about a session → names it by what its entry says', async () => {
    const { browser } = await shown();
    const { body } = await browser.press(formOf(await browser.get('/account/sessions'), 'sign_out', 1));
    expect(body).toContain('<h1>End this session?</h1>');
    for (const said of ['Firefox', 'January 1, 2026 at 12:01 PM UTC', 'Signed in with: password']) {
      expect(body).toContain(said);
    }
    expect(body).not.toContain('This browser');
  });

  it('about the session of this very browser → the page, whose button acts at once as that of the account does', async () => {
    const { browser, held } = await shown();
    const before = await held();
    const button = formOf(await browser.get('/account/sessions'), 'sign_out');
    expect(button.asks).toBe(false);
    const answer = await browser.press({ ...button, asks: true });
    expect([answer.status, answer.location]).toEqual([303, '/account/sessions']);
    expect(await held()).toEqual(before);
  });

  it('about an application → names it, the places, and how long its JWTs live on, not so for opaque tokens; what is allowed is folded', async () => {
    const { browser } = await shown();
    const page = await browser.get('/account/applications');
    const bodies = await Promise.all([0, 1].map(async (at) => (await browser.press(formOf(page, 'revoke', at))).body));
    const ofShop = bodies.find((body) => body.includes('Shop &#38; Sons')) ?? '';
    const ofMail = bodies.find((body) => body.includes('<bdi>Mail</bdi>')) ?? '';
    for (const body of [ofShop, ofMail]) {
      expect(body).toContain('<h1>Revoke access?</h1>');
      const [shown = '', folded = '', ...others] = body.split(/<\/?details>/);
      expect(others.splice(0, 1).join()).toContain('the application gets nothing more');
      expect(others).toEqual([]);
      expect(shown).toMatch(/<code>shop\.(web|mail)<\/code>/);
      expect(shown).toContain('Where this works: https://api.shop.example/</p>');
      expect(shown).not.toContain('read');
      expect(folded).toContain('<h4>https://api.shop.example/</h4>');
      expect(folded).toContain('<code>read</code>');
      expect(folded).toContain('Last used: January 1, 2026');
    }
    expect(ofShop).toContain('may accept them for up to 10 minutes');
    expect(ofMail).not.toContain('may accept them');
    expect(ofMail).not.toContain('Shop');
  });

  it('about an application that is out of service → may be answered', async () => {
    const { world, browser } = await shown();
    for (const grantry of [world.one, world.other]) grantry.setClients([MAIL]);
    const page = await browser.get('/account/applications');
    const button = formsOf(page).find(({ subject }) => subject === 'uid-of-shop.web') as AccountForm;
    const question = await browser.press(button);
    expect(question.body).toContain('An application that is out of service');
    expect((await browser.press(formOf(question, 'revoke'))).location).toBe(
      '/account/applications?revoked=uid-of-shop.web',
    );
  });

  it.each(BUTTONS.slice(1))(
    'at %s about %s of entry %i that has ended → the page, and nothing more ends',
    async (path, action, index) => {
      const { browser, held } = await shown();
      const button = formOf(await browser.get(path), action, index);
      await browser.press(formOf(await browser.press(button), action));
      const after = await held();
      const answer = await browser.press(button);
      expect([answer.status, answer.location]).toEqual([303, path]);
      expect((await browser.get(path)).status).toBe(200);
      expect(await held()).toEqual(after);
    },
  );

  it('about a session or an application of another person → the page, as for one that has ended', async () => {
    const { world, browser, held } = await shown();
    const bob = await world.browser().signIn('bob');
    const before = await held();
    for (const [path, action, index] of BUTTONS.slice(1)) {
      const button = formOf(await browser.get(path), action, index);
      const answer = await bob.press(button);
      expect([path, answer.status, answer.location]).toEqual([path, 303, path]);
    }
    expect(await held()).toEqual(before);
  });

  it.each(BUTTONS)('at %s about %s of entry %i, given no session → the login page', async (path, action, index) => {
    const { world, browser } = await shown();
    const button = formOf(await browser.get(path), action, index);
    const stranger = world.browser();
    expect((await stranger.press(button)).body).toContain('name="password"');
    await stranger.signIn('alice', path);
  });

  it.each([
    ['an unknown action', '/account?confirm=delete_account', 'account_action_unknown'],
    ['an action that every object has', '/account?confirm=constructor', 'account_action_unknown'],
    ['an action that acts at once', '/account?confirm=sign_out', 'account_action_unknown'],
    ['an action of another page', '/account/sessions?confirm=revoke', 'account_action_unknown'],
    ['two actions', '/account?confirm=sign_out_everywhere&confirm=sign_out', 'duplicate_parameter'],
    ['two subjects', '/account/sessions?confirm=sign_out&subject=a&subject=b', 'duplicate_parameter'],
  ])('about %s → 400, and nothing ends', async (_what, path, reason) => {
    const { world, browser, held } = await shown();
    const before = await held();
    expect([(await browser.get(path)).status, world.lastReason()]).toEqual([400, reason]);
    expect(await held()).toEqual(before);
  });

  it.each([
    ['sessions', '/account/sessions'],
    ['consents', '/account/applications'],
    ['uses', '/account/applications'],
  ] as const)('given %s unavailable → 503, and no form', async (store, path) => {
    const { world, browser } = await shown();
    const button = formsOf(await browser.get(path)).at(-1) as AccountForm;
    world.breakStore(store);
    const answer = await browser.press(button);
    expect([answer.status, formsOf(answer)]).toEqual([503, []]);
  });

  it('given an issuer with a path → all is below it', async () => {
    const world = await anAccountWorld({ issuer: 'https://id.example/tenant' });
    const browser = await world.browser().signIn('alice', '/tenant/account');
    const page = await browser.get('/tenant/account');
    const button = formOf(page, 'sign_out_everywhere');
    expect(questionPath(button)).toBe('/tenant/account?confirm=sign_out_everywhere');
    const question = await browser.press(button);
    const links = [...question.body.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, link]) => link ?? '');
    expect(links.filter((link) => !link.startsWith('/tenant/'))).toEqual([]);
    const gone = await browser.get('/tenant/account/sessions?confirm=sign_out&subject=gone');
    expect([gone.status, gone.location]).toEqual([303, '/tenant/account/sessions']);
    const answer = await browser.press(formOf(question, 'sign_out_everywhere'));
    expect([answer.status, answer.location]).toEqual([303, '/tenant/logout']);
  });
});
