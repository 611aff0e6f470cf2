import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { unavailableReason } from '../../../src/redis/link/redis-errors.ts';
import type { Script } from '../../../src/redis/scripts/script.ts';
import { slotOf } from '../../../src/redis/topology/slot.ts';
import { until } from '../../until.ts';
import { connectTo, expectWithin, isAcknowledged, portOf, timed, WRITE } from '../setup/connect.ts';
import { failOver } from '../setup/fail-over.ts';
import { ownerOf, type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { type ReplicatedRedis, sentinelUrl, startLoneSentinel, startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, LONG, type RedisServer, startRedis } from '../setup/servers.ts';

const SET: Script = { name: 'testSet', keys: 1, lua: "return redis.call('SET', KEYS[1], ARGV[2])" };
const ADD: Script = { name: 'testAdd', keys: 1, lua: "return redis.call('INCR', KEYS[1])" };
const ADD_TO_ONE: Script = { ...ADD, name: 'testAddToOne', keys: 2 };
const COUNT: Script = { name: 'testCount', keys: 1, lua: "return redis.call('HINCRBY', KEYS[1], ARGV[2], 1)" };
const OFFSET: Script = { name: 'testOffset', keys: 0, lua: 'return ARGV[1]' };
const FAULTY: Script = { name: 'testFaulty', keys: 0, lua: "return redis.call('NOSUCHCOMMAND')" };

/** A key of each of the 256 shards. */
const KEYS = Array.from({ length: 256 }, (_, i) => `{s${String(i).padStart(3, '0')}}:x`);

let open: ManagedConnection[] = [];
afterEach(async () => {
  for (const connection of open) await connection.close();
  open = [];
});
const connect: typeof connectTo = async (...options) => {
  const connection = await connectTo(...options);
  open.push(connection);
  return connection;
};

/** Why Redis was not available. */
function reasonOf({ error }: { readonly error?: unknown }): string | undefined {
  return error instanceof StoreUnavailableError ? unavailableReason(error.cause) : undefined;
}

/** How many connections of ours a server has. */
async function connectionsTo(server: RedisServer): Promise<number> {
  return String(await server.command('CLIENT', 'LIST')).split(' name=grantry ').length - 1;
}

/** How long a server is silent until it is replaced, where a test wants that; milliseconds. */
const SHORT = 1000;

/** How long it may take on a busy machine until another server has taken over, in milliseconds. */
const FAIL_OVER = 45_000;

/** Asks every 10 ms until an answer comes. @returns the milliseconds that took; every refusal in between was right and in time */
async function untilAnswered(connection: ManagedConnection, limit = FAIL_OVER): Promise<number> {
  const { error, milliseconds } = await timed(() => answered(connection, limit));
  if (error !== undefined) throw error;
  return milliseconds;
}

async function answered(connection: ManagedConnection, limit: number): Promise<void> {
  for (const end = performance.now() + limit; ; await sleep(10)) {
    const { error, milliseconds } = await timed(() => connection.run({ script: WRITE, keys: [KEYS[0] ?? ''] }));
    if (error === undefined) return;
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(milliseconds).toBeLessThan(1000);
    if (performance.now() > end) throw new Error(`no answer within ${limit} ms`, { cause: error });
  }
}

describeRedis('a connection to one Redis server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => await server.stop());

  it('runs a script with the clock offset before its own arguments', async () => {
    const connection = await connect(server, { clockOffset: () => 1234 });
    await connection.run({ script: SET, keys: ['{s000}:x'], args: ['value'] });
    expect(await server.command('GET', '{s000}:x')).toBe('value');
    expect(await connection.run({ script: OFFSET, keys: [] })).toBe('1234');
  });

  it('sends the text again where Redis has forgotten it', async () => {
    const connection = await connect(server);
    await connection.run({ script: OFFSET, keys: [] });
    await server.command('SCRIPT', 'FLUSH');
    expect(await connection.run({ script: OFFSET, keys: [] })).toBe('0');
  });

  it('sends what many ask for at the same time in one piece', async () => {
    const connection = await connect(server);
    await connection.run({ script: ADD, keys: ['x'] });
    const reads = async () =>
      Number(/total_reads_processed:(\d+)/.exec(String(await server.command('INFO', 'stats')))?.[1]);
    const before = await reads();
    await Promise.all(Array.from({ length: 100 }, () => connection.run({ script: ADD, keys: ['x'] })));
    // The INFO itself is one of them.
    expect((await reads()) - before).toBeLessThan(10);
  });

  it('does not call a defect of a script an outage', async () => {
    const connection = await connect(server);
    await expect(connection.run({ script: FAULTY, keys: [] })).rejects.not.toBeInstanceOf(StoreUnavailableError);
    expect(connection.isUp).toBe(true);
  });

  it('answers a full memory with an outage, not with a defect, and goes on when there is room', async () => {
    const connection = await connect(server);
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    const { error } = await timed(() => connection.run({ script: WRITE, keys: ['{s000}:y'] }));
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(await connection.run({ script: WRITE, keys: ['{s000}:y'] })).toBe('OK');
  });

  it('comes back after its connection was cut', async () => {
    const connection = await connect(server);
    await expectWithin(1000, async () => {
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      return await untilAnswered(connection);
    });
  });

  it('refuses in time while the server is unavailable and answers within a second once it recovers', async () => {
    const connection = await connect(server);
    await expectWithin(1000, async () => {
      await server.kill();
      for (let i = 0; i < 50; i++) {
        const { error, milliseconds } = await timed(() => connection.run({ script: ADD, keys: ['{s000}:n'] }));
        expect(error).toBeInstanceOf(StoreUnavailableError);
        expect(milliseconds).toBeLessThan(1000);
        await sleep(10);
      }
      expect(connection.isUp).toBe(false);
      await server.start();
      return await untilAnswered(connection);
    });
  });

  it('finds a server that was too slow for all requests by asking for its INFO, where nothing else is sent', async () => {
    const connection = await connect(server);
    await until('nothing more is sent', async () => {
      // Too long for a request, too short for its socket to be given up.
      await server.command('CLIENT', 'PAUSE', 900);
      await Promise.allSettled([1, 2, 3].map(() => connection.info()));
      return !connection.isUp;
    });
    await until('it is up', async () => {
      await connection.info().catch(() => {});
      return connection.isUp;
    });
  });

  it('refuses in time while the server is paused, fails fast soon, and answers within a second after', async () => {
    const connection = await connect(server);
    server.pause();
    const first = await Promise.all(
      Array.from({ length: 100 }, () => timed(() => connection.run({ script: ADD, keys: ['{s000}:n'] }))),
    );
    for (const { error, milliseconds } of first) {
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(milliseconds).toBeLessThan(1000);
    }
    const later = await Promise.all(
      Array.from({ length: 100 }, () => timed(() => connection.run({ script: ADD, keys: ['{s000}:n'] }))),
    );
    const atOnce = later.map(reasonOf).filter((reason) => reason === 'circuit_open' || reason === 'disconnected');
    expect(atOnce.length).toBeGreaterThanOrEqual(99);
    await expectWithin(1000, async () => {
      server.pause();
      await sleep(1500);
      server.resume();
      return await untilAnswered(connection);
    });
  });

  it('never runs a script twice, whatever happens to the connection', async () => {
    const connection = await connect(server);
    let answered = 0;
    let sent = 0;
    const isMixed = () => 0 < answered && answered < sent;
    for (let round = 0; round < 20 || (!isMixed() && round < 200); round++) {
      const requests = Array.from({ length: 20 }, async () => {
        sent += 1;
        const { error } = await timed(() => connection.run({ script: COUNT, keys: ['{s000}:once'], args: [sent] }));
        if (error === undefined) answered += 1;
      });
      // Before they are there, among them, or behind them all.
      if (round % 3 > 0) await sleep(round % 3);
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await Promise.all(requests);
      await untilAnswered(connection);
    }
    const runs = ((await server.command('HVALS', '{s000}:once')) as string[]).map(Number);
    expect(new Set(runs)).toEqual(new Set([1]));
    expect(runs.length).toBeGreaterThanOrEqual(answered);
    expect(isMixed()).toBe(true);
  });

  it('reports each connect as long as there is a listener', async () => {
    const connection = await connect(server);
    const told = { former: 0, latter: 0 };
    const forget = connection.onReconnect(() => told.former++);
    connection.onReconnect(() => told.latter++);
    for (const count of [1, 2]) {
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await until('it is reported', () => told.latter >= count);
      forget();
    }
    expect(told.former).toBe(1);
  });

  it('keeps no more than a bounded number of requests for a silent server', async () => {
    const connection = await connect(server);
    server.pause();
    const refused = await Promise.all(
      Array.from({ length: 3000 }, () => timed(() => connection.run({ script: ADD, keys: ['{s000}:n'] }))),
    );
    server.resume();
    const atOnce = refused.map(reasonOf).filter((reason) => reason === 'too_many_in_flight');
    expect(atOnce).toHaveLength(2000);
    await untilAnswered(connection);
  });

  it('does not wait for a server that is not there', async () => {
    await expect(connectTo({ url: 'redis://127.0.0.1:1' }, {}, 300)).rejects.toBeInstanceOf(StoreUnavailableError);
  });
});

describeRedis('a connection to a primary that Sentinels watch', () => {
  let redis: ReplicatedRedis;
  beforeAll(async () => {
    redis = await startReplicated();
  });
  afterAll(async () => await redis.stop());

  it('does not report a write as acknowledged that a stopped replica has not got', async () => {
    const connection = await connect(redis, { acknowledgement: { replicas: 2, timeout: 200 } });
    await until('all acknowledge', () => isAcknowledged(connection, '{s000}:x'));
    redis.servers[1].pause();
    const { value, milliseconds } = await timed(() => connection.runDurably({ script: WRITE, keys: ['{s000}:x'] }));
    expect(value).toEqual({ reply: 'OK', acknowledged: false });
    expect(milliseconds).toBeLessThan(1000);
    const many = await Promise.all(
      Array.from({ length: 50 }, () => timed(() => connection.runDurably({ script: WRITE, keys: ['{s000}:x'] }))),
    );
    expect(many.filter(({ milliseconds }) => milliseconds >= 1000)).toEqual([]);
    expect(await connection.run({ script: WRITE, keys: ['{s000}:x'] })).toBe('OK');
    redis.servers[1].resume();
    await until('the replica has caught up', () => isAcknowledged(connection, '{s000}:x'));
  });

  it('follows a fail-over after the primary fell silent, and an unavailable Sentinel does not matter', async () => {
    const connection = await connect(redis);
    const before = await redis.primary();
    await redis.setPatience(SHORT);
    await redis.sentinels[0].kill();
    before.pause();
    await untilAnswered(connection);
    before.resume();
    await redis.sentinels[0].start();
    await redis.setPatience(LONG);
    await until('every Sentinel knows', async () => (await redis.primary()) !== before, FAIL_OVER);
    await connection.run({ script: WRITE, keys: ['{s000}:after'] });
    expect(await (await redis.primary()).command('GET', '{s000}:after')).toBe('1');
  }, 120_000);

  it('follows a fail-over after the primary died', async () => {
    const connection = await connect(redis, { acknowledgement: { replicas: 1, timeout: 200 } });
    await connection.runDurably({ script: WRITE, keys: ['{s000}:x'] });
    const before = await redis.primary();
    await redis.setPatience(SHORT);
    await before.kill();
    await untilAnswered(connection);
    await redis.setPatience(LONG);
    await until('every Sentinel knows', async () => (await redis.primary()) !== before, FAIL_OVER);
    expect((await connection.runDurably({ script: WRITE, keys: ['{s000}:x'] })).reply).toBe('OK');
    await before.start();
  }, 120_000);

  it('does not follow a Sentinel that does not know the last fail-over, unless there is no other', async () => {
    // Servers of its own: one that died and came back takes long to become a replica again.
    const followed = await startReplicated();
    await failOver(followed, []);
    const old = await startRedis();
    const stale = await startLoneSentinel(old);
    try {
      const primary = await followed.primary();
      const asked = { url: sentinelUrl([stale, ...followed.sentinels]) };
      for (let times = 0; times < 5; times++) {
        expect(await portOf(await connect(asked))).toBe(primary.port);
      }
      const alone = { url: sentinelUrl([stale]) };
      expect(await portOf(await connect(alone))).toBe(old.port);
    } finally {
      await stale.stop();
      await old.stop();
      await followed.stop();
    }
  }, 120_000);
});

/** The slots of a node of a Cluster, as another one knows them. */
async function slotsOf(id: string, asked: RedisServer): Promise<string> {
  const nodes = String(await asked.command('CLUSTER', 'NODES')).split('\n');
  const [line = ''] = nodes.filter((each) => each.startsWith(id));
  return line.split(' ').slice(8).join(' ');
}

describeRedis('a connection to a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicated: true });
  });
  afterAll(async () => await cluster.stop());

  it('runs each script where its keys are', async () => {
    const connection = await connect(cluster);
    for (const key of KEYS) expect(await connection.run({ script: WRITE, keys: [key] })).toBe('OK');
    const sizes = await Promise.all(cluster.primaries.map((node) => node.command('DBSIZE')));
    expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBe(KEYS.length);
    expect(sizes.every((size) => Number(size) > 0)).toBe(true);
  });

  it('waits for the replica of the owner', async () => {
    const connection = await connect(cluster, { acknowledgement: { replicas: 1, timeout: 300 } });
    // No more at a time than there are leased connections: this is about who acknowledges, not about the queue.
    for (let from = 0; from < KEYS.length; from += 8) {
      const some = KEYS.slice(from, from + 8);
      await Promise.all(some.map((key) => until(`${key} is acknowledged`, () => isAcknowledged(connection, key))));
    }
  });

  describe.each([
    ['their address', 'ip', '{s000}'],
    ['their port alone', 'unknown-endpoint', '{s001}'],
    ['a host name, which they have not', 'hostname', '{s002}'],
  ])('whose servers are named by %s', (_by, type, shard) => {
    const setType = async (named: string) => {
      const nodes = [...cluster.primaries, ...cluster.replicas];
      for (const node of nodes) await node.command('CONFIG', 'SET', 'cluster-preferred-endpoint-type', named);
    };
    beforeAll(() => setType(type));
    afterAll(() => setType('ip'));

    it('follows a slot from one primary to another, also while it is on its way', async () => {
      const connection = await connect(cluster, { acknowledgement: { replicas: 1, timeout: 300 } });
      const names = connection.primaries.map(({ name }) => name);
      expect(names.sort()).toEqual(cluster.primaries.map(({ port }) => `127.0.0.1:${port}`).sort());
      const key = `${shard}:new`;
      const slot = slotOf(key);
      const owner = ownerOf(key);
      const [from, to] = [cluster.primaries[owner], cluster.primaries[(owner + 1) % 3]];
      if (from === undefined || to === undefined) throw new Error('no three primaries');
      const [fromId, toId] = [await from.command('CLUSTER', 'MYID'), await to.command('CLUSTER', 'MYID')].map(String);
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId ?? '');
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId ?? '');
      expect(await connection.run({ script: ADD, keys: [key] })).toBe(1);
      expect(await connection.runDurably({ script: ADD, keys: [key] })).toMatchObject({ reply: 2 });
      // Of several keys, none may be on its way or missing.
      const isMoving = await timed(() => connection.run({ script: ADD_TO_ONE, keys: [key, `${shard}:none`] }));
      expect(reasonOf(isMoving)).toBe('moving');
      const left = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
      expect(left).not.toContain(key);
      if (left.length > 0) await from.command('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...left);
      for (const server of [to, from]) await server.command('CLUSTER', 'SETSLOT', slot, 'NODE', toId ?? '');
      expect(await connection.run({ script: ADD_TO_ONE, keys: [key, `${shard}:none`] })).toBe(3);
    });
  });

  it('lets a server go that is no primary any more, and reconnects to it when it is one again', async () => {
    const connection = await connect(cluster);
    const [primary, replica] = [cluster.primaries[0], cluster.replicas[0]];
    if (primary === undefined || replica === undefined) throw new Error('no primary with a replica');
    expect(await connectionsTo(primary)).toBeGreaterThan(0);
    // A primary stays one while it keeps a slot that its replica does not know of yet.
    const id = String(await primary.command('CLUSTER', 'MYID'));
    await until('the replica knows all slots of its primary', async () => {
      return (await slotsOf(id, replica)) === (await slotsOf(id, primary));
    });
    await replica.command('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await until('no client is connected any more', async () => (await connectionsTo(primary)) === 0);
    await until('it is a replica', async () => String(await primary.command('ROLE')).startsWith('slave'));
    await primary.command('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await until('it is connected to', async () => (await connectionsTo(primary)) > 0);
    await until('the other one is let go', async () => (await connectionsTo(replica)) === 0);
    expect(connection.isUp).toBe(true);
  });

  it('follows a fail-over, and uses the other primaries as before while one is unavailable', async () => {
    const connection = await connect(cluster);
    await cluster.setPatience(SHORT);
    await cluster.primaries[0].kill();
    const results = await Promise.all(KEYS.map((key) => timed(() => connection.run({ script: WRITE, keys: [key] }))));
    expect(results.filter(({ milliseconds }) => milliseconds >= 1000)).toEqual([]);
    const refused = results.filter(({ error }) => error !== undefined);
    expect(refused.length).toBeGreaterThan(50);
    expect(refused.length).toBeLessThan(120);
    expect(refused.every(({ error }) => error instanceof StoreUnavailableError)).toBe(true);
    await until(
      'the replica has taken over',
      async () => {
        const again = await Promise.all(KEYS.map((key) => timed(() => connection.run({ script: WRITE, keys: [key] }))));
        return again.every(({ error }) => error === undefined);
      },
      FAIL_OVER,
    );
  }, 120_000);
});
