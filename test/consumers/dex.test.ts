// Sign-in by Dex, alone, beside oidc-provider, and on the way of a program that signs people in at grantry; and Dex as such a
// program, as the guide configures it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { basic } from '../grantry.ts';
import { hidden, TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { NpmProvider, SECRET } from '../login/upstream/oidc-provider.ts';
import { anOidcProvider } from '../login/upstream/providers.ts';
import { SCOPES, SHOP_CALLBACK, Shop, type Tokens } from '../login/upstream/shop.ts';
import { until } from '../until.ts';
import { DEX_PERSON, Dex } from './setup/dex.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { GuardedPage } from './setup/guarded-page.ts';
import { describeConsumers } from './setup/programs.ts';
import { PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const KNOWN = {
  sub: expect.stringMatching(/^usr_/),
  name: DEX_PERSON.name,
  preferred_username: DEX_PERSON.username,
  email: DEX_PERSON.email,
  email_verified: true,
  groups: DEX_PERSON.groups.map((group) => `dex:${group}`),
};

await describeConsumers(['dex'], (program) => {
  describe('Dex alone', () => {
    let shop: Shop;
    let dex: Dex;
    let tokens: Tokens;

    beforeAll(async () => {
      shop = await Shop.start();
      dex = await Dex.start({ program, callback: shop.callbackOf('dex') });
      await shop.setProviders(dex.identityProvider());
    });
    afterAll(() => dex?.stop());

    it('given a visitor → straight to the form of Dex, and its name, address and groups; a second time no form', async () => {
      const visitor = new Visitor(dex);
      tokens = await shop.signIn(visitor);
      expect(visitor.signIns).toBe(1);
      expect(await shop.claims(tokens)).toEqual(KNOWN);
      expect(decodeJwt(tokens.id_token)).toMatchObject(KNOWN);
      const again = await shop.signIn(visitor, { prompt: 'none' });
      expect(decodeJwt(again.id_token)).toMatchObject({ sub: decodeJwt(tokens.id_token).sub });
      expect(visitor.signIns).toBe(1);
    });

    it('given prompt=login → its form, and login_required, for Dex does not say when a person signed in', async () => {
      const visitor = new Visitor(dex, shop);
      const path = shop.authorizePath({ prompt: 'login' });
      const arrived = await visitor.answerTo(shop.grantry.url(path), SHOP_CALLBACK);
      expect(arrived.searchParams.get('error')).toBe('login_required');
      expect(visitor.signIns).toBe(1);
    });

    it('given that Dex is stopped → sessions and refresh go on, no new sign-in; started with new keys → one', async () => {
      const visitor = new Visitor(dex);
      const { sub } = decodeJwt((await shop.signIn(visitor)).id_token);
      const port = Number(new URL(dex.issuer).port);
      await dex.stop();
      tokens = await shop.refresh(tokens);
      expect(await shop.claims(tokens)).toEqual(KNOWN);
      expect(decodeJwt((await shop.signIn(visitor, { prompt: 'none' })).id_token)).toMatchObject({ sub });
      // An IdentityProvider that is made again is discovered again.
      await shop.setProviders(Object.assign({}, dex.identityProvider(), { uid: 'uid-again' }));
      const browser = new TestBrowser(shop.grantry.issuer, shop.grantry.issuer);
      expect((await browser.get(shop.authorizePath())).status).toBe(503);
      tokens = await shop.refresh(tokens);

      dex = await Dex.start({ program, callback: shop.callbackOf('dex'), port });
      await shop.setProviders(dex.identityProvider());
      expect(decodeJwt((await shop.signIn(new Visitor(dex))).id_token)).toMatchObject({ sub });
    });
  });

  describe('Dex between grantry and a program without PKCE', () => {
    const callback = 'https://wiki.example.com/login/callback';
    const secrets = { dex: 'the secret of dex at grantry!!!!', wiki: 'the secret of the wiki at dex!!!' };
    let grantry: Provider;
    let dex: Dex;

    beforeAll(async () => {
      const port = await freePort();
      const issuer = `http://127.0.0.1:${port}/dex`;
      const consumers = [{ clientId: 'dex.dex', secret: secrets.dex, redirectUri: `${issuer}/callback` }];
      grantry = await startGrantryProvider({ consumers });
      const page = readFileSync(join(import.meta.dirname, '../../docs/guides/consumers.md'), 'utf8');
      const [, block = ''] = /```yaml\n# dex\.yaml\n(.*?)```/s.exec(page) ?? [];
      const configuration = parse(
        block.replaceAll('https://dex.example.com', issuer).replaceAll('https://id.example.com', grantry.issuer),
      );
      const environment = { CLIENT_ID: 'dex.dex', CLIENT_SECRET: secrets.dex, WIKI_SECRET: secrets.wiki };
      dex = await Dex.startBy({ program, port, configuration, environment });
    });
    afterAll(() => Promise.all([dex?.stop(), grantry?.stop()]));

    it('given a sign-in without code_challenge → the person of grantry, in an ID token of Dex', async () => {
      const scope = SCOPES.join(' ');
      const query = { client_id: 'wiki', redirect_uri: callback, response_type: 'code', scope };
      const visitor = new Visitor(dex, grantry);
      const arrived = await visitor.answerTo(`${dex.issuer}/auth?${new URLSearchParams(query)}`, callback);
      const answer = await fetch(`${dex.issuer}/token`, {
        method: 'POST',
        headers: { authorization: basic('wiki', secrets.wiki) },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code: arrived.searchParams.get('code') ?? '',
          redirect_uri: callback,
        }),
      });
      const { id_token } = (await answer.json()) as Tokens;
      expect(decodeJwt(id_token)).toMatchObject({
        iss: dex.issuer,
        aud: 'wiki',
        name: PERSON.name,
        email: PERSON.email,
        preferred_username: PERSON.username,
        groups: PERSON.groups,
      });
      expect(visitor.signIns).toBe(1);
    });
  });

  describe('Dex beside oidc-provider', () => {
    let shop: Shop;
    let dex: Dex;
    let npm: NpmProvider;
    let browser: TestBrowser;

    beforeAll(async () => {
      shop = await Shop.start();
      npm = await NpmProvider.start(shop.callbackOf('npm'));
      dex = await Dex.start({ program, callback: shop.callbackOf('dex') });
      const credentials = { clientId: 'client_secret_basic', clientSecret: SECRET, authorities: undefined };
      const identity = { name: 'npm', uid: 'uid-npm', displayName: 'Npm', issuer: npm.issuer };
      await shop.setProviders(
        dex.identityProvider(),
        anOidcProvider(Object.assign(identity, { scopes: SCOPES, credentials })),
      );
    });
    beforeEach(() => {
      browser = new TestBrowser(shop.grantry.issuer, shop.grantry.issuer);
      npm.asked.clear();
    });
    afterAll(() => Promise.all([dex?.stop(), npm?.stop()]));

    /** The browser chooses a button. @returns where it is sent */
    async function leaveFor(name: string): Promise<string> {
      const page = await browser.get(shop.authorizePath());
      const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
      const { location } = await browser.post(`/login/upstream/${name}`, fields);
      if (location === undefined) throw new Error('the button leads nowhere');
      return location;
    }

    /** Where the provider sends the browser back to, after its forms. */
    function answerOf(provider: Dex | NpmProvider, { location, name }: { location: string; name: string }) {
      return new Visitor(provider).answerTo(location, shop.callbackOf(name));
    }

    async function goOn({ pathname, search }: URL): Promise<Tokens> {
      let page = await browser.get(`${pathname}${search}`);
      while (page.location?.startsWith('/')) page = await browser.get(page.location);
      if (page.location?.startsWith(SHOP_CALLBACK)) return await shop.redeem(new URL(page.location));
      throw new Error(`the callback was answered ${page.status}`);
    }

    it('given a button each → the person of the one that is chosen', async () => {
      const page = await browser.get(shop.authorizePath());
      expect([page.body.includes('<bdi>Dex</bdi>'), page.body.includes('<bdi>Npm</bdi>')]).toEqual([true, true]);
      const byDex = await goOn(await answerOf(dex, { location: await leaveFor('dex'), name: 'dex' }));
      expect(decodeJwt(byDex.id_token)).toMatchObject({ groups: KNOWN.groups });
      browser.cookies.clear();
      const byNpm = await goOn(await answerOf(npm, { location: await leaveFor('npm'), name: 'npm' }));
      expect(decodeJwt(byNpm.id_token).sub).not.toBe(decodeJwt(byDex.id_token).sub);
    });

    /** How many codes were redeemed at it. */
    async function exchangesAt(name: string): Promise<number> {
      const metrics = await (await fetch(shop.grantry.adminUrl('/metrics'))).text();
      const row = new RegExp(`^grantry_upstream_duration_seconds_count{.*provider="${name}".*} (.*)$`, 'gm');
      const rows = [...metrics.matchAll(row)].filter(([line]) => line.includes('step="redemption"'));
      return rows.reduce((sum, [, count]) => sum + Number(count), 0);
    }

    it('given the code of Dex at the callback of oidc-provider, and the other way round → 400, and no call', async () => {
      const fromDex = await answerOf(dex, { location: await leaveFor('dex'), name: 'dex' });
      const fromNpm = await answerOf(npm, { location: await leaveFor('npm'), name: 'npm' });
      const before = [await exchangesAt('dex'), await exchangesAt('npm')];
      for (const path of [`/login/callback/npm${fromDex.search}`, `/login/callback/dex${fromNpm.search}`]) {
        expect((await browser.get(path)).status).toBe(400);
        expect(shop.grantry.logs().at(-1)).toMatchObject({ reason: 'interaction_upstream_unknown' });
      }
      expect([await exchangesAt('dex'), await exchangesAt('npm')]).toEqual(before);
      expect(npm.asked.get('/token')).toBeUndefined();
    });

    it('given the code of Dex in an answer of oidc-provider → 502', async () => {
      const fromDex = await answerOf(dex, { location: await leaveFor('dex'), name: 'dex' });
      const state = new URL(await leaveFor('npm')).searchParams.get('state') ?? '';
      fromDex.searchParams.set('state', state);
      expect((await browser.get(`/login/callback/npm${fromDex.search}`)).status).toBe(502);
      fromDex.searchParams.set('iss', npm.issuer);
      fromDex.searchParams.set('state', new URL(await leaveFor('npm')).searchParams.get('state') ?? '');
      expect((await browser.get(`/login/callback/npm${fromDex.search}`)).status).toBe(502);
      expect(npm.asked.get('/token')).toBe(1);
    });

    it('given that Dex is stopped → its button is answered 503, and the other one leads to a session', async () => {
      const left = await leaveFor('dex');
      const back = await answerOf(dex, { location: left, name: 'dex' });
      await dex.stop();
      const page = await browser.get(`${back.pathname}${back.search}`);
      expect(page.status).toBe(503);
      const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
      const { location = '' } = await browser.post('/login/upstream/npm', fields);
      expect(await goOn(await answerOf(npm, { location, name: 'npm' }))).toMatchObject({ id_token: expect.anything() });
    });
  });
});

await describeConsumers(['dex', 'oauth2-proxy'], (dexProgram, proxyProgram) => {
  let dex: Dex;
  let wiki: GuardedPage;

  beforeAll(async () => {
    const port = await freePort(2);
    dex = await Dex.start({ program: dexProgram, callback: `http://127.0.0.1:${port}/login/callback/dex` });
    wiki = await GuardedPage.start(proxyProgram, {
      port,
      identityProviders: [dex.identityProvider()],
    });
  });
  afterAll(() => Promise.all([dex?.stop(), wiki?.stop()]));

  it('given a sign-in of oauth2-proxy → the form of Dex, and its name, address and groups; refreshed without Dex', async () => {
    const visitor = new Visitor(dex, wiki.provider);
    const headers = await wiki.handedOn(visitor);
    expect(visitor.signIns).toBe(1);
    const person = {
      'x-forwarded-preferred-username': DEX_PERSON.username,
      'x-forwarded-email': DEX_PERSON.email,
      'x-forwarded-groups': KNOWN.groups.join(','),
    };
    expect(headers).toMatchObject(person);
    await dex.stop();
    const { iat = 0 } = decodeJwt(String(headers.authorization).replace('Bearer ', ''));
    let refreshed = headers;
    await until('the session was refreshed', async () => {
      refreshed = await wiki.handedOn(visitor);
      return (decodeJwt(String(refreshed.authorization).replace('Bearer ', '')).iat ?? 0) > iat;
    });
    expect(refreshed).toMatchObject(person);
    expect(visitor.signIns).toBe(1);
  });
});
