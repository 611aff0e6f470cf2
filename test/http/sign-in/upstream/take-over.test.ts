// What one source of people says about another's: groups, addresses, subjects and issuers, as the ID token and userinfo have it then.

import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IdentityProvider, OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { PKCE } from '../../../grantry.ts';
import { GitHubStandIn } from '../../../login/upstream/github-stand-in.ts';
import { aGitHubProvider, anOidcProvider } from '../../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { idTokenKey, OPENID } from '../openid-world.ts';
import { answerOf, hidden, type Page, type TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, PASSWORD, SECRET, type World } from '../sign-in-world.ts';

/** As the local user alice says of herself, with a group that she is in. */
const ALICE = {
  preferred_username: 'alice',
  name: 'Alice Ang',
  email: 'alice@shop.example',
  email_verified: true,
  groups: ['team-1', 'admins'],
};
const SCOPE = 'openid profile email groups';
const key = await idTokenKey();

let corpServer: ScriptedProvider;
let partnerServer: ScriptedProvider;
let github: GitHubStandIn;
beforeAll(async () => {
  [corpServer, partnerServer, github] = await Promise.all([
    ScriptedProvider.start(),
    ScriptedProvider.start(),
    GitHubStandIn.start(),
  ]);
});
beforeEach(() => {
  for (const server of [corpServer, partnerServer]) {
    server.claims = Object.assign({}, ALICE, { sub: 'the-same' });
    server.userinfo = { sub: 'the-same' };
    server.metadata = {};
  }
  github.reset();
});
afterAll(() => {
  for (const server of [corpServer, partnerServer, github]) server.stop();
});

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: corpServer.issuer }, changes));
const partner = (changes: Partial<OidcProvider> = {}) => {
  const groups = { include: ['**'], prefix: 'partner:' };
  const own = { name: 'partner', uid: 'uid-partner', displayName: 'Partner', issuer: partnerServer.issuer, groups };
  return anOidcProvider(Object.assign(own, changes));
};

interface PersonClaims {
  readonly sub: string;
  readonly preferred_username?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly groups?: readonly string[];
}

/** Beside local users. */
function worldOf(...providers: readonly IdentityProvider[]): Promise<World> {
  return aWorld({ clients: [OPENID], keys: [key], providers });
}

/** The claims of a person in the ID token, which are those of userinfo. */
async function claimsOf(world: World, browser: TestBrowser, page: Page): Promise<PersonClaims> {
  let arrived = page;
  while (arrived.location?.startsWith('/')) arrived = await browser.get(arrived.location);
  const { code = '' } = answerOf(arrived);
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
  const headers = { authorization: `Basic ${btoa(`${OPENID.clientId}:${SECRET}`)}` };
  const redeemed = await world.post('/token', form, { headers });
  const { id_token, access_token } = (await redeemed.json()) as { id_token: string; access_token: string };
  const asked = await world.post('/userinfo', {}, { headers: { authorization: `Bearer ${access_token}` } });
  const userinfo = (await asked.json()) as PersonClaims;
  expect(decodeJwt(id_token)).toMatchObject(userinfo);
  return userinfo;
}

async function leave(world: World, browser: TestBrowser, name: string): Promise<URLSearchParams> {
  const page = await browser.get(world.authorizePath({ scope: SCOPE }));
  const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const { location = '' } = await browser.post(`/login/upstream/${name}`, fields);
  return new URL(location).searchParams;
}

/** Signs in by the button of a provider. @returns what /login/callback answers */
async function comeBack(world: World, browser: TestBrowser, name: string): Promise<Page> {
  const upstreamRequest = await leave(world, browser, name);
  for (const server of [corpServer, partnerServer]) server.nonce = upstreamRequest.get('nonce') ?? '';
  return await browser.get(`/login/callback/${name}?state=${upstreamRequest.get('state')}&code=c`);
}

async function byProvider(world: World, name: string): Promise<PersonClaims> {
  const browser = world.browser();
  return await claimsOf(world, browser, await comeBack(world, browser, name));
}

async function byPassword(world: World): Promise<PersonClaims> {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath({ scope: SCOPE }));
  const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return await claimsOf(
    world,
    browser,
    await browser.post('/login', { username: 'alice', password: PASSWORD, ...sealed }),
  );
}

describe('a person of a provider with the names, the address and the groups of a local user', () => {
  it('→ is another person, and in no group of hers', async () => {
    const world = await worldOf(corp());
    const [local, foreign] = [await byPassword(world), await byProvider(world, 'corp')];
    expect(local).toMatchObject({ preferred_username: 'alice', groups: expect.arrayContaining(['team-1']) });
    expect(foreign).toMatchObject({ preferred_username: 'alice', groups: ['corp:team-1', 'corp:admins'] });
    expect(foreign.sub).not.toBe(local.sub);
  });
});

describe('two providers that say the same', () => {
  it('→ two people, and each group has the prefix of its provider', async () => {
    const world = await worldOf(corp(), partner());
    const [one, two] = [await byProvider(world, 'corp'), await byProvider(world, 'partner')];
    expect(one).toMatchObject({ groups: ['corp:team-1', 'corp:admins'], email: ALICE.email });
    expect(two).toMatchObject({ groups: ['partner:team-1', 'partner:admins'], email: ALICE.email });
    expect(two.sub).not.toBe(one.sub);
  });

  it('groups that have the prefix of the other already → in front of them its own', async () => {
    partnerServer.claims = Object.assign({}, partnerServer.claims, { groups: ['corp:admins', 'partner:x'] });
    const world = await worldOf(corp(), partner());
    expect(await byProvider(world, 'partner')).toMatchObject({ groups: ['partner:corp:admins', 'partner:partner:x'] });
  });

  it.each<[string, Partial<OidcProvider>]>([
    ['served', {}],
    ['suspended', { isSuspended: true }],
    ['without its Secret', { credentials: undefined }],
  ])('an address in the domain of the other one, which is %s → asserted by that one alone', async (_case, changes) => {
    const allow = { emailDomains: ['shop.example'], groups: [] };
    const world = await worldOf(corp(Object.assign({ allow }, changes)), partner());
    const claims = await byProvider(world, 'partner');
    expect([claims.email, claims.email_verified]).toEqual([undefined, undefined]);
    if (changes.isSuspended || 'credentials' in changes) return;
    expect(await byProvider(world, 'corp')).toMatchObject({ email: ALICE.email, email_verified: true });
  });

  it.each([false, 'false', 'no', 0, null])('an address with email_verified %j → is left out', async (verified) => {
    corpServer.claims = Object.assign({}, corpServer.claims, { email_verified: verified });
    const claims = await byProvider(await worldOf(corp()), 'corp');
    expect([claims.email, claims.email_verified]).toEqual([undefined, undefined]);
  });
});

describe('a provider that speaks for the issuer of another', () => {
  it('in an ID token → 502', async () => {
    const world = await worldOf(corp(), partner());
    partnerServer.claims = Object.assign({}, partnerServer.claims, { iss: corpServer.issuer });
    expect((await comeBack(world, world.browser(), 'partner')).status).toBe(502);
    expect(world.lastReason()).toBe('upstream_answer_invalid');
  });

  it('in its metadata → is not reached, and its button leads nowhere', async () => {
    partnerServer.metadata = { issuer: corpServer.issuer };
    const world = await worldOf(corp(), partner());
    const browser = world.browser();
    const page = await browser.get(world.authorizePath({ scope: SCOPE }));
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    expect((await browser.post('/login/upstream/partner', fields)).status).toBe(503);
  });

  it('by its keys and its token endpoint → 502', async () => {
    partnerServer.metadata = { jwks_uri: `${corpServer.issuer}/keys`, token_endpoint: `${corpServer.issuer}/token` };
    const world = await worldOf(corp(), partner());
    // The ID token says whose it is.
    expect((await comeBack(world, world.browser(), 'partner')).status).toBe(502);
  });
});

describe('GitHub', () => {
  const hub = (organizations: readonly string[], prefix = 'hub:') => {
    const { host, authorities } = github;
    const credentials = { clientId: 'grantry', clientSecret: 's', authorities };
    const groups = { include: ['**'], prefix, allowCommas: false };
    return aGitHubProvider({ name: 'hub', uid: 'uid-hub', host, organizations, credentials, groups });
  };

  it('given an organization named like a local group, where anyone may come → no group of it, also without a prefix', async () => {
    github.api['/user/orgs'] = [{ login: 'team-1' }];
    github.api['/user/teams'] = [{ slug: 'team-1', organization: { login: 'team-1' } }];
    for (const prefix of ['hub:', '']) {
      const claims = await byProvider(await worldOf(hub([], prefix)), 'hub');
      expect([claims.preferred_username, claims.groups ?? []]).toEqual(['ada', []]);
    }
  });

  it('given such a one beside the listed one → the groups of the listed one alone', async () => {
    const claims = await byProvider(await worldOf(hub(['corp'], '')), 'hub');
    expect(claims.groups).toEqual(['corp', 'corp:platform']);
  });

  it('given an address in the domain of another provider, which a former employee still has → is left out', async () => {
    const world = await worldOf(corp({ allow: { emailDomains: ['corp.example.com'], groups: [] } }), hub(['corp']));
    const claims = await byProvider(world, 'hub');
    expect([claims.email, claims.email_verified]).toEqual([undefined, undefined]);
  });
});
