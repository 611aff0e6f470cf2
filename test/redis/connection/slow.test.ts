// Redis answers everything, only slowly: what runs out of time is refused, and all other requests are answered.

import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { issued, redeemRequest, SHARD, sampleGrant } from '../../contracts/sample-grants.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

/** As often as it is tried: a busy machine keeps answers longer than that. */
const MOST_TRIES = 5;

/** The way to a server, on which its answers take longer from `slowDown` on. */
async function detour({ url }: { readonly url: string }) {
  const { hostname, port } = new URL(url);
  let milliseconds = 0;
  const proxy = createServer((socket) => {
    const server = connect(Number(port), hostname);
    socket.pipe(server);
    server.on('data', (chunk) => setTimeout(() => socket.write(chunk), milliseconds));
    server.on('error', () => socket.destroy());
    socket.on('error', () => server.destroy());
    socket.on('close', () => server.destroy());
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => proxy.once('listening', resolve));
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    slowDown(by: number) {
      milliseconds = by;
    },
    close: () => proxy.close(),
  };
}

async function reasonOf(asked: Promise<unknown>): Promise<string | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (error instanceof StoreUnavailableError) return error.reason;
    throw error;
  }
}

describeRedis('a Redis that takes 450 ms for each answer', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    await server.stop();
  });

  /** What became of redemptions that owe a second look, four at a time, and of a read right after them. */
  async function tried(): Promise<{ redemptions: readonly (string | undefined)[]; read: string | undefined }> {
    const way = await detour(server);
    const connection = await connectTo(way);
    const { grants, watermarks } = redisStores({ connection, keys });
    try {
      const codes = await Promise.all(Array.from({ length: 4 }, () => issued(grants)));
      // Something was ended for a person of the shard since: it has to be found out whether for this one.
      const { subject } = sampleGrant();
      await watermarks.raise({ kind: 'consent', subject, clientUid: 'another' }, Date.now() + 60_000);
      way.slowDown(450);
      const redeeming = codes.map((code) => reasonOf(grants.redeem(redeemRequest(code))));
      const redemptions = await Promise.all(redeeming);
      return { redemptions, read: await reasonOf(grants.read(`${SHARD}.unknown`)) };
    } finally {
      await connection.close();
      way.close();
    }
  }

  it('is asked on, whatever redemptions had no time left for a second look', async () => {
    const seen: unknown[] = [];
    while (seen.length < MOST_TRIES) {
      const { redemptions, read } = await tried();
      if (read === undefined && redemptions.every((reason) => reason === 'timeout')) return;
      seen.push({ redemptions, read });
    }
    expect(seen).toEqual([]);
  });
});
