// Sentinels that do not say the same, one of them nothing that makes sense, and one that names a replica: which of
// them the connection follows.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { until } from '../../until.ts';
import { connectTo, portOf } from '../setup/connect.ts';
import { PRIMARY_NAME, sentinelUrl, startLoneSentinel } from '../setup/replicated-redis.ts';
import { inStep } from '../setup/replication.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

/** A server that calls itself a Sentinel, names this primary, and reports this state of it. */
async function startNonsense(port: number, state: readonly string[], answered: () => void): Promise<Server> {
  const list = (words: readonly string[]) =>
    `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const command of String(chunk).split(/(?=\*\d+\r\n)/)) {
        if (/GET-MASTER-ADDR-BY-NAME/i.test(command)) socket.write(list(['127.0.0.1', `${port}`]));
        else if (/MASTER/i.test(command)) socket.write(list(state), answered);
        else socket.write('+OK\r\n');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describeRedis('of several Sentinels, one that answers first', () => {
  let primary: RedisServer;
  let other: RedisServer;
  let sentinel: RedisServer;
  beforeEach(async () => {
    [primary, other] = await Promise.all([startRedis(), startRedis()]);
    sentinel = await startLoneSentinel(primary, 7);
  });
  afterEach(async () => {
    await Promise.all([sentinel, primary, other].map((server) => server.stop()));
  });

  it.each([
    ['nonsense', ['config-epoch', 'nonsense']],
    ['nothing', ['config-epoch']],
    ['no number that a fail-over has', ['config-epoch', 'Infinity']],
    ['no epoch at all', ['name', PRIMARY_NAME]],
  ])('is not followed where it says when its fail-over was by %s', async (_what, state) => {
    // In time to count, and no sooner.
    const nonsense = await startNonsense(other.port, state, () => setTimeout(() => sentinel.resume(), 20));
    const { port } = nonsense.address() as AddressInfo;
    try {
      // A busy machine may have the true one answer too late.
      await until('the true one is followed', async () => {
        sentinel.pause();
        const connection = await connectTo({ url: sentinelUrl([{ port }, sentinel]) });
        return (await portOf(connection).finally(() => connection.close())) === primary.port;
      });
    } finally {
      nonsense.close();
    }
  });
});

describeRedis('a replica in step that a Sentinel calls the primary', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let sentinel: RedisServer;
  beforeEach(async () => {
    primary = await startRedis({ settings: { 'repl-diskless-sync-delay': 0 } });
    replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
    sentinel = await startLoneSentinel(replica);
    await inStep(primary, [replica]);
  });
  afterEach(async () => {
    await Promise.all([sentinel, replica, primary].map((server) => server.stop()));
  });

  it('is taken for one when it is one in its own eyes, and not before', async () => {
    const url = sentinelUrl([sentinel]);
    await expect(connectTo({ url }, {}, 1000)).rejects.toBeInstanceOf(StoreUnavailableError);
    await replica.command('REPLICAOF', 'NO', 'ONE');
    const connection = await connectTo({ url });
    const port = await portOf(connection).finally(() => connection.close());
    expect(port).toBe(replica.port);
  });
});
