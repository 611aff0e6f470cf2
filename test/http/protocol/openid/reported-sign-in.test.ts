// What the ID token says of a request: its nonce and the time of its sign-in, whichever way the person went.

import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { basic, PKCE } from '../../../grantry.ts';
import { OPENID, openidPath, type Query, signedIn, submitLogin } from '../../sign-in/openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../../sign-in/sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../../sign-in/sign-in-world.ts';

const ASKS = { ...OPENID, consent: 'Required' } as const;
const NONCE = 'n-0S6 ü&=+%';

async function decide(browser: TestBrowser, path: string, decision: string): Promise<Page> {
  const csrf = hidden(await browser.get(path), 'csrf');
  return browser.get((await browser.post(path, { decision, csrf })).location ?? '');
}

/** What the token endpoint answers to the code that the client got. */
async function tokensOf(world: World, answer: Page): Promise<{ readonly id_token?: string }> {
  const { code = '' } = answerOf(answer);
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
  const headers = { authorization: basic(OPENID.clientId, SECRET) };
  const response = await world.post('/token', form, { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as { readonly id_token?: string };
}

async function claimsOf(world: World, answer: Page) {
  return decodeJwt((await tokensOf(world, answer)).id_token ?? '');
}

describe('the nonce of a request', () => {
  const request: Query = { nonce: NONCE };

  it('given a session, a login page, a form by POST → in the ID token as it was sent', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    const straight = await browser.get(openidPath(world, request));
    const page = await browser.get(openidPath(world, { ...request, prompt: 'login' }));
    const resumed = await browser.get((await submitLogin(browser, page)).location ?? '');
    const form = new URL(openidPath(world, request), world.issuer).search.slice(1);
    const posted = await browser.post('/authorize', [...new URLSearchParams(form)]);
    for (const answer of [straight, resumed, await browser.get(posted.location ?? '')]) {
      expect(await claimsOf(world, answer)).toMatchObject({ nonce: NONCE, sub: world.subject('alice') });
    }
  });

  it('given consent, by another account → in the ID token of that person, with the time of that sign-in', async () => {
    const world = await aWorld({ clients: [ASKS] });
    const browser = await signedIn(world);
    world.advance(60_000);
    const { location: path = '' } = await browser.get(openidPath(world, request));
    const page = await decide(browser, path, 'other_account');
    const { location: next = '' } = await submitLogin(browser, page, 'bob');
    const claims = await claimsOf(world, await decide(browser, next, 'allow'));
    const auth_time = Math.floor(world.now() / 1000);
    expect(claims).toMatchObject({ nonce: NONCE, sub: world.subject('bob'), auth_time });
  });

  it('given none → not in the ID token; given a scope without openid → no ID token', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    expect(await claimsOf(world, await browser.get(openidPath(world)))).not.toHaveProperty('nonce');
    const plain = await tokensOf(world, await browser.get(world.authorizePath({ nonce: NONCE })));
    expect(plain).not.toHaveProperty('id_token');
  });
});
