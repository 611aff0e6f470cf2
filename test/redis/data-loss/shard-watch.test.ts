// What the watch over the shards makes of a Redis of which a part is unavailable, empty or old.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import type { ShardEvent } from '../../../src/redis/data-loss/shard-repair.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { until } from '../../until.ts';
import { connectTo, methodsOf, WRITE } from '../setup/connect.ts';
import { ownerOf, type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const ISSUER = 'https://id.example';
const keys = new RedisKeys('grantry:');
const MINUTE = 60_000;

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function oneServer(persistent = false): Promise<RedisServer> {
  // Nothing that was answered is lost with the process.
  const server = await startRedis({ persistent, settings: { appendfsync: 'always' } });
  ended.push(() => server.stop());
  return server;
}

async function connected(server: { readonly url: string }, options: Omit<ConnectionOptions, 'target'> = {}) {
  const connection = await connectTo(server, options);
  ended.push(() => connection.close());
  return connection;
}

/** A watch that checks when the test calls for it, or by itself once it is started. */
function watchOver(connection: ManagedConnection, clock = systemClock) {
  const events: ShardEvent[] = [];
  const { watermarks } = redisStores({ connection, keys });
  const observe = (event: ShardEvent) => void events.push(event);
  const watch = new ShardWatch({ connection, keys, issuer: ISSUER, clock, observe });
  ended.push(async () => watch.stop());
  const count = (wanted: ShardEvent['kind']) => events.filter(({ kind }) => kind === wanted).length;
  return { watch, watermarks, events, losses: () => count('found_empty'), reasserted: () => count('reasserted') };
}

/** A Redis whose time the test moves, and a watch that has started on it. */
async function watched(server: RedisServer) {
  let offset = 0;
  const connection = await connected(server, { clockOffset: () => offset });
  const watch = watchOver(connection);
  await watch.watch.start();
  return {
    ...watch,
    now: () => Date.now() + offset,
    pass(milliseconds: number) {
      offset += milliseconds;
    },
  };
}

/** Checks until every shard was observed, as a watch that was started does: on a busy machine a check may not be answered. */
async function looked(watch: ShardWatch): Promise<void> {
  await until('a check is answered', async () => {
    try {
      await watch.check();
      return true;
    } catch (error) {
      if (error instanceof StoreUnavailableError) return false;
      throw error;
    }
  });
}

const heartbeats = async (server: RedisServer): Promise<readonly number[]> => {
  const values = (await server.command('MGET', ...SHARDS.map((shard) => keys.marker(shard)))) as (string | null)[];
  return values.map((value) => Number(value?.split(' ')[0] ?? Number.NaN));
};

/** The lowest of the copies of the global watermark that there are in these shards. */
async function lowestWatermark(server: RedisServer, shards = SHARDS): Promise<number> {
  const times = await Promise.all(shards.map((shard) => server.command('GET', keys.globalWatermark(shard))));
  return Math.min(...times.map(Number));
}

describeRedis('the heartbeat of the shards', () => {
  it('is renewed after ten to twenty seconds, and not by every check', async () => {
    const server = await oneServer();
    const { pass, now } = await watched(server);
    const first = await heartbeats(server);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(await heartbeats(server)).toEqual(first);
    const before = now();
    pass(20_000);
    await until('it is renewed', async () => Math.min(...(await heartbeats(server))) > before);
  });

  it('detects a Redis that came back from an old file: everything made until then is revoked', async () => {
    const server = await oneServer();
    const { watch, pass, now, losses } = await watched(server);
    await server.command('SAVE');
    pass(2 * MINUTE);
    const renewed = now();
    await until('it is renewed', async () => Math.min(...(await heartbeats(server))) >= renewed);
    // A killed server may have written what it never answered, and the watch not know of it.
    await looked(watch);
    await server.kill();
    await server.start();
    await until('the watermark is raised', async () => (await lowestWatermark(server)) >= renewed);
    await until('it is reported', () => losses() === 2);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(losses()).toBe(2);
  });

  it('takes nothing for lost that came back with its file, however long that took', async () => {
    const server = await oneServer(true);
    const { pass, losses, watermarks } = await watched(server);
    const before = await watermarks.read('uid', undefined);
    await server.kill();
    pass(10 * MINUTE);
    await server.start();
    await until('it is renewed', async () => Math.min(...(await heartbeats(server))) > Date.now() + 9 * MINUTE);
    expect(losses()).toBe(1);
    expect(await watermarks.read('uid', undefined)).toBe(before);
  });

  it('leaves the last minute to the revocations that are applied again', async () => {
    const server = await oneServer();
    const { pass, now, losses } = await watched(server);
    await server.command('SAVE');
    pass(MINUTE / 2);
    const renewed = now();
    await until('it is renewed', async () => Math.min(...(await heartbeats(server))) >= renewed);
    await server.kill();
    await server.start();
    await until('it is renewed again', async () => Math.min(...(await heartbeats(server))) >= renewed);
    expect(losses()).toBe(1);
  });

  describe('seen for the first time by a replica of grantry that has just begun, older than a minute', () => {
    async function begunLater(server: RedisServer, restart: boolean) {
      const before = await connected(server);
      await looked(watchOver(before).watch);
      if (restart) {
        if (!(await hasFile(server))) await server.command('SAVE');
        await server.kill();
        await server.start();
      }
      const { watch, losses } = watchOver(await connected(server, { clockOffset: () => 2 * MINUTE }));
      await looked(watch);
      return losses();
    }
    const hasFile = async (server: RedisServer) =>
      String(await server.command('INFO', 'persistence')).includes('aof_enabled:1');

    it('counts as lost after a restart without an append-only file', async () => {
      expect(await begunLater(await oneServer(), true)).toBe(1);
    });

    it('does not after a restart with one, and not where the server has been there all the time', async () => {
      expect(await begunLater(await oneServer(true), true)).toBe(0);
      expect(await begunLater(await oneServer(), false)).toBe(0);
    });
  });

  it('is no later than the watermark when Redis comes back empty with its clock behind', async () => {
    const server = await oneServer();
    const { watch, pass, now } = await watched(server);
    pass(MINUTE);
    const renewed = now();
    await until('it is renewed', async () => Math.min(...(await heartbeats(server))) >= renewed);
    // A killed server may have written what it never answered, and the watch not know of it.
    await looked(watch);
    pass(-MINUTE / 2);
    await server.kill();
    await server.start();
    await until('the watermark is raised', async () => (await lowestWatermark(server)) >= renewed);
  });

  it('does not go back with the clock of another server, which would make it old for good', async () => {
    const server = await oneServer();
    const { pass, now, losses } = await watched(server);
    const before = now();
    pass(-5 * MINUTE);
    await server.command('FLUSHALL');
    await until('it is reported', () => losses() === 2);
    expect(Math.min(...(await heartbeats(server)))).toBeGreaterThan(before - MINUTE);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(losses()).toBe(2);
  });
});

describeRedis('the watch over the shards', () => {
  it('raises a copy of the global watermark that is behind to where the others are', async () => {
    const server = await oneServer();
    const { watch, watermarks } = watchOver(await connected(server));
    await watch.check();
    await watermarks.raise({ kind: 'global' }, Date.now());
    const highest = await lowestWatermark(server);
    await server.command('SET', keys.globalWatermark('007'), 1);
    await server.command('DEL', keys.globalWatermark('255'));
    await watch.check();
    expect(await lowestWatermark(server)).toBe(highest);
  });

  it('applies a revocation again soon, once, and reports nothing: its server may have been replaced before', async () => {
    const server = await oneServer();
    const { watch, watermarks, reasserted } = watchOver(await connected(server));
    await watch.check();
    await watermarks.raise({ kind: 'user', subject: 'usr_alice' }, 123);
    const key = keys.userWatermark('usr_alice');
    await server.command('DEL', key);
    await watch.check();
    expect(await server.command('GET', key)).toBe('123');
    await server.command('DEL', key);
    await watch.check();
    expect(await server.command('EXISTS', key)).toBe(0);
    expect(reasserted()).toBe(0);
    await server.command('DEBUG', 'CHANGE-REPL-ID');
    await watch.check();
    expect(await server.command('GET', key)).toBe('123');
    expect(reasserted()).toBe(1);
  });

  it('forgets revocations after a minute and a half in which all was well', async () => {
    const connection = await connected(await oneServer());
    const { watch, watermarks } = watchOver(connection);
    await watch.check();
    await watermarks.raise({ kind: 'user', subject: 'usr_alice' }, 123);
    await looked(watch);
    expect(await connection.replayRevocations('all')).toEqual({ applied: 1, errors: [] });
    const now = performance.now.bind(performance);
    const stopwatch = vi.spyOn(performance, 'now').mockImplementation(() => now() + 91_000);
    ended.push(async () => stopwatch.mockRestore());
    await looked(watch);
    expect(await connection.replayRevocations('all')).toEqual({ applied: 0, errors: [] });
  });

  it('looks no more once it is stopped, whatever comes back', async () => {
    const server = await oneServer();
    const real = await connected(server);
    let reconnected = () => {};
    const { watch } = watchOver({
      ...methodsOf(real),
      onReconnect(listener) {
        reconnected = listener;
        return () => {};
      },
    });
    await watch.start();
    watch.stop();
    await server.command('FLUSHALL');
    reconnected();
    // Sent after whatever a check would have sent.
    await real.info();
    await real.info();
    expect(await server.command('DBSIZE')).toBe(0);
  });

  it('leaves nothing with the connection once it is stopped', async () => {
    const real = await connected(await oneServer());
    const listeners = new Set<() => void>();
    const { watch } = watchOver({
      ...methodsOf(real),
      onReconnect(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    });
    await watch.start();
    expect(listeners.size).toBe(1);
    watch.stop();
    expect(listeners.size).toBe(0);
  });

  it('applies revocations once more when a connection was made while they were', async () => {
    const real = await connected(await oneServer());
    const asked: string[] = [];
    let reconnected = () => {};
    const connection: ManagedConnection = {
      ...methodsOf(real),
      onReconnect(listener) {
        reconnected = listener;
        return () => {};
      },
      async replayRevocations(which) {
        asked.push(which);
        const outcome = await real.replayRevocations(which);
        if (asked.length === 2) reconnected();
        return outcome;
      },
    };
    const { watch } = watchOver(connection);
    await watch.start();
    watch.stop();
    reconnected();
    for (let looks = 0; looks < 3; looks++) await watch.check();
    // The first check is on an empty Redis.
    expect(asked.filter((which) => which === 'all')).toHaveLength(3);
  });
});

describeRedis('the watch over the shards, where the clock of its process', () => {
  /** A new Redis, and a watch that has a clock of its own; it is this far from that of Redis. */
  async function skewed(offset: number) {
    const server = await oneServer();
    const skew = { offset };
    const clock = { now: () => Date.now() + skew.offset };
    const { watch, events } = watchOver(await connected(server), clock);
    const skews = () => events.flatMap((event) => (event.kind === 'clock_skew' ? event.milliseconds : []));
    return { server, skew, clock, watch, skews };
  }
  /** When a token of now is dated. */
  const dated = ({ now }: { now(): number }) => Math.floor(now() / 1000) * 1000;

  it.each([0, -1500])(
    'is %i ms ahead of that of Redis, has what is made after a start outlive the watermark',
    async (offset) => {
      const { server, clock, watch, skews } = await skewed(offset);
      await watch.start();
      expect(dated(clock)).toBeGreaterThan(await lowestWatermark(server));
      expect([skews(), watch.clockSkew]).toEqual([[], 0]);
    },
  );

  it('agrees with it, has that, too, where another replica has raised the watermark a moment before', async () => {
    const server = await oneServer();
    await looked(watchOver(await connected(server)).watch);
    await watchOver(await connected(server)).watch.start();
    expect(dated(systemClock)).toBeGreaterThan(await lowestWatermark(server));
  });

  it('is far behind, does not wait for it, and says so until it is right', async () => {
    const { server, skew, clock, watch, skews } = await skewed(-MINUTE);
    await watch.start();
    watch.stop();
    expect(clock.now()).toBeLessThan(await lowestWatermark(server));
    expect(watch.clockSkew).toBeLessThan(-MINUTE / 2);
    expect(skews()).toEqual([expect.any(Number)]);
    skew.offset = 0;
    await looked(watch);
    await looked(watch);
    expect([skews().slice(1), watch.clockSkew]).toEqual([[0], 0]);
  });

  it('is off by about as much as does no harm, says so once, until it is well within that', async () => {
    const { skew, watch, skews } = await skewed(-3000);
    await looked(watch);
    for (const offset of [-1900, -2100, -1900, -2100, -1900]) {
      skew.offset = offset;
      await looked(watch);
    }
    expect(skews()).toHaveLength(1);
    expect(watch.clockSkew).toBeLessThan(-1000);
    skew.offset = -500;
    await looked(watch);
    expect([skews().slice(1), watch.clockSkew]).toEqual([[0], 0]);
  });

  it('is far ahead, says so, too', async () => {
    const { watch, skews } = await skewed(MINUTE);
    await looked(watch);
    expect(watch.clockSkew).toBeGreaterThan(MINUTE / 2);
    expect(skews()).toHaveLength(1);
  });
});

describeRedis('the watch over the shards of a Cluster', () => {
  const shardsOf = (owner: number) => SHARDS.filter((shard) => ownerOf(keys.marker(shard)) === owner);
  const [LOST, EMPTIED, WHOLE] = [shardsOf(0), shardsOf(1), shardsOf(2)];

  async function aCluster(): Promise<RedisCluster> {
    const cluster = await startCluster();
    ended.push(() => cluster.stop());
    return cluster;
  }

  it('raises the watermark and restores the markers of an emptied primary while another one is unavailable', async () => {
    const cluster = await aCluster();
    const [lost, emptied, whole] = cluster.primaries;
    const { watch, watermarks, losses } = watchOver(await connected(cluster));
    await watch.start();
    await watermarks.raise({ kind: 'user', subject: 'usr_alice' }, 123);
    await lost.kill();
    const flushed = Date.now();
    await emptied.command('FLUSHALL');
    await until('it is reported', () => losses() === 2);
    const markers = await Promise.all(EMPTIED.map((shard) => emptied.command('EXISTS', keys.marker(shard))));
    expect(new Set(markers)).toEqual(new Set([1]));
    expect(await lowestWatermark(emptied, EMPTIED)).toBeGreaterThanOrEqual(flushed);
    expect(await lowestWatermark(whole, WHOLE)).toBeGreaterThanOrEqual(flushed);
    const raisedTo = await lowestWatermark(whole, WHOLE);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(await lowestWatermark(whole, WHOLE)).toBe(raisedTo);
    await lost.start();
    await until('it is raised there too', async () => (await lowestWatermark(lost, LOST).catch(() => 0)) >= raisedTo);
  });

  it('takes nothing for lost that another replica is about to begin', async () => {
    const real = await connected(await aCluster());
    const [begun, waits] = [SHARDS.length / 2, Promise.withResolvers<void>()];
    let [written, looked] = [0, 0];
    const first = watchOver({
      ...methodsOf(real),
      async run(action, deadline) {
        if (action.script.name === 'markerRestore' && ++written > begun) await waits.promise;
        return await real.run(action, deadline);
      },
    });
    const second = watchOver({
      ...methodsOf(real),
      async run(action, deadline) {
        const reply = await real.run(action, deadline);
        if (action.script.name === 'markerLook') looked += 1;
        return reply;
      },
    });
    const beginning = first.watch.start();
    await until('it writes the last markers', () => written === SHARDS.length);
    const joining = second.watch.start();
    await until('the other one has looked', () => looked === SHARDS.length);
    waits.resolve();
    await Promise.all([beginning, joining]);
    expect([first.losses(), second.losses()]).toEqual([1, 0]);
  });

  it('applies the revocations again that it can, and the others once their primary recovers', async () => {
    const cluster = await aCluster();
    const [lost] = cluster.primaries;
    const connection = await connected(cluster);
    const all = SHARDS.map((shard) => `{s${shard}}:test`);
    for (const key of all) connection.recordForReplay({ script: WRITE, keys: [key] });
    await lost.kill();
    const first = await connection.replayRevocations('all');
    expect(first.applied).toBe(EMPTIED.length + WHOLE.length);
    expect(first.errors).toHaveLength(LOST.length);
    await lost.start();
    await connection.ready(10_000);
    await until('the rest is applied', async () => (await connection.replayRevocations('pending')).errors.length === 0);
    expect(await lost.command('DBSIZE')).toBe(LOST.length);
    expect(await connection.replayRevocations('pending')).toEqual({ applied: 0, errors: [] });
  });

  it('raises the watermark to the latest time of any primary', async () => {
    const cluster = await aCluster();
    const [, emptied] = cluster.primaries;
    const real = await connected(cluster);
    // The clock of one primary, which loses nothing, is ahead.
    const connection: ManagedConnection = {
      ...methodsOf(real),
      async run(action, deadline) {
        const reply = await real.run(action, deadline);
        const isAhead =
          action.script.name === 'markerLook' && WHOLE.some((shard) => action.keys[0] === keys.marker(shard));
        return isAhead && Array.isArray(reply) ? [String(Number(reply[0]) + 5000), ...reply.slice(1)] : reply;
      },
    };
    const { watch } = watchOver(connection);
    await watch.check();
    const flushed = Date.now();
    await emptied.command('FLUSHALL');
    await watch.check();
    expect(await lowestWatermark(emptied, EMPTIED)).toBeGreaterThanOrEqual(flushed + 5000);
  });
});
