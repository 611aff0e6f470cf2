// How often the map of a Cluster is asked for, and that replicas which lost one together do not ask in step.

import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MapRefresh } from '../../src/redis/map-refresh.ts';
import { openServers, type Servers } from '../../src/redis/servers.ts';
import { until } from '../until.ts';
import { connectTo, expectWithin, timed } from './connect.ts';
import { describeRedis, startCluster } from './servers.ts';

const SEED = { host: '127.0.0.1', port: 7000 };

describe('the map of a Cluster', () => {
  let open: { close(): void }[] = [];
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    for (const each of open) each.close();
    open = [];
    vi.useRealTimers();
  });

  /** When it was asked for, in milliseconds from now. */
  function refresh(isWell: () => boolean): { readonly times: readonly number[]; readonly doubt: () => void } {
    const [times, start] = [[] as number[], performance.now()];
    const refreshing = new MapRefresh({ ask: async () => void times.push(performance.now() - start), isWell });
    open.push({ close: () => refreshing.stop() });
    return { times, doubt: () => refreshing.doubt() };
  }

  /** One replica, of which no connection is ever made. */
  function strandedReplica(): readonly number[] {
    const times: number[] = [];
    const unreachable = () => {
      times.push(performance.now());
      const connect = () => Promise.reject(new Error('ECONNREFUSED'));
      return { on() {}, connect, disconnect() {} } as unknown as Redis;
    };
    const servers: Servers = openServers({
      target: { form: 'cluster', tls: false, seeds: [SEED] },
      clients: { to: unreachable, toPrimary: unreachable },
      clock: { now: () => performance.now() },
      onReady: () => {},
    });
    open.push(servers);
    // Requests go on meanwhile.
    const asking = setInterval(() => servers.doubt(), 50);
    open.push({ close: () => clearInterval(asking) });
    return times;
  }

  it('is asked for by replicas that lost the Cluster together when chance says, and never later than after 400 ms', async () => {
    const REPLICAS = 50;
    const replicas = Array.from({ length: REPLICAS }, strandedReplica);
    const start = performance.now();
    await vi.advanceTimersByTimeAsync(6000);
    const settled = replicas.map((times) => times.filter((time) => time > start + 1000));
    const inStep = new Map<number, number>();
    for (const time of settled.flat()) inStep.set(Math.floor(time / 10), (inStep.get(Math.floor(time / 10)) ?? 0) + 1);
    // On average it is two or three of them that ask in the same ten milliseconds.
    expect(Math.max(...inStep.values())).toBeLessThan(REPLICAS / 2);
    for (const times of settled) {
      const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      expect(Math.max(...waits)).toBeLessThanOrEqual(401);
      expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(100);
    }
    const asked = settled.flat().length / REPLICAS / 5;
    expect([asked > 4, asked < 6]).toEqual([true, true]);
  });

  it('is asked for every one to three seconds while all is well', async () => {
    const { times } = refresh(() => true);
    await vi.advanceTimersByTimeAsync(100_000);
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(waits.length).toBeGreaterThan(40);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(999);
    expect(Math.max(...waits)).toBeLessThanOrEqual(3001);
    expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(500);
  });

  it('is asked for within 50 ms when it is doubted, also when it has just been asked for, and no more often the longer', async () => {
    const { times, doubt } = refresh(() => true);
    for (let outage = 0; outage < 10; outage++) {
      await vi.advanceTimersByTimeAsync(10_000);
      const before = times.length;
      doubt();
      await vi.advanceTimersByTimeAsync(51);
      expect(times.length).toBe(before + 1);
    }
    const before = times.length;
    for (let passed = 0; passed < 10_000; passed += 10) {
      doubt();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(times.length - before).toBeLessThan(80);
  });

  it('is asked for when a primary is lost, though nobody has doubted it', async () => {
    let isWell = true;
    const { times } = refresh(() => isWell);
    await vi.advanceTimersByTimeAsync(10);
    isWell = false;
    await vi.advanceTimersByTimeAsync(251);
    expect(times.length).toBeGreaterThan(1);
  });

  it('is asked for no more once nobody wants it', async () => {
    const { times } = refresh(() => false);
    for (const each of open) each.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(times).toHaveLength(1);
  });
});

describeRedis('a Cluster that was silent altogether', () => {
  it('is used again within a second after it goes on', async () => {
    const cluster = await startCluster();
    const connection = await connectTo(cluster);
    const write = { name: 'testWrite', keys: 1, lua: "redis.call('SET', KEYS[1], 1)" };
    const isWritten = (shard: string) =>
      connection.run(write, [`{${shard}}:test`], []).then(
        () => true,
        () => false,
      );
    const shards = ['s000', 's001', 's002', 's003', 's004', 's005'];
    try {
      await expectWithin(1000, async () => {
        for (const server of cluster.primaries) server.pause();
        await until('it is missed', async () => !(await isWritten('s000')) && !connection.isUp);
        for (const server of cluster.primaries) server.resume();
        const back = async () => (await Promise.all(shards.map(isWritten))).every((done) => done);
        return (await timed(() => until('it is back', back))).milliseconds;
      });
    } finally {
      for (const server of cluster.primaries) server.resume();
      await connection.close();
      await cluster.stop();
    }
  });
});
