// Requests of OpenID Connect in tests of a sign-in: a client that may make them, signed-in browsers, and ID tokens that come
// back as hints.

import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../../../src/oauth/registry/keys.ts';
import { IdTokens } from '../../../src/oauth/tokens/id-tokens.ts';
import { hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import { PASSWORD, WEB, type World } from './sign-in-world.ts';

/** Whose people need not consent. */
export const OPENID: Client = {
  ...WEB,
  consent: 'Skip',
  scopes: ['openid', 'profile', 'email', 'groups', 'shop/read'],
  idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 60 },
};

export type Query = NonNullable<Parameters<World['authorizePath']>[0]>;

/** The path of a good request with scope openid, changed so. */
export function openidPath(world: World, changes: Query = {}): string {
  return world.authorizePath({ scope: 'openid', ...changes });
}

/** Signs in on a login page; answers what /login answered. */
export function submitLogin(browser: TestBrowser, page: Page, username = 'alice'): Promise<Page> {
  const fields = { username, password: PASSWORD, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  return browser.post('/login', fields);
}

/** A browser of a signed-in person. */
export async function signedIn(world: World, username = 'alice', changes: Query = {}): Promise<TestBrowser> {
  const browser = world.browser();
  const answer = await submitLogin(browser, await browser.get(world.authorizePath(changes)), username);
  expect(answer.status).toBe(303);
  return browser;
}

/** A key that ID tokens of {@link OPENID} are signed with. */
export async function idTokenKey(): Promise<SigningKey> {
  return importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
}

/** An ID token of the server about a person, signed with this key. */
export async function hintFor(
  world: World,
  username: string,
  key: SigningKey,
  { client = OPENID, sid = 'the-session' } = {},
): Promise<string> {
  const { issuer } = world;
  const idTokens = new IdTokens({ issuer, clock: world, random: { bytes: randomBytes }, endOfTick: setImmediate });
  const person = { subject: world.subject(username), username, displayName: undefined, email: undefined, groups: [] };
  const login = { authTime: world.now(), sid, nonce: undefined };
  const content = { person, scope: ['openid'], login, accessToken: 'an.access.token' };
  return (await idTokens.prepare(client, new KeyRing([key])).issue(content)).idToken;
}
