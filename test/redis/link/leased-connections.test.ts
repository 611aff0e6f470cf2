// Leases over a real server; the clock of the test says how much time a request has left.

import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { connectRedis } from '../../../src/redis/connection/connection.ts';
import { STOPWATCH } from '../../../src/redis/link/deadline.ts';
import { LeasedConnections } from '../../../src/redis/link/leased-connections.ts';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';
import { ServerLink } from '../../../src/redis/link/server-link.ts';
import { until } from '../../until.ts';
import { describeRedis, LONG, type RedisServer, startRedis } from '../setup/servers.ts';

/** How many connections are lent at a time, and how many requests may wait for one. */
const SIZE = 8;
const MOST_WAITING = 200;

describeRedis('a leased connection', () => {
  let server: RedisServer;
  let now: number;
  let connects: number;
  let onConnect: () => void;
  let leases: LeasedConnections;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(() => {
    now = 0;
    connects = 0;
    onConnect = () => {};
    leases = new LeasedConnections({
      clock: { now: () => now },
      connect() {
        connects += 1;
        const redis = new Redis({ port: server.port, lazyConnect: true, retryStrategy: null });
        redis.once('connect', () => onConnect());
        return redis;
      },
    });
  });
  afterEach(() => leases.clear());
  afterAll(() => server.stop());

  const LIMITS = { deadline: 10_000, needed: 3000 };
  const ping = (redis: Redis) => redis.ping();

  it('is given to work that has the time it needs', async () => {
    now = 7000;
    expect(await leases.use(LIMITS, ping)).toBe('PONG');
  });

  it('is not used when waiting for a lease has taken the time that the work needs', async () => {
    const ends: (() => void)[] = [];
    const turns = Array.from({ length: SIZE }, () =>
      leases.use(LIMITS, async () => {
        await new Promise<void>((resolve) => ends.push(resolve));
      }),
    );
    let begun = false;
    const waiting = leases.use(LIMITS, async () => {
      begun = true;
    });
    while (ends.length < SIZE) await new Promise((resolve) => setTimeout(resolve, 5));
    now = 7001;
    for (const end of ends) end();
    await expect(waiting).rejects.toMatchObject({ reason: 'too_many_in_flight' });
    expect(begun).toBe(false);
    await Promise.all(turns);
  });

  it('is waited for by so many, and one more is refused at once', async () => {
    let end = () => {};
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    let begun = 0;
    const turns = Array.from({ length: SIZE + MOST_WAITING }, () =>
      leases.use(LIMITS, async () => {
        begun += 1;
        await held;
      }),
    );
    await expect(leases.use(LIMITS, ping)).rejects.toMatchObject({ reason: 'too_many_in_flight' });
    await until('the first have theirs', () => begun === SIZE);
    end();
    await Promise.all(turns);
    expect([begun, connects]).toEqual([SIZE + MOST_WAITING, SIZE]);
    expect(await leases.use(LIMITS, ping)).toBe('PONG');
  });

  it('is given up with the connection to the primary, which may be another one by then', async () => {
    const connection = connectRedis({
      target: parseRedisUrl(server.url),
      acknowledgement: { replicas: 0, timeout: 50 },
    });
    const ids = async () => {
      const list = String(await server.command('CLIENT', 'LIST', 'TYPE', 'normal'));
      const ours = list.split('\n').filter((line) => line.includes('name=grantry'));
      return ours.map((line) => Number(/^id=(\d+)/.exec(line)?.[1])).sort((one, other) => one - other);
    };
    try {
      await connection.ready(15_000);
      await connection.runDurably({ script: { name: 'leaseProbe', keys: 1, lua: 'return 1' }, keys: ['any'] });
      const [shared, leased] = await ids();
      await server.command('CLIENT', 'KILL', 'ID', String(shared));
      await until('both are gone', async () => !(await ids()).some((id) => id === shared || id === leased));
      expect(leased).toBeGreaterThan(Number(shared));
    } finally {
      await connection.close();
    }
  });

  it('is not made while the one to the primary is lost, for who has waited: it could lead to the one that was replaced', async () => {
    const made: Redis[] = [];
    const link = new ServerLink({
      name: 'any',
      clock: STOPWATCH,
      onReady() {},
      connect(lasting) {
        const retryStrategy = lasting ? () => LONG : null;
        const redis = new Redis({ port: server.port, lazyConnect: !lasting, retryStrategy });
        made.push(redis);
        return redis;
      },
    });
    const limits = { deadline: STOPWATCH.now() + LONG, needed: 0 };
    try {
      await until('the primary is reached', () => link.isUp);
      let begun = 0;
      const blocked = (redis: Redis) => {
        begun += 1;
        return redis.blpop('nothing', 0);
      };
      const turns = Array.from({ length: SIZE }, () => link.sendLeased(blocked, limits));
      const waiting = link.sendLeased(ping, limits);
      const ended = Promise.allSettled([waiting, ...turns]);
      await until('all are lent', () => begun === SIZE);
      made[0]?.disconnect(true);
      await ended;
      await expect(waiting).rejects.toMatchObject({ reason: 'disconnected' });
      expect(made).toHaveLength(1 + SIZE);
    } finally {
      link.close();
    }
  });

  it('is not kept when all are given up while it is made: its server may have been replaced', async () => {
    onConnect = () => leases.clear();
    await expect(leases.use(LIMITS, ping)).rejects.toMatchObject({ reason: 'disconnected' });
    onConnect = () => {};
    expect(await leases.use(LIMITS, ping)).toBe('PONG');
    expect(connects).toBe(2);
    leases.clear();
    const others = async () =>
      String(await server.command('CLIENT', 'LIST', 'TYPE', 'normal'))
        .trim()
        .split('\n').length;
    await until('none but that of the test is left', async () => (await others()) === 1);
  });

  it('is kept for the next when making it has taken that time', async () => {
    onConnect = () => {
      now = 7001;
    };
    await expect(leases.use(LIMITS, ping)).rejects.toMatchObject({ reason: 'too_many_in_flight' });
    now = 0;
    expect(await leases.use(LIMITS, ping)).toBe('PONG');
    expect(connects).toBe(1);
  });
});
