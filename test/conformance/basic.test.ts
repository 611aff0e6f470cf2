// Mirrors of oidcc-basic-certification-test-plan of the OpenID Foundation's conformance suite: one test for each of its
// modules, under its name, with PKCE, which the suite leaves out. Where the suite skips a module, warns or takes more than
// one answer, the test states that of grantry.

import { UnsecuredJWT } from 'jose';
import { expect, it } from 'vitest';
import { answerIn } from '../clients/person.ts';
import type { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import {
  ANSWERS,
  admit,
  CALLBACK,
  type Changes,
  clientManifest,
  ISSUER,
  isLoginPage,
  pathOf,
  startProvider,
} from './provider.ts';

const provider = await startProvider(
  clientManifest('first') + clientManifest('second') + clientManifest('post', 'client_secret_post'),
  { issuer: ISSUER },
);
const { metadata } = provider;
const { clock } = provider.grantry;
const first = provider.relyingParty('first');
const second = provider.relyingParty('second');

/** The claims of a sign-in that nothing was asked for in. */
async function silently(browser: TestBrowser, changes: Changes = {}) {
  const request = first.request(changes);
  const { location = '' } = await browser.get(pathOf(request.url.href));
  expect(location.startsWith(`${CALLBACK}?`)).toBe(true);
  return (await first.finish(request, new URL(location))).claims;
}

/** A request object of the suite, without a signature. */
function requestObject(url: URL): string {
  return new UnsecuredJWT(Object.fromEntries(url.searchParams)).setAudience(metadata.issuer).encode();
}

it('oidcc-server → a code, an access token for userinfo, and an ID token of the sign-in', async () => {
  const { claims, refreshToken } = await first.signIn(provider.browser());
  expect(Object.keys(claims).sort()).toEqual(
    ['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash', 'sid', 'jti'].sort(),
  );
  expect(refreshToken).toEqual(expect.any(String));
});

it('oidcc-response-type-missing → invalid_request at the client', async () => {
  const { error } = await first.answer(provider.browser(), { response_type: undefined });
  expect(error).toBe('invalid_request');
});

it('oidcc-idtoken-signature → RS256 with a kid, where the manifest names no algorithm', async () => {
  const { header } = await first.signIn(provider.browser());
  expect(header).toMatchObject({ alg: 'RS256', kid: expect.any(String) });
});

it('oidcc-idtoken-unsigned → skipped by the suite: none is not offered, and a manifest that names it is refused', async () => {
  expect(metadata.id_token_signing_alg_values_supported).toEqual(['ES256', 'RS256']);
  const manifest = clientManifest('unsigned', 'client_secret_basic', '  tokens: { idTokenSigningAlgorithm: none }');
  const [verdict] = await admit(manifest, metadata.issuer);
  expect(verdict?.client).toBeUndefined();
  expect(verdict?.conditions.map(({ reason }) => reason)).toContain('InvalidTokenSettings');
});

it('oidcc-userinfo-get → the sub of the ID token, as JSON', async () => {
  const { accessToken, claims } = await first.signIn(provider.browser());
  const { status, body, headers } = await provider.userinfo(accessToken);
  expect([status, body]).toEqual([200, { sub: claims.sub }]);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
});

it('oidcc-userinfo-post-header → the same', async () => {
  const { accessToken, claims } = await first.signIn(provider.browser());
  const headers = { authorization: `Bearer ${accessToken}` };
  const { status, body } = await provider.json(metadata.userinfo_endpoint, { method: 'POST', headers });
  expect([status, body]).toEqual([200, { sub: claims.sub }]);
});

it('oidcc-userinfo-post-body → the same', async () => {
  const { accessToken, claims } = await first.signIn(provider.browser());
  const form = new URLSearchParams({ access_token: accessToken });
  const { status, body } = await provider.json(metadata.userinfo_endpoint, { method: 'POST', body: form });
  expect([status, body]).toEqual([200, { sub: claims.sub }]);
});

it('oidcc-ensure-request-without-nonce-succeeds-for-code-flow → an ID token without nonce', async () => {
  const { claims } = await first.signIn(provider.browser(), { nonce: undefined });
  expect(claims).not.toHaveProperty('nonce');
});

it('oidcc-scope-profile → of its claims name and preferred_username, in the ID token too: two warnings of the suite', async () => {
  const { accessToken, claims } = await first.signIn(provider.browser(), { scope: 'openid profile' });
  const disclosed = { name: 'Alice Ang', preferred_username: 'alice' };
  expect((await provider.userinfo(accessToken)).body).toEqual({ sub: claims.sub, ...disclosed });
  expect(claims).toMatchObject(disclosed);
});

it('oidcc-scope-email → email and email_verified, in the ID token too: a warning of the suite', async () => {
  const { accessToken, claims } = await first.signIn(provider.browser(), { scope: 'openid email' });
  const disclosed = { email: 'alice@example.com', email_verified: true };
  expect((await provider.userinfo(accessToken)).body).toEqual({ sub: claims.sub, ...disclosed });
  expect(claims).toMatchObject(disclosed);
});

it('oidcc-scope-address → skipped by the suite: not among scopes_supported, and invalid_scope', async () => {
  expect(metadata.scopes_supported).not.toContain('address');
  expect((await first.answer(provider.browser(), { scope: 'openid address' })).error).toBe('invalid_scope');
});

it('oidcc-scope-phone → skipped by the suite: not among scopes_supported, and invalid_scope', async () => {
  expect(metadata.scopes_supported).not.toContain('phone');
  expect((await first.answer(provider.browser(), { scope: 'openid phone' })).error).toBe('invalid_scope');
});

it('oidcc-scope-all → skipped by the suite for address and phone: invalid_scope, and without them the claims of both', async () => {
  const all = { scope: 'openid address email phone profile' };
  expect((await first.answer(provider.browser(), all)).error).toBe('invalid_scope');
  const { accessToken } = await first.signIn(provider.browser(), { scope: 'openid email profile' });
  expect((await provider.userinfo(accessToken)).body).toMatchObject({ name: 'Alice Ang', email: 'alice@example.com' });
});

it('oidcc-alternate-happy-flow, formerly oidcc-ensure-other-scope-order-succeeds → parameters and scopes in any order', async () => {
  const browser = provider.browser();
  const request = first.request({ scope: 'email openid' });
  const reversed = new URL(request.url);
  reversed.search = new URLSearchParams([...request.url.searchParams].toReversed()).toString();
  const { claims } = await first.finish(request, await answerIn(browser, reversed, ANSWERS));
  expect(claims).toMatchObject({ email: 'alice@example.com', email_verified: true });
});

it('oidcc-display-page → ignored', async () => {
  expect((await first.signIn(provider.browser(), { display: 'page' })).claims.sub).toMatch(/^usr_/);
});

it('oidcc-display-popup → ignored', async () => {
  expect((await first.signIn(provider.browser(), { display: 'popup' })).claims.sub).toMatch(/^usr_/);
});

it('oidcc-prompt-login → the login page again, and a later auth_time', async () => {
  const browser = provider.browser();
  const { claims } = await first.signIn(browser);
  clock.advance(2000);
  const again = { prompt: 'login' };
  expect(isLoginPage(await first.ask(browser, again))).toBe(true);
  const later = (await first.signIn(browser, again)).claims;
  expect([later.auth_time, later.sub]).toEqual([Number(claims.auth_time) + 2, claims.sub]);
});

it('oidcc-prompt-none-not-logged-in → login_required at the client', async () => {
  const { error, code } = await first.answer(provider.browser(), { prompt: 'none' });
  expect([error, code]).toEqual(['login_required', undefined]);
});

it('oidcc-prompt-none-logged-in → a code at once, with the same auth_time and sub', async () => {
  const browser = provider.browser();
  const { claims } = await first.signIn(browser);
  clock.advance(2000);
  const { auth_time, sub } = await silently(browser, { prompt: 'none' });
  expect([auth_time, sub]).toEqual([claims.auth_time, claims.sub]);
});

it('oidcc-max-age-1 → two seconds later the login page, and a later auth_time', async () => {
  const browser = provider.browser();
  const { claims } = await first.signIn(browser);
  clock.advance(2000);
  const again = { max_age: '1' };
  expect(isLoginPage(await first.ask(browser, again))).toBe(true);
  const later = (await first.signIn(browser, again)).claims;
  expect([later.auth_time, later.iat]).toEqual([Number(claims.auth_time) + 2, later.auth_time]);
});

it('oidcc-max-age-10000 → no page, and the same auth_time', async () => {
  const browser = provider.browser();
  const { claims } = await first.signIn(browser);
  clock.advance(2000);
  const { auth_time, sub } = await silently(browser, { max_age: '10000' });
  expect([auth_time, sub]).toEqual([claims.auth_time, claims.sub]);
});

it('oidcc-ensure-request-with-unknown-parameter-succeeds → ignored', async () => {
  expect((await first.signIn(provider.browser(), { extra: 'foobar' })).claims.sub).toMatch(/^usr_/);
});

it('oidcc-id-token-hint → with prompt=none a code at once, with the same auth_time and sub', async () => {
  const browser = provider.browser();
  const { claims, idToken } = await first.signIn(browser);
  clock.advance(2000);
  const { auth_time, sub } = await silently(browser, { prompt: 'none', id_token_hint: idToken });
  expect([auth_time, sub]).toEqual([claims.auth_time, claims.sub]);
});

it('oidcc-login-hint → fills in the login page, and is no condition', async () => {
  const browser = provider.browser();
  const hint = { login_hint: 'buffy@id.example' };
  expect((await first.ask(browser, hint)).body).toContain('value="buffy@id.example"');
  expect((await first.signIn(browser, hint)).claims.sub).toMatch(/^usr_/);
});

it('oidcc-ui-locales → causes no error', async () => {
  expect((await first.signIn(provider.browser(), { ui_locales: 'se' })).claims.sub).toMatch(/^usr_/);
});

it('oidcc-claims-locales → ignored', async () => {
  expect((await first.signIn(provider.browser(), { claims_locales: 'se' })).claims.sub).toMatch(/^usr_/);
});

it('oidcc-ensure-request-with-acr-values-succeeds → an ID token without acr: a warning of the suite', async () => {
  const { claims } = await first.signIn(provider.browser(), { acr_values: '1 2' });
  expect(claims).not.toHaveProperty('acr');
});

it('oidcc-codereuse → invalid_grant', async () => {
  const request = first.request();
  const callback = await answerIn(provider.browser(), request.url, ANSWERS);
  const { code } = await first.finish(request, callback);
  const { status, body } = await first.redeem(code, request.verifier);
  expect([status, body.error]).toEqual([400, 'invalid_grant']);
});

it('oidcc-codereuse-30seconds → invalid_grant, and the access token is revoked', async () => {
  const request = first.request();
  const { code, accessToken } = await first.finish(request, await answerIn(provider.browser(), request.url, ANSWERS));
  clock.advance(30_000);
  expect((await provider.userinfo(accessToken)).status).toBe(200);
  const { status, body, headers } = await first.redeem(code, request.verifier);
  expect([status, body.error]).toEqual([400, 'invalid_grant']);
  expect(headers.get('content-type')).toMatch(/^application\/json/);
  expect((await provider.userinfo(accessToken)).status).toBe(401);
});

it('oidcc-ensure-registered-redirect-uri → a page, and no redirect', async () => {
  const page = await first.ask(provider.browser(), { redirect_uri: `${CALLBACK}/another` });
  expect([page.status, page.location]).toEqual([400, undefined]);
  expect(page.headers.get('content-type')).toMatch(/^text\/html/);
});

it('oidcc-ensure-post-request-succeeds → by a redirect to the GET', async () => {
  const browser = provider.browser();
  const request = first.request();
  const { pathname, searchParams, origin } = request.url;
  const sent = await browser.post(pathname, [...searchParams], { origin: 'https://suite.example' });
  expect(sent.status).toBe(303);
  const { claims } = await first.finish(
    request,
    await answerIn(browser, new URL(sent.location ?? '', origin), ANSWERS),
  );
  expect(claims.sub).toMatch(/^usr_/);
});

it('oidcc-server-client-secret-post → the same as oidcc-server', async () => {
  const { claims } = await provider.relyingParty('post').signIn(provider.browser());
  expect(claims.aud).toBe('suite.post');
});

it('oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported → request_uri_not_supported', async () => {
  expect(metadata.request_uri_parameter_supported).toBe(false);
  const { error } = await first.answer(provider.browser(), { request_uri: 'https://suite.example/request.jwt' });
  expect(error).toBe('request_uri_not_supported');
});

it('oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported → request_not_supported', async () => {
  const { error } = await first.answer(provider.browser(), { request: requestObject(first.request().url) });
  expect(error).toBe('request_not_supported');
});

it('oidcc-claims-essential → the claims parameter is not supported: no name, a warning of the suite', async () => {
  expect(metadata.claims_parameter_supported).toBe(false);
  const claims = JSON.stringify({ userinfo: { name: { essential: true } } });
  const signIn = await first.signIn(provider.browser(), { claims });
  expect((await provider.userinfo(signIn.accessToken)).body).toEqual({ sub: signIn.claims.sub });
  expect(signIn.claims).not.toHaveProperty('name');
});

it('oidcc-ensure-request-object-with-redirect-uri → request objects are not read: a page about the address beside it', async () => {
  const changes = { request: requestObject(first.request().url), redirect_uri: `${CALLBACK}/another` };
  const page = await first.ask(provider.browser(), changes);
  expect([page.status, page.location]).toEqual([400, undefined]);
});

it('oidcc-refresh-token → a new ID token of the same sign-in; at another client invalid_grant', async () => {
  const scope = { scope: 'openid offline_access', prompt: 'consent' };
  for (const client of [first, second]) {
    const signIn = await client.signIn(provider.browser(), scope);
    clock.advance(2000);
    const refreshed = await client.refresh(signIn.refreshToken ?? '');
    expect(refreshed.status).toBe(200);
    const accessToken = String(refreshed.body.access_token);
    const { payload } = await client.verifyIdToken(refreshed.body.id_token, accessToken);
    const { iss, sub, aud, auth_time } = signIn.claims;
    expect(payload).toMatchObject({ iss, sub, aud, auth_time, iat: Number(signIn.claims.iat) + 2 });
    expect(payload).not.toHaveProperty('nonce');
    expect((await provider.userinfo(accessToken)).body.sub).toBe(sub);
    const token = String(refreshed.body.refresh_token);
    expect(token).toMatch(/^[\x20-\x7e]+$/);
    const { status, body } = await (client === first ? second : first).refresh(token);
    expect([status, body.error]).toEqual([400, 'invalid_grant']);
  }
});

it('oidcc-ensure-request-with-valid-pkce-succeeds → as all sign-ins here; without a challenge invalid_request', async () => {
  expect((await first.signIn(provider.browser())).claims.sub).toMatch(/^usr_/);
  const without = { code_challenge: undefined, code_challenge_method: undefined };
  expect((await first.answer(provider.browser(), without)).error).toBe('invalid_request');
});
