import { describe, expect, it } from 'vitest';
import { answerOf, hidden } from './sign-in-browser.ts';
import { aWorld, CALLBACK, NATIVE, PASSWORD, WEB, type World } from './sign-in-world.ts';

const BASELINE = { ...WEB, admittedBy: 'baseline' } as const;
const BAD_SCOPE = { scope: 'shop/read admin' };

async function signIn(world: World, scopes: readonly string[] = WEB.scopes) {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  world.setClients([{ ...BASELINE, scopes }]);
  const [csrf, request] = [hidden(page, 'csrf'), hidden(page, 'request')];
  const answer = await browser.post('/login', { username: 'alice', password: PASSWORD, csrf, request });
  return { browser, answer };
}

describe('an error of a client that only the baseline admitted', () => {
  it('for a person who is not signed in → a 400 page that names the host and links to the answer', async () => {
    const world = await aWorld({ clients: [BASELINE] });
    const answer = await world.browser().get(world.authorizePath(BAD_SCOPE));
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    const [, href = '', text] = /<a href="([^"]*)"[^>]*>([^<]*)<\/a>/.exec(answer.body) ?? [];
    expect(text).toContain('shop.example');
    const link = new URL(href.replaceAll('&#38;', '&'));
    expect(link.origin + link.pathname).toBe(CALLBACK);
    expect(Object.fromEntries(link.searchParams)).toMatchObject({ error: 'invalid_scope', state: 'st&te= 1' });
    const { clientId } = BASELINE;
    expect(world.logs().at(-1)).toMatchObject({ clientId, outcome: 'refused', reason: 'scope_not_registered' });
  });

  it('at an address that is no https → the page says what kind of program it is', async () => {
    const world = await aWorld({ clients: [{ ...NATIVE, admittedBy: 'baseline' }] });
    const ask = async (redirect_uri: string) =>
      (await world.browser().get(world.authorizePath({ ...BAD_SCOPE, client_id: NATIVE.clientId, redirect_uri }))).body;
    expect(await ask('http://127.0.0.1:4000/callback')).toContain('a program on this computer (127.0.0.1:4000)</a>');
    expect(await ask('com.example.app:/callback')).toContain('an app on this device (com.example.app)</a>');
  });

  it('in a frame → the redirect, which silent sign-in waits for', async () => {
    const world = await aWorld({ clients: [BASELINE] });
    const answer = await world.browser().get(world.authorizePath(BAD_SCOPE), { 'sec-fetch-dest': 'iframe' });
    expect([answer.status, answerOf(answer).error]).toEqual([302, 'invalid_scope']);
  });

  it('for a person who is signed in → the redirect', async () => {
    const world = await aWorld({ clients: [BASELINE] });
    const { browser } = await signIn(world);
    expect(answerOf(await browser.get(world.authorizePath(BAD_SCOPE))).error).toBe('invalid_scope');
  });

  it('that changed while the person typed the password → the page, not a redirect', async () => {
    const world = await aWorld({ clients: [BASELINE] });
    const { answer } = await signIn(world, []);
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(answer.body).toContain('Go to shop.example</a>');
  });

  it('while the store of sessions is unavailable → a 503 page without a link', async () => {
    const world = await aWorld({ clients: [BASELINE] });
    const { browser } = await signIn(world);
    world.breakStore('sessions');
    for (const changes of [{}, BAD_SCOPE]) {
      const answer = await browser.get(world.authorizePath(changes));
      expect([answer.status, answer.location]).toEqual([503, undefined]);
      expect(answer.body).not.toContain('<a ');
    }
  });
});
