// A primary that the Sentinels have replaced and could not demote, as where it can be reached from some machines only: nothing
// fails there, and what is still written to it is lost.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from '../../../src/redis/connection/connection.ts';
import { until } from '../../until.ts';
import { connectTo, expectWithin, isAcknowledged, timed, WRITE } from '../setup/connect.ts';
import { nameInstead, sentinelUrl, startLoneSentinel, timesAsked } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const KEY = '{s000}:x';

describeRedis('a primary that was replaced without its knowledge', () => {
  let old: RedisServer;
  let other: RedisServer;
  const ended: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    [old, other] = await Promise.all([startRedis(), startRedis()]);
    ended.push(
      () => old.stop(),
      () => other.stop(),
    );
  });
  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });

  /** @param epoch of the fail-over by which it knows what it names, which is the old one unless given */
  async function aSentinel(epoch = 0, named = old) {
    const sentinel = await startLoneSentinel(named, epoch);
    ended.push(() => sentinel.stop());
    return {
      port: sentinel.port,
      pause: () => sentinel.pause(),
      resume: () => sentinel.resume(),
      /** From now on, by an epoch of 0. */
      names: (server: RedisServer) => nameInstead(sentinel, server),
      /** Until it was asked so often again. @param meanwhile done over and over */
      async asked(times: number, meanwhile: () => Promise<unknown> = async () => {}) {
        const before = await timesAsked(sentinel);
        await until('the Sentinel is asked', async () => {
          await meanwhile();
          return (await timesAsked(sentinel)) >= before + times;
        });
      },
    };
  }

  async function connected(
    sentinels: readonly { readonly port: number }[],
    options: Omit<ConnectionOptions, 'target'> = {},
  ) {
    const connection = await connectTo({ url: sentinelUrl(sentinels) }, options);
    ended.push(() => connection.close());
    let reconnects = 0;
    connection.onReconnect(() => {
      reconnects += 1;
    });
    return { connection, reconnects: () => reconnects };
  }

  const written = async () => [await old.command('EXISTS', KEY), await other.command('EXISTS', KEY)];

  it('is left, though nothing fails there', async () => {
    const sentinel = await aSentinel();
    const { connection, reconnects } = await connected([sentinel]);
    await sentinel.names(other);
    await until('it is left', () => reconnects() === 1);
    await connection.run({ script: WRITE, keys: [KEY] });
    expect(await written()).toEqual([0, 1]);
  });

  it('is left as soon as a Sentinel answers that knows of a later fail-over', async () => {
    const [behind, sentinel] = [await aSentinel(3), await aSentinel(7, other)];
    sentinel.pause();
    const { reconnects } = await connected([behind, sentinel]);
    sentinel.resume();
    await until('it is left', () => reconnects() === 1);
  });

  it('is left at once where replicas do not acknowledge what is written to it', async () => {
    const sentinel = await aSentinel();
    const { connection, reconnects } = await connected([sentinel], { acknowledgement: { replicas: 1, timeout: 20 } });
    let named = old;
    await expectWithin(950, async () => {
      // It is not asked again by itself before a second is over.
      await sentinel.asked(1);
      const before = reconnects();
      named = named === old ? other : old;
      await sentinel.names(named);
      expect(await isAcknowledged(connection, KEY)).toBe(false);
      const { error, milliseconds } = await timed(() => until('it is left', () => reconnects() > before));
      if (error !== undefined) throw error;
      return milliseconds;
    });
  });

  describe('is not left for one of before it, which a Sentinel names that was cut off', () => {
    it('and is asked alone', async () => {
      const sentinel = await aSentinel(7);
      const { connection, reconnects } = await connected([sentinel]);
      await sentinel.names(other);
      await sentinel.asked(2);
      await connection.run({ script: WRITE, keys: [KEY] });
      expect([reconnects(), ...(await written())]).toEqual([0, 1, 0]);
    });

    it('and is the only one to answer when what has to be acknowledged is written', async () => {
      const [cutOff, sentinel] = [await aSentinel(3), await aSentinel(7)];
      await cutOff.names(other);
      const { connection } = await connected([cutOff, sentinel], { acknowledgement: { replicas: 0, timeout: 100 } });
      sentinel.pause();
      await connection.runDurably({ script: WRITE, keys: [KEY] });
      sentinel.resume();
      expect(await written()).toEqual([1, 0]);
    });

    it('and is the only one to answer, as at first, before the others could report the fail-over', async () => {
      const [cutOff, sentinel] = [await aSentinel(), await aSentinel(7)];
      sentinel.pause();
      const { reconnects } = await connected([cutOff, sentinel]);
      sentinel.resume();
      await sentinel.asked(2);
      sentinel.pause();
      await cutOff.names(other);
      // Had it been left, the reconnect would have asked the second time.
      await cutOff.asked(3);
      sentinel.resume();
      expect(reconnects()).toBe(0);
    });
  });

  it('is left for what most Sentinels name, whichever answers first, where none reports a fail-over', async () => {
    const sentinels = await Promise.all([aSentinel(), aSentinel(), aSentinel()]);
    const { connection, reconnects } = await connected(sentinels, { acknowledgement: { replicas: 1, timeout: 1 } });
    const [one, another] = sentinels;
    await one.names(other);
    // What is not acknowledged has them asked soon again.
    await one.asked(12, () => isAcknowledged(connection, KEY));
    expect(reconnects()).toBe(0);
    await another.names(other);
    await until('it is left', () => reconnects() === 1);
  });
});
