// What a silent request (`prompt=none`) leaves in Redis where it gets no code: nothing.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type Grantry, PKCE, startGrantry } from '../../grantry.ts';
import { answerOf, hidden, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { aClient } from '../../oauth/a-client.ts';
import { dump } from '../setup/dump.ts';
import { connectFrozen } from '../setup/frozen-time.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const PASSWORD = 'correct horse battery';
const WEB = aClient({ scopes: ['openid'] });

describeRedis('a silent request', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let grantry: Grantry;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectFrozen(server, { now: () => grantry.clock.now() });
    const passwordHash = await hashPassword(PASSWORD);
    const keys = new RedisKeys('grantry:');
    grantry = await startGrantry({
      clients: [WEB],
      owners: new LocalUsers({ clock: systemClock, users: [{ username: 'alice', passwordHash, disabled: false }] }),
      rateLimits: true,
      wrapStores: () => redisStores({ connection, keys }),
    });
    await grantry.usersRecorded();
  });
  afterAll(async () => {
    await grantry.stop();
    await connection.close();
    await server.stop();
  });

  function path(changes: Readonly<Record<string, string>>): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: WEB.clientId,
      redirect_uri: 'https://shop.example/callback',
      scope: 'openid',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
      ...changes,
    });
    return `/authorize?${query}`;
  }

  /** All that Redis holds, but for the idle time of a session, which each request renews. */
  async function held(): Promise<string> {
    return (await dump(server)).replaceAll(/^(\S+:session:\S+) .*$/gm, '$1');
  }

  it('without a session, after too long, and without consent → Redis holds what it held before', async () => {
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const silent = async (changes: Readonly<Record<string, string>> = {}) => {
      const before = await held();
      const answer = await browser.get(path({ prompt: 'none', ...changes }));
      expect(await held()).toBe(before);
      expect(answer.headers.getSetCookie()).toEqual([]);
      return answerOf(answer).error;
    };
    expect(await silent()).toBe('login_required');
    const page = await browser.get(path({}));
    const sealed = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    expect((await browser.post('/login', { username: 'alice', password: PASSWORD, ...sealed })).status).toBe(303);
    expect(await silent()).toBe('consent_required');
    grantry.clock.advance(60_000);
    expect(await silent({ max_age: '1' })).toBe('login_required');
    // A request that asks leaves an interaction, which the dump shows.
    const before = await held();
    expect((await browser.get(path({}))).location).toMatch(/^\/consent\//);
    expect(await held()).not.toBe(before);
  });
});
