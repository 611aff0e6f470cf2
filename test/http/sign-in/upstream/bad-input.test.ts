// Sign-in by an identity provider, given input that is bad: cookies, parameters, names of providers, manifests, Secrets, and what a
// provider says of a person. Each gets its answer, no call leaves for it, and what is good works on beside it.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IdentityProvider, OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, WEB, type World } from '../sign-in-world.ts';

const ADA = {
  preferred_username: 'ada',
  name: 'Ada Lovelace',
  email: 'ada@corp.example.com',
  email_verified: true,
  groups: ['dev'],
};
const CLIENT = Object.assign({}, WEB, { consent: 'Skip' as const });
const UNKNOWN = [400, 'interaction_upstream_unknown'];

let corpUpstream: ScriptedProvider;
let partnerUpstream: ScriptedProvider;
beforeAll(async () => {
  [corpUpstream, partnerUpstream] = await Promise.all([ScriptedProvider.start(), ScriptedProvider.start()]);
});
afterAll(() => {
  corpUpstream.stop();
  partnerUpstream.stop();
});
beforeEach(() => {
  for (const upstream of [corpUpstream, partnerUpstream]) {
    upstream.claims = ADA;
    upstream.answers.clear();
    upstream.redeemed.length = 0;
  }
});

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: corpUpstream.issuer }, changes));
const partner = () =>
  anOidcProvider({ name: 'partner', uid: 'uid-partner', displayName: 'Partner', issuer: partnerUpstream.issuer });

/** Of two providers and no local users, unless others are given. */
function worldOf(providers: readonly IdentityProvider[] = [corp(), partner()]): Promise<World> {
  return aWorld({ clients: [CLIENT], providers, hasNoUsers: true });
}

/** A browser presses the button of a provider. */
async function leave(world: World, browser: TestBrowser, name = 'corp'): Promise<URLSearchParams> {
  const page = await browser.get(world.authorizePath());
  const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const { searchParams } = new URL((await browser.post(`/login/upstream/${name}`, fields)).location ?? '');
  const upstream = name === 'corp' ? corpUpstream : partnerUpstream;
  upstream.nonce = searchParams.get('nonce') ?? '';
  return searchParams;
}

function comeBack(
  browser: TestBrowser,
  upstreamRequest: URLSearchParams,
  query = 'code=c1',
  name = 'corp',
): Promise<Page> {
  return browser.get(`/login/callback/${name}?state=${upstreamRequest.get('state')}&${query}`);
}

/** Whether the return ends at the client, with a code. */
async function arrives(browser: TestBrowser, page: Page): Promise<boolean> {
  let at = page;
  while (at.location?.startsWith('/')) at = await browser.get(at.location);
  return at.location !== undefined && answerOf(at).code !== undefined;
}

/** The name and value of the only cookie of a pending sign-in. */
function awayOf(browser: TestBrowser): [name: string, value: string] {
  const [cookie, ...others] = [...browser.cookies].filter(([name]) => name.startsWith('grantry-away-'));
  if (cookie === undefined || others.length > 0) throw new Error('expected one pending sign-in');
  return cookie;
}

/** The requests that both providers have had. */
function asked(): number {
  const all = [corpUpstream, partnerUpstream].flatMap((upstream) => [...upstream.asked.values()]);
  return all.reduce((sum, count) => sum + count, 0);
}

function exchanged(text: string, at: number): string {
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

/** May give the request that the browser comes back from, where that is not its own. */
type Change = (browser: TestBrowser, world: World) => unknown;

describe('a callback with the cookie', () => {
  it.each<[string, Change]>([
    ['of no sign-in', (browser) => void browser.cookies.delete(awayOf(browser)[0])],
    [
      'of a pending sign-in, and none of a browser',
      (browser) => {
        for (const name of browser.cookies.keys()) if (!name.includes('away')) browser.cookies.delete(name);
      },
    ],
    [
      // An attacker leaves, and puts the cookie of that into the browser of a victim, as a sibling subdomain can.
      'of the pending sign-in of another browser, whose return it is',
      async (browser, world) => {
        const other = world.browser();
        const upstreamRequest = await leave(world, other);
        browser.cookies.set(...awayOf(other));
        return upstreamRequest;
      },
    ],
    [
      'of the pending sign-in of another browser, under the name of its own',
      async (browser, world) => {
        const other = world.browser();
        await leave(world, other);
        browser.cookies.set(awayOf(browser)[0], awayOf(other)[1]);
      },
    ],
    [
      'of another pending sign-in of this browser',
      async (browser, world) => {
        const [name] = awayOf(browser);
        browser.cookies.delete(name);
        await leave(world, browser);
        browser.cookies.set(name, awayOf(browser)[1]);
      },
    ],
    ['that is expired', (_browser, world) => world.advance(600_000)],
    ...[0, 20, 200].map((at): [string, (browser: TestBrowser) => void] => [
      `whose character ${at} is changed`,
      (browser) => {
        const [name, value] = awayOf(browser);
        browser.cookies.set(name, exchanged(value, at));
      },
    ]),
    [
      'that is cut',
      (browser) => {
        const [name, value] = awayOf(browser);
        browser.cookies.set(name, value.slice(0, -1));
      },
    ],
    [
      'beside a second part of it',
      (browser) => {
        const [name, value] = awayOf(browser);
        browser.cookies.set(`${name}.2`, value);
      },
    ],
  ])('%s → 400, no outgoing request, and no session', async (_case, change) => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = await leave(world, browser);
    const other = await change(browser, world);
    const before = asked();
    expect([
      (await comeBack(browser, other instanceof URLSearchParams ? other : upstreamRequest)).status,
      world.lastReason(),
    ]).toEqual(UNKNOWN);
    expect(asked()).toBe(before);
    expect(browser.cookies.has('grantry-session')).toBe(false);
  });

  it('that was used → 400, no outgoing request; the session that it began stays', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = await leave(world, browser);
    expect(await arrives(browser, await comeBack(browser, upstreamRequest))).toBe(true);
    const session = browser.cookies.get('grantry-session');
    const before = asked();
    expect([(await comeBack(browser, upstreamRequest)).status, world.lastReason()]).toEqual(UNKNOWN);
    expect([asked(), browser.cookies.get('grantry-session')]).toEqual([before, session]);
  });
});

describe('a callback with parameters that are doubled → 400, no outgoing request, and a new start works', () => {
  it.each([
    ['state, the right one first', (state: string) => `state=${state}&state=abcdefghijklmnop&code=c1`],
    ['state, the right one last', (state: string) => `state=abcdefghijklmnop&state=${state}&code=c1`],
    ['state, the same twice', (state: string) => `state=${state}&state=${state}&code=c1`],
    ['code', (state: string) => `state=${state}&code=c1&code=c1`],
    ['iss', (state: string) => `state=${state}&code=c1&iss=${corpUpstream.issuer}&iss=${corpUpstream.issuer}`],
    ['error', (state: string) => `state=${state}&error=access_denied&error=access_denied`],
  ])('%s', async (_case, queryOf) => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = await leave(world, browser);
    const before = asked();
    const page = await browser.get(`/login/callback/corp?${queryOf(upstreamRequest.get('state') ?? '')}`);
    expect([page.status, world.lastReason()]).toEqual(UNKNOWN);
    expect(asked()).toBe(before);
    expect(await arrives(browser, await comeBack(browser, await leave(world, browser)))).toBe(true);
  });
});

describe('the name of no provider', () => {
  const names = ['unknown', 'local', 'CORP', 'corp%00', 'constructor', '__proto__', 'c'.repeat(254), '%2e%2e%2fcorp'];
  it.each(names)('%.20s → 404 at the button and at the callback, and no outgoing request', async (name) => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = await leave(world, browser);
    const page = await browser.get(world.authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const before = asked();
    expect((await browser.post(`/login/upstream/${name}`, fields)).status).toBe(404);
    expect((await comeBack(browser, upstreamRequest, 'code=c1', name)).status).toBe(404);
    expect(asked()).toBe(before);
    // The pending sign-in was not that of this name: it goes on.
    expect(await arrives(browser, await comeBack(browser, upstreamRequest))).toBe(true);
  });
});

describe('a provider with a fault', () => {
  it.each<[string, (upstream: ScriptedProvider) => Partial<OidcProvider> | undefined]>([
    ['in its manifest, or whose Secret is missing', () => ({ credentials: undefined })],
    [
      'in its document, which is too large',
      (upstream) => {
        upstream.answers.set('/.well-known/openid-configuration', (_request, response) =>
          response.end(JSON.stringify({ issuer: upstream.issuer, padding: 'x'.repeat(1024 * 1024) })),
        );
        return {};
      },
    ],
    ['that is deleted', () => undefined],
  ])(
    '%s → people of the other one sign in, also those with a pending sign-in, and no session ends',
    async (_case, fault) => {
      const world = await worldOf();
      const signedIn = world.browser();
      expect(
        await arrives(
          signedIn,
          await comeBack(signedIn, await leave(world, signedIn, 'partner'), 'code=c1', 'partner'),
        ),
      ).toBe(true);
      const leaving = world.browser();
      const upstreamRequest = await leave(world, leaving, 'partner');
      const changes = fault(corpUpstream);
      await world.setProviders([...(changes ? [corp(changes)] : []), partner()]);
      expect(await arrives(leaving, await comeBack(leaving, upstreamRequest, 'code=c1', 'partner'))).toBe(true);
      expect(await arrives(signedIn, await signedIn.get(world.authorizePath()))).toBe(true);
      expect(world.events.map(({ type }) => type)).toEqual(['login.succeeded', 'login.succeeded']);
    },
  );

  it('whose Secret is missing and comes back → people who left before it went come back with a session', async () => {
    const world = await worldOf();
    const browser = world.browser();
    const upstreamRequest = await leave(world, browser);
    await world.setProviders([corp({ credentials: undefined }), partner()]);
    const page = await comeBack(browser, upstreamRequest);
    expect([page.status, world.lastReason()]).toEqual([503, 'upstream_unavailable']);
    await world.setProviders([corp(), partner()]);
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const { searchParams } = new URL((await browser.post('/login/upstream/corp', fields)).location ?? '');
    corpUpstream.nonce = searchParams.get('nonce') ?? '';
    expect(await arrives(browser, await comeBack(browser, searchParams))).toBe(true);
  });
});

describe('a subject that is', () => {
  it.each([
    ['empty', ''],
    ['256 characters', 'a'.repeat(256)],
    ['text with NUL', 'ada\0'],
    ['a number', 17],
    ['text beyond ASCII', 'ädä'],
    ['a list', ['ada-1']],
    ['absent', null],
  ])('%s → 502, and no session', async (_case, sub) => {
    corpUpstream.claims = Object.assign({}, ADA, { sub });
    const world = await worldOf();
    const browser = world.browser();
    const page = await comeBack(browser, await leave(world, browser));
    expect([page.status, world.lastReason()]).toEqual([502, 'upstream_answer_invalid']);
    expect(browser.cookies.has('grantry-session')).toBe(false);
    expect(world.events).toEqual([expect.objectContaining({ type: 'login.failed', provider: 'corp' })]);
  });
});

describe('a name with', () => {
  it.each([
    ['255 characters', 'a'.repeat(255)],
    ['a line break', 'Ada\nLovelace'],
    ['a carriage return', 'Ada\rLovelace'],
    ['a separator of lines', 'Ada\u2028Lovelace'],
  ])('%s → left out, and the person signs in', async (_case, name) => {
    corpUpstream.claims = Object.assign({}, ADA, { name, preferred_username: name });
    const world = await worldOf();
    const browser = world.browser();
    expect(await arrives(browser, await comeBack(browser, await leave(world, browser)))).toBe(true);
    const [{ subject = '' } = {}] = world.events;
    // The subject there is in place of the name that every person has.
    expect(await world.stores.persons.read(subject)).toMatchObject({ username: 'ada-1', displayName: undefined });
  });
});
