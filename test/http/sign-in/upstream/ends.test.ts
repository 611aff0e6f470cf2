// What ends for a person of an identity provider, over HTTP: by the kill switches of the provider, by a block of the person, and
// `verifyEvery` after its assertion. Each holds for a session, a code, a refresh token, userinfo and introspection.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { OidcProvider } from '../../../../src/oauth/registry/identity-provider.ts';
import { aGitHubProvider, anOidcProvider } from '../../../login/upstream/providers.ts';
import type { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { until } from '../../../until.ts';
import { idTokenKey } from '../openid-world.ts';
import { answerOf } from '../sign-in-browser.ts';
import { aWorld, type World } from '../sign-in-world.ts';
import { ALL, CLIENT, codeFor, held, NOTHING, providerOfAda, redeem, signInBy, type Tokens } from './held.ts';

const HOUR = 3_600_000;

let upstream: ScriptedProvider;
beforeAll(async () => {
  upstream = await providerOfAda();
});
afterAll(() => upstream.stop());

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer, verifyEvery: HOUR / 2 }, changes));

describe.each(['jwt', 'opaque'] as const)('with %s tokens', (accessTokenFormat) => {
  it.each<[string, typeof ALL, (world: World) => Promise<void> | void]>([
    ['nothing', ALL, () => {}],
    ['a provider without its Secret', ALL, (world) => world.setProviders([corp({ credentials: undefined })])],
    ['a provider that is suspended', NOTHING, (world) => world.setProviders([corp({ isSuspended: true })])],
    ['a provider that is deleted', NOTHING, (world) => world.setProviders([])],
    ['one that has another name', NOTHING, (world) => world.setProviders([corp({ name: 'corp-2' })])],
    ['another issuer', NOTHING, (world) => world.setProviders([corp({ issuer: 'http://127.0.0.1:9/other' })])],
    [
      'another type',
      NOTHING,
      (world) => {
        return world.setProviders([aGitHubProvider({ host: upstream.issuer })]);
      },
    ],
    ['revokeTokensBefore', NOTHING, (world) => world.setProviders([corp({ revokedBefore: world.now() })])],
    ['a block by name', NOTHING, (world) => world.setBlocks([{ provider: 'corp', username: 'ADA', disabled: true }])],
    [
      'a block by address',
      NOTHING,
      (world) => world.setBlocks([{ provider: 'corp', email: 'Ada@corp.example.com', disabled: true }]),
    ],
    [
      'a block by time',
      NOTHING,
      (world) => world.setBlocks([{ provider: 'corp', username: 'ada', revokeTokensBefore: world.now() }]),
    ],
    [
      'a block until a time that is ahead',
      NOTHING,
      (world) => world.setBlocks([{ provider: 'corp', username: 'ada', revokeTokensBefore: world.now() + 1 }]),
    ],
    [
      'blocks of another person',
      ALL,
      (world) =>
        world.setBlocks([
          { provider: 'corp', username: 'eve', disabled: true },
          { provider: 'local', username: 'ada', disabled: true },
          { provider: 'corp', username: 'ada', revokeTokensBefore: world.now() - 1 },
        ]),
    ],
    [
      'a shorter verifyEvery',
      NOTHING,
      (world) => {
        world.advance(301_000);
        return world.setProviders([corp({ verifyEvery: 300_000 })]);
      },
    ],
  ])('%s', async (_case, expected, strike) => {
    const client = Object.assign({}, CLIENT, { tokens: Object.assign({}, CLIENT.tokens, { accessTokenFormat }) });
    const world = await aWorld({
      clients: [client],
      providers: [corp()],
      hasNoUsers: true,
      keys: [await idTokenKey()],
    });
    const browser = world.browser();
    const tokens = (await (await redeem(world, await codeFor(upstream, world, browser))).json()) as Tokens;
    const code = await codeFor(upstream, world, browser);
    await strike(world);
    expect(await held(world, browser, { tokens, code })).toEqual(expected);
  });
});

describe('a person who is blocked', () => {
  it('→ may not sign in, and the answer says no more than to others', async () => {
    const world = await aWorld({
      clients: [CLIENT],
      providers: [corp()],
      hasNoUsers: true,
      keys: [await idTokenKey()],
    });
    world.setBlocks([{ provider: 'corp', email: 'ADA@corp.example.com', disabled: true }]);
    const page = await signInBy(upstream, world, world.browser());
    expect([page.status, world.lastReason()]).toEqual([403, 'person_not_permitted']);
    const { type, provider, reason } = world.events.find(({ type }) => type === 'person.refused') ?? {};
    expect([type, provider, reason]).toEqual(['person.refused', 'corp', 'person_not_permitted']);
    world.setBlocks([]);
    // What is begun in the millisecond of the end is ended too.
    world.advance(1);
    expect(answerOf(await signInBy(upstream, world, world.browser())).code).toBeDefined();
  });

  it('by an address that the provider does not verify → the same, and no client learns the address', async () => {
    upstream.claims = { preferred_username: 'ada', email: 'ada@home.example.com', email_verified: false };
    onTestFinished(async () => {
      upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'ada@corp.example.com', email_verified: true };
    });
    const world = await aWorld({
      clients: [CLIENT],
      providers: [corp()],
      hasNoUsers: true,
      keys: [await idTokenKey()],
    });
    const browser = world.browser();
    const tokens = (await (await redeem(world, await codeFor(upstream, world, browser))).json()) as Tokens;
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    const userinfo = await world.post('/userinfo', {}, { headers });
    expect([userinfo.status, await userinfo.text()]).toEqual([200, expect.not.stringContaining('home.example.com')]);
    const code = await codeFor(upstream, world, browser);
    world.setBlocks([{ provider: 'corp', email: 'ada@HOME.example.com', disabled: true }]);
    expect(await held(world, browser, { tokens, code })).toEqual(NOTHING);
    expect((await signInBy(upstream, world, world.browser())).status).toBe(403);
    expect(JSON.stringify(world.logs())).not.toContain('home.example.com');
  });

  it('and met → finds nothing again when the block is gone, and the audit says so once', async () => {
    const world = await aWorld({
      clients: [CLIENT],
      providers: [corp()],
      hasNoUsers: true,
      keys: [await idTokenKey()],
    });
    const browser = world.browser();
    const tokens = (await (await redeem(world, await codeFor(upstream, world, browser))).json()) as Tokens;
    const code = await codeFor(upstream, world, browser);
    world.setBlocks([{ provider: 'corp', username: 'ada', disabled: true }]);
    await held(world, browser, { tokens, code });
    await until('all is ended', () => world.events.some(({ type }) => type === 'sessions.ended_all'));
    world.setBlocks([]);
    expect(await held(world, browser, { tokens, code })).toEqual(NOTHING);
    const ends = world.events.filter(({ type }) => type === 'sessions.ended_all');
    expect(ends).toEqual([
      expect.objectContaining({ reason: 'person_blocked', subject: expect.stringMatching(/^usr_/) }),
    ]);
  });
});
