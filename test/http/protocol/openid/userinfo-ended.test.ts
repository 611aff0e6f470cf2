// Tokens at userinfo whose sign-in, grant or key has ended since they were issued to a browser's client (docs/scope.md: USERINFO-3).
// What revokes a token by itself: `userinfo.test.ts`.

import { describe, expect, it } from 'vitest';
import type { Client } from '../../../../src/oauth/registry/client.ts';
import type { SigningKey } from '../../../../src/oauth/registry/keys.ts';
import { basic, PKCE } from '../../../grantry.ts';
import { until } from '../../../until.ts';
import { hintFor, idTokenKey, OPENID, openidPath, signedIn, submitLogin } from '../../sign-in/openid-world.ts';
import { answerOf, type TestBrowser } from '../../sign-in/sign-in-browser.ts';
import { aWorld, CALLBACK, SECRET, type World } from '../../sign-in/sign-in-world.ts';

const JWT: Client = { ...OPENID, scopes: [...OPENID.scopes, 'offline_access'] };
const OPAQUE: Client = { ...JWT, tokens: { ...JWT.tokens, accessTokenFormat: 'opaque' } };
const key = await idTokenKey();
const otherKey = await idTokenKey();

interface Visit {
  readonly world: World;
  readonly browser: TestBrowser;
  readonly code: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

interface TokenAnswer {
  readonly status: number;
  readonly access_token: string;
  readonly refresh_token: string;
}

async function ask(world: World, form: Readonly<Record<string, string>>): Promise<TokenAnswer> {
  const response = await world.post('/token', form, { headers: { authorization: basic(OPENID.clientId, SECRET) } });
  const body = (await response.json()) as Omit<TokenAnswer, 'status'>;
  return { status: response.status, access_token: body.access_token, refresh_token: body.refresh_token };
}

const redeem = (world: World, code: string) =>
  ask(world, { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier });
const refresh = (world: World, token: string) => ask(world, { grant_type: 'refresh_token', refresh_token: token });

async function visit(client: Client, scope: string): Promise<Visit> {
  const world = await aWorld({ clients: [client], keys: [key] });
  const browser = await signedIn(world);
  const { code = '' } = answerOf(await browser.get(openidPath(world, { scope })));
  const { access_token: accessToken, refresh_token: refreshToken } = await redeem(world, code);
  return { world, browser, code, accessToken, refreshToken };
}

/** Status and error. */
async function userinfo({ world, accessToken }: Visit): Promise<string> {
  const response = await fetch(`${world.issuer}/userinfo`, { headers: { authorization: `Bearer ${accessToken}` } });
  const { error = '' } = (await response.json()) as { readonly error?: string };
  return `${response.status} ${error}`.trim();
}

async function signOut({ world, browser }: Visit): Promise<void> {
  const hint = await hintFor(world, 'alice', key);
  expect((await browser.get(`/logout?${new URLSearchParams({ id_token_hint: hint })}`)).status).toBe(200);
}

/** Changes that take the token with them. */
const ENDS: readonly (readonly [string, (visit: Visit) => unknown])[] = [
  ['a sign-out', signOut],
  [
    'a sign-in of another person in the same browser',
    async ({ world, browser }) =>
      submitLogin(browser, await browser.get(openidPath(world, { prompt: 'login' })), 'bob'),
  ],
  ['a code that comes again', async ({ world, code }) => expect((await redeem(world, code)).status).toBe(400)],
  [
    'a refresh token that comes again',
    async ({ world, refreshToken }) => {
      const next = await refresh(world, refreshToken);
      await refresh(world, next.refresh_token);
      world.advance(11_000);
      expect((await refresh(world, refreshToken)).status).toBe(400);
    },
  ],
  [
    'a password that is changed',
    async ({ world }) => {
      world.changePassword('alice');
      await world.usersRecorded();
    },
  ],
  [
    'a person who is disabled, and enabled again',
    async ({ world }) => {
      world.setDisabled(['alice']);
      await world.usersRecorded();
      world.setDisabled([]);
    },
  ],
];

describe.each([
  ['JWT', JWT],
  ['opaque token', OPAQUE],
])('a %s', (_format, client) => {
  it.each(ENDS)('given %s → 401 invalid_token', async (_what, end) => {
    const visited = await visit(client, 'openid');
    expect(await userinfo(visited)).toBe('200');
    await end(visited);
    await until('it is refused', async () => (await userinfo(visited)) === '401 invalid_token');
  });

  it('with offline_access, given a sign-out → lives on', async () => {
    const visited = await visit(client, 'openid offline_access');
    await signOut(visited);
    expect(visited.world.events.map(({ type }) => type)).toContain('session.ended');
    expect(await userinfo(visited)).toBe('200');
  });

  it('given a sign-out in another browser of the person → lives on', async () => {
    const visited = await visit(client, 'openid');
    const { world } = visited;
    await signOut({ ...visited, browser: await signedIn(world) });
    expect(await userinfo(visited)).toBe('200');
  });
});

describe('a signing key that is removed', () => {
  const retiring = (signer: SigningKey): SigningKey => ({ ...signer, state: 'Retiring' });

  it('→ its JWT is refused; while it retires it is not', async () => {
    const visited = await visit(JWT, 'openid');
    visited.world.setKeys([otherKey, retiring(key)]);
    expect(await userinfo(visited)).toBe('200');
    visited.world.setKeys([otherKey]);
    expect(await userinfo(visited)).toBe('401 invalid_token');
    visited.world.setKeys([key]);
    expect(await userinfo(visited)).toBe('200');
  });

  it('→ an opaque token stays valid: it depends on no key', async () => {
    const visited = await visit(OPAQUE, 'openid');
    visited.world.setKeys([otherKey]);
    expect(await userinfo(visited)).toBe('200');
  });
});
