// The sessions of a person: what the page shows of them, and what ends when the person ends one or all.

import { describe, expect, it } from 'vitest';
import { shardOfPerson } from '../../../src/oauth/values/shard.ts';
import { TokenCalls } from '../protocol/token-calls.ts';
import { type AccountBrowser, anAccountWorld, entriesOf, formOf, formsOf, SHOP } from './account-world.ts';

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
const PATH = '/account/sessions';
const ALICE = 'usr__opn0Ky1LrfMdvbK8-HI2s';

const isSignedIn = async (browser: AccountBrowser) => !(await browser.get('/account')).body.includes('name="password"');

describe('the page of the sessions', () => {
  it('shows browser, address and time of each, this one first, and marks it', async () => {
    const world = await anAccountWorld();
    const here = await world.browser(FIREFOX).signIn();
    world.clock.advance(90_000);
    await world.browser(CHROME).signIn();
    world.clock.advance(60_000);
    await world.browser('curl/8').signIn();
    await world.browser(CHROME).signIn('bob');
    expect(entriesOf(await here.get(PATH))).toEqual([
      'Firefox This browser Address: 127.0.0.1 Signed in: January 1, 2026 at 12:00 PM UTC Signed in with: password',
      'Another browser Address: 127.0.0.1 Signed in: January 1, 2026 at 12:02 PM UTC Signed in with: password',
      'Chrome Address: 127.0.0.1 Signed in: January 1, 2026 at 12:01 PM UTC Signed in with: password',
    ]);
  });

  it('given a record without address and browser → shows what it has', async () => {
    const world = await anAccountWorld({ withoutPlaces: true });
    const here = await world.browser(FIREFOX).signIn();
    expect(entriesOf(await here.get(PATH))).toEqual([
      'Another browser This browser Signed in: January 1, 2026 at 12:00 PM UTC Signed in with: password',
    ]);
  });

  it('given 200 sessions → the newest 50, and says that there are more', async () => {
    const world = await anAccountWorld();
    const here = await world.browser(CHROME).signIn();
    await world.beginSessions(200);
    const page = await here.get(PATH);
    const entries = entriesOf(page);
    expect(entries).toHaveLength(50);
    expect(entries[0]).toContain('This browser');
    expect(page.body).toContain('There are more. These are the newest 50.');
    expect(page.body.length).toBeLessThan(64 * 1024);
  });

  it('given an unavailable store → 503', async () => {
    const world = await anAccountWorld();
    const browser = await world.browser().signIn();
    world.breakStore('sessions');
    expect((await browser.get(PATH)).status).toBe(503);
  });
});

describe('signing out', () => {
  it('one other session → that one alone, at every replica, once', async () => {
    const world = await anAccountWorld();
    const [here, there, third] = [
      await world.browser(FIREFOX).signIn(),
      await world.browser(CHROME).signIn(),
      await world.browser('curl/8').signIn(),
    ];
    const index = entriesOf(await here.get(PATH)).findIndex((entry) => entry.startsWith('Chrome'));
    const form = await here.formAfter(PATH, 'sign_out', index);
    const answer = await here.press(form);
    expect([answer.status, answer.location]).toEqual([303, PATH]);
    expect(await isSignedIn(there.at(world.other))).toBe(false);
    expect([await isSignedIn(here), await isSignedIn(third)]).toEqual([true, true]);
    expect(world.audits().at(-1)).toMatchObject({ event: 'session.ended', subject: ALICE, reason: 'account_page' });
    const audits = world.audits().length;
    // A second click.
    expect((await here.press(form)).status).toBe(303);
    expect(world.audits()).toHaveLength(audits);
    expect(entriesOf(await here.get(PATH))).toHaveLength(2);
  });

  it('one that is older than the thousand newest → 400, and it lives', async () => {
    const world = await anAccountWorld();
    const [there, here] = [await world.browser(FIREFOX).signIn(), await world.browser(CHROME).signIn()];
    const asking = formOf(await here.get(PATH), 'sign_out', 1);
    const form = formOf(await here.press(asking), 'sign_out');
    const own = formOf(await here.get(PATH), 'sign_out');
    await world.beginSessions(1000);
    for (const each of [form, asking]) {
      const answer = await here.press(each);
      expect([answer.status, world.lastReason()]).toEqual([400, 'account_session_unknown']);
    }
    expect(await isSignedIn(there)).toBe(true);
    // One that is read ends as ever, and so does this browser's own, however old.
    const newest = await here.press(await here.formAfter(PATH, 'sign_out', 1));
    expect([newest.status, newest.location]).toEqual([303, PATH]);
    const last = await here.press(own);
    expect([last.status, last.location]).toEqual([303, '/logout']);
    expect(await isSignedIn(here)).toBe(false);
  });

  it.each(['/account', PATH])('here, at %s → this browser alone, and a page that says so', async (path) => {
    const world = await anAccountWorld();
    const [here, there] = [await world.browser().signIn(), await world.browser().signIn()];
    const page = await here.get(path);
    expect(page.body).toContain('>Sign out here</button>');
    const answer = await here.press(formOf(page, 'sign_out'));
    expect([answer.status, answer.location]).toEqual([303, '/logout']);
    const { body } = await here.get('/logout');
    expect(body).toContain('You are signed out');
    const [, again = ''] = /<a href="([^"]*)">Sign in again</.exec(body) ?? [];
    expect((await here.get(again)).body).toContain('name="password"');
    expect([await isSignedIn(here), await isSignedIn(there)]).toEqual([false, true]);
    expect(world.audits().at(-1)).toMatchObject({ event: 'session.ended', reason: 'account_page' });
  });

  it('everywhere → every session and every grant, at every replica, of this person alone', async () => {
    const world = await anAccountWorld();
    const [here, there, bob] = [
      await world.browser().signIn(),
      await world.browser().signIn(),
      await world.browser().signIn('bob'),
    ];
    const held = await here.letIn(SHOP);
    const ofBob = await bob.letIn(SHOP, { username: 'bob' });
    const answer = await here.press(await here.formAfter('/account', 'sign_out_everywhere'));
    expect([answer.status, answer.location]).toEqual([303, '/logout']);
    expect((await here.get('/logout')).body).toContain('You are signed out');
    for (const grantry of [world.one, world.other]) {
      expect(await isSignedIn(here.at(grantry))).toBe(false);
      expect(await isSignedIn(there.at(grantry))).toBe(false);
    }
    expect(await isSignedIn(bob.at(world.other))).toBe(true);
    const calls = new TokenCalls(world.other);
    expect(await calls.refresh(held.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect((await calls.refresh(ofBob.refresh_token)).status).toBe(200);
    expect(world.audits().at(-1)).toEqual({ event: 'sessions.ended_all', subject: ALICE, reason: 'account_page' });
    world.clock.advance(1);
    expect(await isSignedIn(await here.signIn())).toBe(true);
  });

  it.each(['watermarks', 'sessions'] as const)(
    'everywhere, given %s unavailable → 503, and after that all ends',
    async (store) => {
      const world = await anAccountWorld();
      const [here, there] = [await world.browser().signIn(), await world.browser().signIn()];
      const form = await here.formAfter('/account', 'sign_out_everywhere');
      world.breakStore(store);
      const answer = await here.press(form);
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
      world.mendStores();
      expect(world.audits().map(({ event }) => event)).not.toContain('sessions.ended_all');
      expect(await isSignedIn(there)).toBe(true);
      expect((await here.press(form)).location).toBe('/logout');
      expect(await isSignedIn(there)).toBe(false);
    },
  );

  it('everywhere, given a fault after the watermark → 503, and all are signed out', async () => {
    const world = await anAccountWorld();
    const [here, there] = [await world.browser().signIn(), await world.browser().signIn()];
    world.breakStore('sessions', 'endAll');
    expect((await here.press(await here.formAfter('/account', 'sign_out_everywhere'))).status).toBe(503);
    expect(world.audits().map(({ event }) => event)).not.toContain('sessions.ended_all');
    expect([await isSignedIn(here), await isSignedIn(there)]).toEqual([false, false]);
  });

  it('everywhere → the logouts of each session are pending', async () => {
    const client = { ...SHOP, backchannelLogoutUri: 'https://shop.example/logged-out' };
    const world = await anAccountWorld({ clients: [client] });
    const [here, there] = [await world.browser().signIn(), await world.browser().signIn()];
    for (const browser of [here, there]) await browser.letIn(client, { scope: 'openid' });
    await here.press(await here.formAfter('/account', 'sign_out_everywhere'));
    const pending = await world.stores.logouts.list(shardOfPerson(ALICE));
    expect(pending.map(({ clientUid, subject }) => [clientUid, subject])).toEqual([
      ['uid-of-shop.web', ALICE],
      ['uid-of-shop.web', ALICE],
    ]);
    expect(new Set(pending.map(({ sid }) => sid)).size).toBe(2);
  });

  it('shows no form of one session in the page of another person', async () => {
    const world = await anAccountWorld();
    const [alice, bob] = [await world.browser().signIn(), await world.browser().signIn('bob')];
    const handles = (page: Awaited<ReturnType<AccountBrowser['get']>>) => formsOf(page).map(({ subject }) => subject);
    const [ofAlice, ofBob] = [handles(await alice.get(PATH)), handles(await bob.get(PATH))];
    expect([ofAlice.length, ofBob.length]).toEqual([1, 1]);
    expect(ofAlice).not.toEqual(ofBob);
  });
});
