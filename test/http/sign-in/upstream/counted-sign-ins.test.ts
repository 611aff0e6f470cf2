// What metrics say of tries to sign in, and that no text of a provider gets into pages, logs or metrics.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { json, ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { until } from '../../../until.ts';
import { hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, PASSWORD, WEB, type World } from '../sign-in-world.ts';

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
});
afterAll(() => upstream.stop());
beforeEach(() => {
  upstream.claims = { preferred_username: 'ada', email: 'ada@corp.example.com', email_verified: true };
  upstream.userinfo = { sub: 'ada-1' };
  upstream.answers.clear();
  upstream.metadata = {};
});

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes));

const refusesCodes = (body: object = {}) =>
  upstream.answers.set('/token', (_request, response) => json(response, { error: 'invalid_grant', ...body }, 400));

/** Leaves for the provider by its button, and comes back. */
async function signIn(world: World, query = 'code=c1', browser: TestBrowser = world.browser()): Promise<Page> {
  const page = await browser.get(world.authorizePath());
  const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const { searchParams } = new URL((await browser.post('/login/upstream/corp', fields)).location ?? '');
  upstream.nonce = searchParams.get('nonce') ?? '';
  return await browser.get(`/login/callback/corp?state=${searchParams.get('state')}&${query}`);
}

/** The values of a metric by its labels. */
async function countsOf(world: World, name: string): Promise<Record<string, number>> {
  const rows = (await world.metrics()).matchAll(new RegExp(`^grantry_${name}\\{(.*?)\\} (\\d+)$`, 'gm'));
  return Object.fromEntries(
    [...rows].map(([, labels = '', value]) => [
      [...labels.matchAll(/="([^"]*)"/g)].map(([, label]) => label).join(' '),
      Number(value),
    ]),
  );
}

it('tries to sign in → counted by provider, method and outcome; calls of the provider by its step, and those that failed', async () => {
  const world = await aWorld({ clients: [WEB], providers: [corp()] });
  const byPassword = async (password: string) => {
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    return (await browser.post('/login', { username: 'alice', password, ...fields })).status;
  };
  expect([await byPassword(PASSWORD), await byPassword('wrong')]).toEqual([303, 422]);
  expect((await signIn(world)).status).toBe(302);
  expect((await signIn(world, 'error=access_denied')).status).toBe(422);
  refusesCodes();
  expect((await signIn(world)).status).toBe(502);
  upstream.answers.clear();
  await world.setProviders([corp({ allow: { emailDomains: ['b.example'], groups: [] } })]);
  expect((await signIn(world)).status).toBe(403);
  expect(await countsOf(world, 'sign_ins_total')).toEqual({
    'local password signed_in': 1,
    'local password credentials_wrong': 1,
    'corp provider signed_in': 1,
    'corp provider upstream_cancelled': 1,
    'corp provider upstream_answer_invalid': 1,
    'corp provider person_not_permitted': 1,
  });
  expect(await countsOf(world, 'upstream_duration_seconds_count')).toMatchObject({ 'corp redemption': 4 });
  expect(await countsOf(world, 'upstream_errors_total')).toEqual({ 'corp redemption': 1 });

  upstream.metadata = { issuer: 'https://other.example' };
  await world.setProviders([corp({ uid: 'uid-of-another' })]).catch(() => {});
  const failed = async () => (await countsOf(world, 'upstream_errors_total'))['corp discovery'] !== undefined;
  await until('the failed discovery is counted', failed);
});

it.each<[string, () => void, number, string]>([
  [
    'a wrong secret',
    () => refusesCodes({ error: 'invalid_client' }),
    502,
    'the token endpoint answered invalid_client',
  ],
  [
    'a token endpoint that is unavailable',
    () => void upstream.answers.set('/token', (_request, response) => json(response, {}, 503)),
    503,
    'the token endpoint answered status 503',
  ],
])('a sign-in that fails by %s → the cause in its log line', async (_what, arrange, status, detail) => {
  const world = await aWorld({ clients: [WEB], providers: [corp()] });
  arrange();
  expect((await signIn(world)).status).toBe(status);
  expect(world.logs().findLast(({ route }) => route === 'login-callback')).toMatchObject({
    outcome: 'refused',
    detail,
  });
});

it('a provider that was not reached → the cause in the log line of who wants to go there', async () => {
  upstream.metadata = { issuer: 'https://other.example' };
  const world = await aWorld({ clients: [WEB], providers: [] });
  await world.setProviders([corp()]).catch(() => {});
  const detail = 'the document names the issuer https://other.example';
  await until('the discovery failed', () => world.logs().some((line) => line.detail === detail));
  await signIn(world).catch(() => {});
  expect(world.logs().findLast(({ route }) => route === 'login-upstream')).toMatchObject({
    reason: 'upstream_unavailable',
    detail,
  });
});

it.each<[string, string, number, (text: string) => unknown]>([
  [
    'an error in the callback',
    'error=server_error&error_description=TEXT&error_uri=https://evil.example/TEXT',
    503,
    () => {},
  ],
  ['an error that it made up', 'error=TEXT', 502, () => {}],
  ['a refused code', 'code=c1', 502, (text) => refusesCodes({ error_description: text, error_uri: text })],
  ['an error that is none', 'code=c1', 502, (text) => refusesCodes({ error: text })],
  [
    'a page in place of tokens',
    'code=c1',
    502,
    (text) => upstream.answers.set('/token', (_request, response) => response.end(`<html>${text}`)),
  ],
])('a text of the provider in %s → in no page, no log line and no metric', async (_what, query, status, arrange) => {
  const text = 'send-your-password-to-evil';
  const world = await aWorld({ clients: [WEB], providers: [corp()] });
  arrange(text);
  const page = await signIn(world, query.replaceAll('TEXT', text));
  expect(page.status).toBe(status);
  for (const place of [page.body, JSON.stringify(world.logs()), await world.metrics()])
    expect(place).not.toContain(text);
});
