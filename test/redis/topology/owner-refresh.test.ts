// How often the map of a Cluster is asked for, and that replicas which lost one together do not ask in step.

import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import type { RedisTarget } from '../../../src/redis/link/redis-url.ts';
import { OwnerRefresh } from '../../../src/redis/topology/owner-refresh.ts';
import { openServers, type Servers } from '../../../src/redis/topology/servers.ts';
import { slotOf } from '../../../src/redis/topology/slot.ts';
import { succeeds, until } from '../../until.ts';
import { connectTo, expectWithin, timed, WRITE } from '../setup/connect.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { describeRedis } from '../setup/servers.ts';

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
  function refresh(isHealthy: () => boolean): { readonly times: readonly number[]; readonly suspectStale: () => void } {
    const [times, start] = [[] as number[], performance.now()];
    const refreshing = new OwnerRefresh({ ask: async () => void times.push(performance.now() - start), isHealthy });
    open.push({ close: () => refreshing.stop() });
    return { times, suspectStale: () => refreshing.suspectStale() };
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
      connections: { to: unreachable, toPrimary: unreachable, verifyPrimary: async () => {} },
      clock: { now: () => performance.now() },
      onReady: () => {},
    });
    open.push(servers);
    // Requests go on meanwhile.
    const asking = setInterval(() => servers.suspectStale(), 50);
    open.push({ close: () => clearInterval(asking) });
    return times;
  }

  it.each<RedisTarget>([
    { form: 'cluster', tls: false, seeds: [SEED] },
    { form: 'sentinel', tls: false, sentinels: [SEED], primary: 'any', database: 0 },
  ])('is asked for no more once the connection is closed: $form', async (target) => {
    const silent = () => ({ on() {}, connect: async () => {}, disconnect() {} }) as unknown as Redis;
    const connections = { to: silent, toPrimary: silent, verifyPrimary: async () => {} };
    const servers = openServers({ target, connections, clock: { now: () => performance.now() }, onReady: () => {} });
    await vi.advanceTimersByTimeAsync(5000);
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    servers.close();
    await vi.advanceTimersByTimeAsync(5000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not asked for too often where each time costs a new connection, whatever fails: a primary of Sentinels', async () => {
    const silent = () => ({ on() {}, connect: async () => {}, disconnect() {} }) as unknown as Redis;
    const times: number[] = [];
    const verifyPrimary = async () => void times.push(performance.now());
    const servers = openServers({
      target: { form: 'sentinel', tls: false, sentinels: [SEED], primary: 'any', database: 0 },
      connections: { to: silent, toPrimary: silent, verifyPrimary },
      onReady: () => {},
      clock: { now: () => performance.now() },
    });
    open.push(servers);
    for (let passed = 0; passed < 10_000; passed += 10) {
      servers.suspectStale();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(times.length).toBeGreaterThan(15);
    expect(times.length).toBeLessThanOrEqual(21);
  });

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
    const { times, suspectStale } = refresh(() => true);
    for (let outage = 0; outage < 10; outage++) {
      await vi.advanceTimersByTimeAsync(10_000);
      const before = times.length;
      suspectStale();
      await vi.advanceTimersByTimeAsync(51);
      expect(times.length).toBe(before + 1);
    }
    const before = times.length;
    for (let passed = 0; passed < 10_000; passed += 10) {
      suspectStale();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(times.length - before).toBeLessThan(80);
  });

  it('is asked for when a primary is lost, though it was not suspected to be stale', async () => {
    let isHealthy = true;
    const { times } = refresh(() => isHealthy);
    await vi.advanceTimersByTimeAsync(10);
    isHealthy = false;
    await vi.advanceTimersByTimeAsync(251);
    expect(times.length).toBeGreaterThan(1);
  });

  it('is asked for no more once it is stopped', async () => {
    const { times } = refresh(() => false);
    for (const each of open) each.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(times).toHaveLength(1);
  });
});

describeRedis('a Cluster of which every primary is up', () => {
  let cluster: RedisCluster;
  let connection: ManagedConnection;
  beforeAll(async () => {
    cluster = await startCluster();
    connection = await connectTo(cluster);
  });
  afterAll(async () => {
    await connection.close();
    await cluster.stop();
  });

  /** How often its map was asked for. */
  async function timesAsked(): Promise<number> {
    const views = await Promise.all(cluster.primaries.map((node) => node.command('INFO', 'commandstats')));
    return views.reduce<number>(
      (sum, view) => sum + Number(/cluster\|slots:calls=(\d+)/.exec(String(view))?.[1] ?? 0),
      0,
    );
  }

  async function untilAskedAgain(before: number): Promise<void> {
    await until('the map is asked for', async () => (await timesAsked()) > before);
  }

  it('is asked for its map soon after it refused a request', async () => {
    const key = '{s000}:test';
    // Its owner has other slots and stays what it is: only requests can find out.
    for (const node of cluster.primaries) await node.command('CLUSTER', 'DELSLOTS', slotOf(key));
    await expectWithin(600, async () => {
      await untilAskedAgain(await timesAsked());
      // All is well, and the next time is a second away at least.
      const before = await timesAsked();
      await expect(connection.run({ script: WRITE, keys: [key] })).rejects.toBeInstanceOf(StoreUnavailableError);
      const { error, milliseconds } = await timed(() => untilAskedAgain(before));
      expect([error, connection.isUp]).toEqual([undefined, true]);
      return milliseconds;
    });
  });
});

describeRedis('a Cluster that was silent altogether', () => {
  it('is used again within a second after it goes on', async () => {
    const cluster = await startCluster();
    const connection = await connectTo(cluster);
    const isWritten = (shard: string) => succeeds(connection.run({ script: WRITE, keys: [`{${shard}}:test`] }));
    const shards = ['s000', 's001', 's002', 's003', 's004', 's005'];
    try {
      await expectWithin(1000, async () => {
        for (const server of cluster.primaries) server.pause();
        await until('it is missed', async () => !(await isWritten('s000')) && !connection.isUp);
        for (const server of cluster.primaries) server.resume();
        const back = async () => (await Promise.all(shards.map(isWritten))).every((done) => done);
        return (await timed(() => until('it recovers', back))).milliseconds;
      });
    } finally {
      for (const server of cluster.primaries) server.resume();
      await connection.close();
      await cluster.stop();
    }
  });
});
