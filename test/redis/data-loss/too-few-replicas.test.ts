// A primary that has lost its replicas and refuses what writes (`min-replicas-to-write`): it is left where the Sentinels name
// another one by then, as after a fail-over that it has not noticed, and otherwise goes on answering what reads.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ConnectionOptions, RedisConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { redeemed } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { connectTo, timed, WRITE } from '../setup/connect.ts';
import { nameInstead, sentinelUrl, startLoneSentinel, startReplicated, timesAsked } from '../setup/replicated-redis.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function stopping<Server extends { stop(): Promise<void> }>(starting: Promise<Server>): Promise<Server> {
  const server = await starting;
  ended.push(() => server.stop());
  return server;
}

async function connected(server: { readonly url: string }, options: Omit<ConnectionOptions, 'target'> = {}) {
  const connection = await connectTo(server, options);
  ended.push(() => connection.close());
  let reconnects = 0;
  connection.onReconnect(() => {
    reconnects += 1;
  });
  return { connection, reconnects: () => reconnects };
}

/** Why a write is refused; undefined when it is not. */
async function refusal(connection: RedisConnection): Promise<string | undefined> {
  const { error } = await timed(() => connection.run({ script: WRITE, keys: ['{s000}:x'] }));
  if (error === undefined || error instanceof StoreUnavailableError) return error?.reason;
  throw error;
}

const isWritable = async (connection: RedisConnection) => (await refusal(connection)) === undefined;
const hasTooFew = async (connection: RedisConnection) => (await refusal(connection)) === 'too_few_replicas';

describeRedis('a primary that has too few replicas to write', () => {
  it('answers what reads all the while, heartbeats that it refuses being due, and writes once they recover', async () => {
    const redis = await stopping(startReplicated());
    const [primary, ...replicas] = redis.servers;
    let offset = 0;
    const { connection, reconnects } = await connected(redis, { clockOffset: () => offset });
    const { grants } = redisStores({ connection, keys });
    const watch = new ShardWatch({ connection, keys, issuer: 'https://id.example', clock: systemClock, observe() {} });
    ended.push(async () => watch.stop());
    await watch.start();
    const { grantId } = await redeemed(grants);
    await primary.command('CONFIG', 'SET', 'min-replicas-to-write', 1, 'min-replicas-max-lag', 1);
    for (const replica of replicas) replica.pause();
    await until('what writes is refused', () => hasTooFew(connection));
    offset = 20_000;
    await until('a heartbeat is refused', async () => {
      const { error } = await timed(() => watch.check());
      return error instanceof StoreUnavailableError && error.reason === 'too_few_replicas';
    });
    const before = reconnects();
    let inARow = 0;
    await until(
      'reads are answered for a few seconds, in which the watch looks by itself',
      async () => {
        const { error } = await timed(() => grants.read(grantId));
        inARow = error === undefined ? inARow + 1 : 0;
        return inARow === 150;
      },
      45_000,
    );
    expect(reconnects() - before).toBeLessThan(3);
    expect(await hasTooFew(connection)).toBe(true);
    for (const replica of replicas) replica.resume();
    await until('what writes is done', () => isWritable(connection));
  }, 120_000);

  it('is left for the one that the Sentinels name, who are not asked for each refusal', async () => {
    const settings = { 'min-replicas-to-write': 1 };
    const [old, other] = await Promise.all([stopping(startRedis({ settings })), stopping(startRedis())]);
    const sentinel = await stopping(startLoneSentinel(old));
    const { connection, reconnects } = await connected({ url: sentinelUrl([sentinel]) });
    const before = await timesAsked(sentinel);
    for (let refused = 0; refused < 100; refused++) {
      expect(await hasTooFew(connection)).toBe(true);
      await sleep(10);
    }
    expect(await timesAsked(sentinel)).toBeGreaterThan(before);
    expect((await timesAsked(sentinel)) - before).toBeLessThan(20);
    expect(reconnects()).toBe(0);
    await nameInstead(sentinel, other);
    await until('the other one is written to', () => isWritable(connection));
    expect(await other.command('GET', '{s000}:x')).toBe('1');
  });

  it('is left, too, where only what replicas have to acknowledge was refused', async () => {
    const [old, other] = await Promise.all([stopping(startRedis()), stopping(startRedis())]);
    const sentinel = await stopping(startLoneSentinel(old));
    const { connection, reconnects } = await connected(
      { url: sentinelUrl([sentinel]) },
      { acknowledgement: { replicas: 0, timeout: 100 } },
    );
    const write = () => connection.runDurably({ script: WRITE, keys: ['{s000}:x'] });
    await until('it is done', async () => (await timed(write)).error === undefined);
    await old.command('CONFIG', 'SET', 'min-replicas-to-write', 1);
    await nameInstead(sentinel, other);
    expect((await timed(write)).error).toMatchObject({ reason: 'too_few_replicas' });
    await until('what is shared leads elsewhere', () => reconnects() === 1);
    expect(await isWritable(connection)).toBe(true);
    expect(await other.command('GET', '{s000}:x')).toBe('1');
  });
});
