// A person of a provider who is blocked, over Redis: shut out by every server that reads the block, at once, whatever Redis
// holds; and what a server has met is ended for servers that never read it.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import type { Block } from '../../../../src/login/blocks.ts';
import type { ManagedConnection } from '../../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../../src/redis/stores.ts';
import { TestClock } from '../../../grantry.ts';
import { idTokenKey } from '../../../http/sign-in/openid-world.ts';
import type { TestBrowser } from '../../../http/sign-in/sign-in-browser.ts';
import { aWorld, type World } from '../../../http/sign-in/sign-in-world.ts';
import {
  ALL,
  CLIENT,
  codeFor,
  held,
  NOTHING,
  providerOfAda,
  redeem,
  signInBy,
  type Tokens,
} from '../../../http/sign-in/upstream/held.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import type { ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { until } from '../../../until.ts';
import { connectFrozen } from '../../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const BLOCKS: readonly (readonly [string, Block])[] = [
  ['by name', { provider: 'corp', username: 'Ada', disabled: true }],
  ['by address', { provider: 'corp', email: 'ADA@corp.example.com', disabled: true }],
];

describeRedis('a person of a provider who is blocked', () => {
  let redis: RedisServer;
  let upstream: ScriptedProvider;
  let connections: readonly ManagedConnection[];
  const clock = new TestClock();
  beforeAll(async () => {
    redis = await startRedis();
    upstream = await providerOfAda();
    connections = await Promise.all([connectFrozen(redis, clock), connectFrozen(redis, clock)]);
  });
  afterAll(async () => {
    upstream.stop();
    await Promise.all(connections.map((connection) => connection.close()));
    await redis.stop();
  });
  beforeEach(() => redis.command('FLUSHALL'));

  /** Two servers of one install, and a browser that is signed in at both. */
  async function twoServers() {
    const keys = [await idTokenKey()];
    const pepper = randomBytes(32);
    const providers = [anOidcProvider({ issuer: upstream.issuer })];
    const worlds: World[] = [];
    for (const connection of connections) {
      const stores = redisStores({ connection, keys: new RedisKeys('grantry:') });
      const [first] = worlds;
      const issuer = first && { issuer: first.issuer };
      const options = { clients: [CLIENT], providers, hasNoUsers: true, keys, pepper, clock, stores };
      worlds.push(await aWorld(Object.assign(options, issuer)));
    }
    const [one, two] = worlds as [World, World];
    const [atOne, atTwo] = [one.browser(), two.browser()];
    const tokens = (await (await redeem(one, await codeFor(upstream, one, atOne))).json()) as Tokens;
    const code = await codeFor(upstream, one, atOne);
    for (const [name, value] of atOne.cookies) atTwo.cookies.set(name, value);
    return { one, two, atOne, atTwo, holds: { tokens, code } };
  }

  async function isShutOut(world: World, browser: TestBrowser) {
    const { status } = await signInBy(upstream, world, browser);
    return [status, world.lastReason()];
  }

  it('without a block → all of it works at the second server', async () => {
    const { two, atTwo, holds } = await twoServers();
    expect(await held(two, atTwo, holds)).toEqual(ALL);
  });

  it.each(BLOCKS)('%s → nothing works at the second server, and no sign-in, at once', async (_case, block) => {
    const { two, atTwo, holds } = await twoServers();
    two.setBlocks([block]);
    expect(await held(two, atTwo, holds)).toEqual(NOTHING);
    expect(await isShutOut(two, two.browser())).toEqual([403, 'person_not_permitted']);
  });

  it.each(BLOCKS)('%s, while Redis is emptied → the same, and again no sign-in', async (_case, block) => {
    const { one, two, atTwo, holds } = await twoServers();
    for (const world of [one, two]) world.setBlocks([block]);
    await redis.command('FLUSHALL');
    expect(await held(two, atTwo, holds)).toEqual(NOTHING);
    for (const world of [two, one]) {
      expect(await isShutOut(world, world.browser())).toEqual([403, 'person_not_permitted']);
    }
  });

  it('by an address that is not verified, and was taken out of Redis by hand → the record is not believed', async () => {
    const { claims } = upstream;
    onTestFinished(() => void Object.assign(upstream, { claims }));
    upstream.claims = { preferred_username: 'ada', email: 'ada@home.example.com', email_verified: false };
    const { two, atTwo, holds } = await twoServers();
    const key = await redis.command('EVAL', "return redis.call('KEYS', '*:person:*')[1]", '0');
    const record = await redis.command('HGET', String(key), 'v');
    const cut = String(record).replace(/,"unverifiedEmail":"[^"]*"/, '');
    expect(cut).not.toBe(record);
    await redis.command('HSET', String(key), 'v', cut);
    expect(await held(two, atTwo, holds)).toEqual(NOTHING);
    await redis.command('HSET', String(key), 'v', String(record));
    two.setBlocks([{ provider: 'corp', email: 'ada@home.example.com', disabled: true }]);
    expect(await held(two, atTwo, holds)).toEqual(NOTHING);
    expect(await isShutOut(two, two.browser())).toEqual([403, 'person_not_permitted']);
  });

  it('and met by one server → ended at the other, which has no block, and for good', async () => {
    const { one, two, atOne, atTwo, holds } = await twoServers();
    one.setBlocks([{ provider: 'corp', username: 'ada', disabled: true }]);
    await atOne.get('/account');
    await until('all is ended', () => one.events.some(({ type }) => type === 'sessions.ended_all'));
    one.setBlocks([]);
    expect(await held(two, atTwo, holds)).toEqual(NOTHING);
    expect(await held(one, atOne, holds)).toEqual(NOTHING);
  });
});
