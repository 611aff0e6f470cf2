// Sign-in by an identity provider under attack and under faults, over HTTP.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { json, ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import type { Page, TestBrowser } from '../sign-in-browser.ts';
import { aWorld, CALLBACK, WEB, type World } from '../sign-in-world.ts';

const ADA = { preferred_username: 'ada', email: 'ada@corp.example.com', email_verified: true };
const CLIENT = Object.assign({}, WEB, { consent: 'Skip' as const });

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await ScriptedProvider.start();
});
afterAll(() => upstream.stop());
beforeEach(() => {
  upstream.claims = ADA;
  upstream.userinfo = { sub: 'ada-1' };
  upstream.answers.clear();
  upstream.asked.clear();
  upstream.redeemed.length = 0;
});

/** Of one provider and no local users. */
function worldOf(changes: Partial<OidcProvider> = {}): Promise<World> {
  const providers = [anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes))];
  return aWorld({ clients: [CLIENT], providers, hasNoUsers: true });
}

/** A browser leaves for the provider. @returns the `state` */
async function leave(world: World, browser: TestBrowser): Promise<string> {
  const { searchParams } = new URL((await browser.get(world.authorizePath())).location ?? '');
  upstream.nonce = searchParams.get('nonce') ?? '';
  return searchParams.get('state') ?? '';
}

function comeBack(browser: TestBrowser, state: string, query = 'code=c1'): Promise<Page> {
  return browser.get(`/login/callback/corp?state=${state}&${query}`);
}

describe('a person who signs in again', () => {
  it('and the store fails in the middle → what was known stands, and no alarm is raised', async () => {
    const world = await worldOf();
    const browser = world.browser();
    expect((await comeBack(browser, await leave(world, browser))).status).toBe(302);
    const elsewhere = world.browser();
    const state = await leave(world, elsewhere);
    world.loseAnswersOf('persons');
    expect((await comeBack(elsewhere, state)).status).toBe(503);
    world.mendStores();
    expect((await browser.get(world.authorizePath())).location).toMatch(CALLBACK);
    expect(world.logs().filter(({ event }) => event === 'state_forged')).toEqual([]);
  });
});

describe('an address of the ID token, and another one in userinfo that is verified', () => {
  it('→ is not verified', async () => {
    const world = await worldOf({ allow: { emailDomains: ['corp.example.com'], groups: [] } });
    upstream.claims = { preferred_username: 'mallory', email: 'ada@corp.example.com' };
    upstream.userinfo = { sub: 'ada-1', email: 'mallory@evil.example', email_verified: true };
    const browser = world.browser();
    expect((await comeBack(browser, await leave(world, browser))).status).toBe(403);
    expect(world.lastReason()).toBe('email_not_verified');
  });

  it('the same one → is', async () => {
    const world = await worldOf({ allow: { emailDomains: ['corp.example.com'], groups: [] } });
    upstream.claims = { preferred_username: 'ada', email: 'ada@corp.example.com' };
    upstream.userinfo = { sub: 'ada-1', email: 'ada@corp.example.com', email_verified: true };
    const browser = world.browser();
    expect((await comeBack(browser, await leave(world, browser))).status).toBe(302);
  });
});

describe('made-up codes', () => {
  it('a provider that has had too many of them → 429 of this server, and no further call', async () => {
    const world = await worldOf();
    upstream.answers.set('/token', (_request, response) => json(response, {}, 429));
    const statuses = new Set<number>();
    for (let count = 0; count < 31; count += 1) {
      const browser = world.browser();
      statuses.add((await comeBack(browser, await leave(world, browser))).status);
    }
    expect([...statuses]).toEqual([503, 429]);
    expect(upstream.asked.get('/token')).toBe(30);
  });
});
