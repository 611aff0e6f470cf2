// What a client revoked a moment before the server came back as it was earlier, like a replica that takes over and is behind.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Stores } from '../../src/oauth/ports.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { redisStores } from '../../src/redis/stores.ts';
import { digest, issued, redeemed, redeemRequest, SHARD, uniqueId } from '../contracts/sample-grants.ts';
import { connectTo } from './connect.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

const keys = new RedisKeys('grantry:');
const LIFETIME_SECONDS = 600;

/** More than are remembered of one kind. */
const FLOOD = 10_100;

/** Something that can be revoked. */
interface Revocable {
  revoke(): Promise<void>;
  isAlive(): Promise<boolean>;
}

describeRedis('what was revoked and a fail-over has lost', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    connection = await connectTo(server);
    stores = redisStores({ connection, keys });
  });
  afterEach(() => connection.close());
  afterAll(() => server.stop());

  const newTokenId = () => `${SHARD}.${digest(uniqueId())}`;
  const seconds = () => Math.ceil(Date.now() / 1000);

  async function opaqueToken(): Promise<Revocable> {
    const accessToken = {
      tokenId: newTokenId(),
      issuedAtSeconds: seconds(),
      expiresAtSeconds: seconds() + LIFETIME_SECONDS,
    };
    const { tokenId } = accessToken;
    await stores.grants.redeem(redeemRequest(await issued(stores.grants), { accessToken }));
    return {
      revoke: () => stores.accessTokens.revoke(tokenId),
      isAlive: async () => (await stores.accessTokens.read(tokenId)) !== undefined,
    };
  }

  const REVOCABLES: Readonly<Record<string, () => Promise<Revocable>>> = {
    async 'a grant'() {
      const { grantId } = await redeemed(stores.grants);
      return {
        revoke: () => stores.grants.revoke(grantId),
        isAlive: async () => (await stores.grants.read(grantId))?.revoked === false,
      };
    },
    'an opaque access token': opaqueToken,
    async 'a JWT'() {
      const jti = uniqueId();
      return {
        revoke: () => stores.revokedTokens.mark(jti, seconds() + LIFETIME_SECONDS),
        isAlive: async () => !(await stores.revokedTokens.has(jti)),
      };
    },
  };

  /** The server comes back as it was when it last saved, which is with this, and a replica of grantry meets it. */
  async function broughtBack({ isAlive }: Revocable): Promise<void> {
    expect(await isAlive()).toBe(false);
    await server.kill();
    await server.start();
    await connection.ready(5000);
    expect(await isAlive()).toBe(true);
    await connection.reassert('all');
  }

  it.each(Object.entries(REVOCABLES))('is dead again, alone: %s', async (_name, made) => {
    const [revoked, other] = [await made(), await made()];
    await server.command('SAVE');
    await revoked.revoke();
    await broughtBack(revoked);
    expect(await revoked.isAlive()).toBe(false);
    expect(await other.isAlive()).toBe(true);
  });

  it('is dead again however many opaque tokens that never were are revoked after it', async () => {
    const token = await opaqueToken();
    await server.command('SAVE');
    await token.revoke();
    for (let sent = 0; sent < FLOOD; sent += 100) {
      await Promise.all(Array.from({ length: 100 }, () => stores.accessTokens.revoke(newTokenId())));
    }
    await broughtBack(token);
    expect(await token.isAlive()).toBe(false);
  });

  it('is dead again also where the server that was asked did not have it: an opaque access token', async () => {
    const token = await opaqueToken();
    await server.command('SAVE');
    await server.command('FLUSHALL');
    await token.revoke();
    await broughtBack(token);
    expect(await token.isAlive()).toBe(false);
  });
});
