// Guesses at passwords from many addresses, over HTTP and Redis: how many are verified, and what they leave in Redis
// (docs/scope.md: 6819-1, C8).

import { randomBytes } from 'node:crypto';
import { hash } from '@node-rs/argon2';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LoginLimit } from '../../../src/http/sign-in/login-limit.ts';
import { LocalUsers } from '../../../src/login/local/local-users.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type Grantry, PKCE, startGrantry } from '../../grantry.ts';
import { hidden, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { aClient } from '../../oauth/a-client.ts';
import { connectFrozen } from '../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const AT_ONCE = 50;
const CLIENT = aClient({});
const keys = new RedisKeys('grantry:');

describeRedis('guesses at one name from many addresses', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let grantry: Grantry;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectFrozen(server, { now: () => grantry.clock.now() });
    // The cheapest hash that a users file may hold.
    const passwordHash = await hash('correct horse battery', { memoryCost: 7168, timeCost: 1, parallelism: 1 });
    grantry = await startGrantry({
      clients: [CLIENT],
      owners: new LocalUsers({ clock: systemClock, users: [{ username: 'alice', passwordHash }] }),
      rateLimits: true,
      trustedProxies: ['127.0.0.1'],
      wrapStores: () => redisStores({ connection, keys }),
    });
    // What it writes of the list of users at its start is not of a guess.
    await grantry.usersRecorded();
  });
  afterAll(async () => {
    await grantry.stop();
    await connection.close();
    await server.stop();
  });

  it('a name that exists and one that does not, 200 addresses each → a hundred verified of each, the same answers', async () => {
    const exists = await guessAt('alice', 'a');
    const existsNot = await guessAt('mallory', 'b');
    const verified = { '422': 100, '429 after an hour': 100 };
    expect([exists, existsNot]).toEqual([verified, verified]);
  });

  it('1 000 addresses → a hundred verified, at most 601 keys in Redis', async () => {
    const { rateLimits: store } = redisStores({ connection, keys });
    const limit = new LoginLimit({ issuer: grantry.issuer, pepper: randomBytes(32), store, clock: grantry.clock });
    await server.command('FLUSHALL');
    const waits: number[] = [];
    for (let number = 0; number < 1000; number += 1) {
      const address = `2001:db8:${number.toString(16)}::1`;
      waits.push(await limit.begin({ username: 'alice', address, knownBrowser: undefined }));
    }
    expect(waits.filter((wait) => wait === 0)).toHaveLength(100);
    // One of the name; of each verified guess two of its /64, /56 and /48 each, which end within a minute.
    const count = Number(await server.command('DBSIZE'));
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThanOrEqual(601);
  });

  /** One wrong guess from each of 200 networks. @returns how often each answer came */
  async function guessAt(username: string, prefix: string): Promise<Readonly<Record<string, number>>> {
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT.clientId,
      redirect_uri: CLIENT.redirectUris[0] ?? '',
      scope: 'shop/read',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    });
    const page = await browser.get(`/authorize?${query}`);
    const form = { username, password: 'wrong', csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const answers: Record<string, number> = {};
    for (let first = 0; first < 200; first += AT_ONCE) {
      const batch = Array.from({ length: AT_ONCE }, async (_, index) => {
        // Each in a /48 of its own.
        const address = `2001:db8:${prefix}${(first + index).toString(16).padStart(3, '0')}::1`;
        const { status, headers } = await browser.post('/login', form, { 'x-forwarded-for': address });
        const wait = headers.get('retry-after');
        return wait === null ? `${status}` : `${status} after ${Number(wait) > 3500 ? 'an hour' : wait}`;
      });
      for (const answer of await Promise.all(batch)) answers[answer] = (answers[answer] ?? 0) + 1;
    }
    return answers;
  }
});
