// Mirrors of oidcc-rp-initiated-logout-certification-test-plan of the OpenID Foundation's conformance suite: one test for
// each of its modules, under its name, with PKCE.

import { decodeJwt, SignJWT, UnsecuredJWT } from 'jose';
import { expect, it } from 'vitest';
import { hidden, type Page, type TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { clientManifest, GOODBYE, ISSUER, startProvider } from './provider.ts';

const provider = await startProvider(clientManifest('first'), { issuer: ISSUER });
const first = provider.relyingParty('first');
/** As long as that of the suite. */
const STATE = 'st4te-'.repeat(22).slice(0, 128);

/** A signed-in browser and its ID token. */
async function signedIn() {
  const browser = provider.browser();
  return { browser, idToken: (await first.signIn(browser)).idToken };
}

/** The error of a silent request; undefined for a browser that is signed in. */
async function silentError(browser: TestBrowser): Promise<string | undefined> {
  return (await first.answer(browser, { prompt: 'none' })).error;
}

/** Says yes to the question, as the person does. */
async function confirm(browser: TestBrowser, page: Page): Promise<Page> {
  expect([page.status, page.location]).toEqual([200, undefined]);
  const action = /<form\b[^>]* action="([^"]+)"/.exec(page.body)?.[1] ?? '';
  const fields = Object.fromEntries(
    ['csrf', 'state', 'id_token_hint', 'post_logout_redirect_uri', 'client_id'].flatMap((name) =>
      page.body.includes(`name="${name}"`) ? [[name, hidden(page, name)]] : [],
    ),
  );
  return await browser.post(action, fields);
}

/** A page that says the person is signed out, and a session that is over. */
async function expectSignedOut(browser: TestBrowser, page: Page): Promise<void> {
  expect([page.status, page.location]).toEqual([200, undefined]);
  expect(page.body).toContain('<h1>You are signed out</h1>');
  expect(await silentError(browser)).toBe('login_required');
}

/** An error page, and a session that lives on. */
async function expectRefused(browser: TestBrowser, page: Page): Promise<void> {
  expect([page.status, page.location]).toEqual([400, undefined]);
  expect(await silentError(browser)).toBeUndefined();
}

it('oidcc-rp-initiated-logout-discovery-endpoint-verification → end_session_endpoint by https', async () => {
  expect(new URL(provider.metadata.end_session_endpoint).protocol).toBe('https:');
});

it('oidcc-rp-initiated-logout → the address with state alone; prompt=none is login_required then', async () => {
  const { browser, idToken } = await signedIn();
  const query = { id_token_hint: idToken, post_logout_redirect_uri: GOODBYE, state: STATE };
  const { status, location } = await provider.logout(browser, query);
  expect([status, location]).toEqual([302, `${GOODBYE}?state=${STATE}`]);
  expect(await silentError(browser)).toBe('login_required');
});

it('oidcc-rp-initiated-logout-bad-post-logout-redirect-uri → a page, and nothing ends', async () => {
  const { browser, idToken } = await signedIn();
  const query = { id_token_hint: idToken, post_logout_redirect_uri: `${GOODBYE}/another`, state: STATE };
  await expectRefused(browser, await provider.logout(browser, query));
});

it('oidcc-rp-initiated-logout-modified-id-token-hint → a page, and nothing ends', async () => {
  const { browser, idToken } = await signedIn();
  const unsigned = new UnsecuredJWT(decodeJwt(idToken)).encode();
  const query = { id_token_hint: unsigned, post_logout_redirect_uri: GOODBYE, state: STATE };
  await expectRefused(browser, await provider.logout(browser, query));
});

it('oidcc-rp-initiated-logout-no-id-token-hint → a page, as no client is named, and nothing ends', async () => {
  const { browser } = await signedIn();
  await expectRefused(browser, await provider.logout(browser, { post_logout_redirect_uri: GOODBYE, state: STATE }));
});

it('oidcc-rp-initiated-logout-no-params → a question, then the person is signed out', async () => {
  const { browser } = await signedIn();
  await expectSignedOut(browser, await confirm(browser, await provider.logout(browser)));
});

it('oidcc-rp-initiated-logout-no-post-logout-redirect-uri → the person is signed out', async () => {
  const { browser, idToken } = await signedIn();
  await expectSignedOut(browser, await provider.logout(browser, { id_token_hint: idToken, state: STATE }));
});

it('oidcc-rp-initiated-logout-no-state → the address without state', async () => {
  const { browser, idToken } = await signedIn();
  const query = { id_token_hint: idToken, post_logout_redirect_uri: GOODBYE };
  const { status, location } = await provider.logout(browser, query);
  expect([status, location]).toEqual([302, GOODBYE]);
  expect(await silentError(browser)).toBe('login_required');
});

// The question's form repeats the state, so it is too short to count as a secret on a page.
it('oidcc-rp-initiated-logout-only-state → a question, then the person is signed out', async () => {
  const { browser } = await signedIn();
  await expectSignedOut(browser, await confirm(browser, await provider.logout(browser, { state: 'short' })));
});

it('oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri → a page, and nothing ends', async () => {
  const { browser, idToken } = await signedIn();
  const query = { id_token_hint: idToken, post_logout_redirect_uri: `${GOODBYE}?foo=bar`, state: STATE };
  await expectRefused(browser, await provider.logout(browser, query));
});

it('oidcc-rp-initiated-logout-bad-id-token-hint → a page, and nothing ends', async () => {
  const { browser, idToken } = await signedIn();
  const forged = await new SignJWT(decodeJwt(idToken))
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(Buffer.from('a key of the suite, which the server does not know'));
  const query = { id_token_hint: forged, post_logout_redirect_uri: GOODBYE, state: STATE };
  await expectRefused(browser, await provider.logout(browser, query));
});
