// Mirrors of oidcc-backchannel-rp-initiated-logout-certification-test-plan of the OpenID Foundation's conformance suite: one
// test for each of its modules, under its name, with PKCE. The issuer is http here: so may be the address for notices.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { until } from '../until.ts';
import { clientManifest, GOODBYE, startProvider } from './provider.ts';

const notices: { readonly headers: IncomingHttpHeaders; readonly form: URLSearchParams }[] = [];
const host = createServer(async (request, response) => {
  notices.push({ headers: request.headers, form: new URLSearchParams(await text(request)) });
  response.setHeader('cache-control', 'no-store').end();
});
host.listen(0, '127.0.0.1');
await once(host, 'listening');
afterAll(() => {
  host.closeAllConnections();
  host.close();
});

const { port } = host.address() as AddressInfo;
const provider = await startProvider(
  clientManifest('first', 'client_secret_basic', `  backchannelLogoutUri: http://127.0.0.1:${port}/backchannel_logout`),
  { fetch: { networks: ['127.0.0.0/8'] } },
);
const first = provider.relyingParty('first');

it('oidcc-backchannel-logout-discovery-endpoint-verification → supported, with sid, and end_session_endpoint', () => {
  expect(provider.metadata).toMatchObject({
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    end_session_endpoint: `${provider.metadata.issuer}/logout`,
  });
});

it('oidcc-backchannel-rp-initiated-logout → a logout token about sub and sid of the ID token, and the address with state', async () => {
  const browser = provider.browser();
  const { idToken, claims } = await first.signIn(browser);
  const state = 'st4te-'.repeat(22).slice(0, 128);
  const query = { id_token_hint: idToken, post_logout_redirect_uri: GOODBYE, state };
  const { status, location } = await provider.logout(browser, query);
  expect([status, location]).toEqual([302, `${GOODBYE}?state=${state}`]);
  await until('the notice is there', () => notices.length > 0);
  const [{ headers, form } = { headers: {}, form: new URLSearchParams() }] = notices;
  expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect([...form.keys()]).toEqual(['logout_token']);
  const audience = first.client.clientId;
  const { payload, protectedHeader } = await provider.verify(form.get('logout_token') ?? '', {
    audience,
    typ: 'logout+jwt',
  });
  expect(protectedHeader.alg).toBe('RS256');
  const { sub, sid, iss } = claims;
  expect(payload).toEqual({
    iss,
    sub,
    sid,
    aud: audience,
    iat: Math.floor(provider.grantry.clock.now() / 1000),
    exp: expect.any(Number),
    jti: expect.any(String),
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  });
  expect((await first.answer(browser, { prompt: 'none' })).error).toBe('login_required');
  expect(notices).toHaveLength(1);
});
