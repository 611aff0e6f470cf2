// Sign-in by OpenID providers that are none of a test: another grantry, and oidc-provider.

import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startGrantryProvider } from '../../../consumers/setup/grantry-provider.ts';
import { PERSON, type Provider } from '../../../consumers/setup/provider.ts';
import { Visitor } from '../../../consumers/setup/visitor.ts';
import { freePort } from '../../../free-port.ts';
import { METHODS, NpmProvider, SECRET } from '../../../login/upstream/oidc-provider.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { SCOPES, SHOP_CALLBACK, Shop } from '../../../login/upstream/shop.ts';
import { TestBrowser } from '../sign-in-browser.ts';

const KNOWN = {
  sub: expect.stringMatching(/^usr_/),
  name: PERSON.name,
  preferred_username: PERSON.username,
  email: PERSON.email,
  email_verified: true,
};

/** The provider asks again, and reports when that was: no earlier than the sign-in before. */
async function expectRepeatedSignIn(shop: Shop, visitor: Visitor, asked: Readonly<Record<string, string>>) {
  const before = decodeJwt((await shop.signIn(visitor)).id_token);
  const { signIns } = visitor;
  const again = decodeJwt((await shop.signIn(visitor, asked)).id_token);
  expect(visitor.signIns).toBe(signIns + 1);
  expect(again.sub).toBe(before.sub);
  expect(Number(again.auth_time)).toBeGreaterThanOrEqual(Number(before.auth_time));
}

describe('another grantry', () => {
  it('→ the person, with what it says, and its groups behind the prefix; max_age=0 → signs in there again', async () => {
    const shop = await Shop.start();
    const upstream = await startGrantryProvider({
      consumers: [{ clientId: 'grantry', secret: SECRET, redirectUri: shop.callbackOf('corp') }],
    });
    await shop.setProviders(anOidcProvider({ issuer: upstream.issuer, scopes: SCOPES }));
    const visitor = new Visitor(upstream);
    const groups = PERSON.groups.map((group) => `corp:${group}`);
    expect(await shop.claims(await shop.signIn(visitor))).toEqual(Object.assign({ groups }, KNOWN));
    expect(visitor.signIns).toBe(1);
    await expectRepeatedSignIn(shop, visitor, { max_age: '0' });
    await upstream.stop();
  });

  describe('a sign-out', () => {
    const HOME = 'https://shop.example/';
    let shop: Shop;
    let upstream: Provider;
    let leadingOn: string;

    beforeAll(async () => {
      const port = await freePort(2);
      // As it stands in the manifest: of another server, with a query of its own.
      const returning = new URLSearchParams({ client_id: 'grantry', post_logout_redirect_uri: HOME });
      leadingOn = `http://127.0.0.1:${port}/logout?${returning}`;
      shop = await Shop.start([leadingOn]);
      const redirectUri = shop.callbackOf('corp');
      upstream = await startGrantryProvider({
        port,
        consumers: [{ clientId: 'grantry', secret: SECRET, redirectUri, postLogoutRedirectUri: HOME }],
      });
      await shop.setProviders(anOidcProvider({ issuer: upstream.issuer, scopes: SCOPES }));
    });
    afterAll(() => upstream?.stop());

    it('here alone → the session there stays, and the next sign-in asks nothing', async () => {
      const visitor = new Visitor(upstream);
      const { page } = await visitor.visit(shop.logoutAddress(await shop.signIn(visitor)));
      expect(page.status).toBe(200);
      const silent = await visitor.answerTo(shop.grantry.url(shop.authorizePath({ prompt: 'none' })), SHOP_CALLBACK);
      expect(silent.searchParams.get('error')).toBe('login_required');
      await shop.signIn(visitor);
      expect(visitor.signIns).toBe(1);
    });

    it('that leads on to the sign-out there → it returns to the application, and the next sign-in asks', async () => {
      const visitor = new Visitor(upstream);
      const tokens = await shop.signIn(visitor);
      expect((await visitor.answerTo(shop.logoutAddress(tokens, leadingOn), HOME)).href).toBe(HOME);
      await shop.signIn(visitor);
      expect(visitor.signIns).toBe(2);
    });

    it('there alone → the session here stays', async () => {
      const visitor = new Visitor(upstream);
      await shop.signIn(visitor);
      await visitor.signOut();
      await shop.signIn(visitor, { prompt: 'none' });
      expect(visitor.signIns).toBe(1);
    });
  });
});

describe('oidc-provider', () => {
  let shop: Shop;
  let upstream: NpmProvider;
  beforeAll(async () => {
    shop = await Shop.start();
    upstream = await NpmProvider.start(shop.callbackOf('corp'));
  });
  beforeEach(() => upstream.asked.clear());
  afterEach(() => void vi.useRealTimers());
  afterAll(() => upstream.stop());

  function corp(clientAuth: (typeof METHODS)[number] = 'client_secret_basic') {
    const credentials = { clientId: clientAuth, clientSecret: SECRET, authorities: undefined };
    return anOidcProvider({ issuer: upstream.issuer, scopes: SCOPES, clientAuth, credentials });
  }

  it.each(METHODS)('with %s and thin ID tokens → the person of userinfo', async (clientAuth) => {
    await shop.setProviders(corp(clientAuth));
    const tokens = await shop.signIn(new Visitor(upstream));
    const claims = Object.assign({ groups: ['corp:developers'] }, KNOWN);
    expect(await shop.claims(tokens)).toEqual(claims);
    expect(decodeJwt(tokens.id_token)).toMatchObject(claims);
    expect(upstream.asked.get('/me')).toBe(1);
  });

  it('its issuer in the answer (RFC 9207) → needed, and compared', async () => {
    await shop.setProviders(corp());
    const answer = async (change: (answer: URL) => void) => {
      const browser = new TestBrowser(shop.grantry.issuer, shop.grantry.issuer);
      const { location = '' } = await browser.get(shop.authorizePath());
      const answered = await new Visitor(upstream).answerTo(location, shop.callbackOf('corp'));
      expect(answered.searchParams.get('iss')).toBe(upstream.issuer);
      change(answered);
      return await browser.get(`${answered.pathname}${answered.search}`);
    };
    const given = ({ searchParams }: URL) => searchParams.set('iss', shop.grantry.issuer);
    for (const change of [given, ({ searchParams }: URL) => searchParams.delete('iss')]) {
      expect((await answer(change)).status).toBe(502);
      expect(shop.grantry.logs().at(-1)).toMatchObject({ reason: 'upstream_answer_invalid' });
    }
    expect(upstream.asked.get('/token')).toBeUndefined();
    expect((await answer(() => {})).status).toBe(302);
  });

  it.each([
    ['prompt=login', { prompt: 'login' }],
    ['max_age=0', { max_age: '0' }],
  ])('%s → its form again, and a code, for it says when that was', async (_what, more) => {
    await shop.setProviders(corp());
    await expectRepeatedSignIn(shop, new Visitor(upstream, shop), more);
  });

  // The keys of a provider are fetched again for a key that is unknown, at most once a minute: made-up ones cause no flood.
  it('other keys between two sign-ins → the keys are fetched again, at most once a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    await shop.setProviders(Object.assign(corp(), { uid: 'uid-of-new-keys' }));
    const { sub } = decodeJwt((await shop.signIn(new Visitor(upstream))).id_token);
    expect(upstream.asked.get('/jwks')).toBe(1);
    upstream.replaceKeys();
    const browser = new TestBrowser(shop.grantry.issuer, shop.grantry.issuer);
    const { location = '' } = await browser.get(shop.authorizePath());
    const answered = await new Visitor(upstream).answerTo(location, shop.callbackOf('corp'));
    expect((await browser.get(`${answered.pathname}${answered.search}`)).status).toBe(502);
    expect(upstream.asked.get('/jwks')).toBe(1);
    vi.setSystemTime(Date.now() + 60_000);
    const tokens = await shop.signIn(new Visitor(upstream));
    expect(decodeJwt(tokens.id_token)).toMatchObject({ sub });
    expect(upstream.asked.get('/jwks')).toBe(2);
  });
});
