// How a token server takes up its state: a Redis that is away is waited for while others are served, one that holds
// another deployment's state is not.

import { afterAll, it as alone, expect, vi } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { readSettings } from '../../../src/processes/config/config.ts';
import { StartError } from '../../../src/processes/config/start-error.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { openRedisState, type RedisState } from '../../../src/processes/redis/redis-state.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { endProcesses, grantry } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { ownerOf, type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { concurrentTests, type Started } from '../setup/redis-suite.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

interface Opening {
  readonly onFatal?: (error: StartError) => void;
  readonly strict?: 'on' | 'off';
}

/** A Redis, the states that are opened on it, and what they log. */
class States<Of extends Started = RedisServer> {
  readonly server: Of;
  readonly lines: string[] = [];
  readonly #log = createLog('info', { write: (line) => void this.lines.push(line) });
  #opened: RedisState[] = [];

  constructor(server: Of) {
    this.server = server;
  }

  /** @param options.onFatal throws by default */
  async open(issuer: string, { onFatal = unexpected, strict = 'off' }: Opening = {}): Promise<RedisState> {
    const environment = { GRANTRY_REDIS_URL: this.server.url, GRANTRY_REDIS_STRICT: strict };
    const { redis } = readSettings({ environment });
    if (redis === undefined) throw new Error('no Redis is configured');
    const named = { explicit: issuer, fallback: issuer };
    const state = await openRedisState({ redis, log: this.#log, issuer: named, onFatal });
    this.#opened.push(state);
    return state;
  }

  async close(): Promise<void> {
    for (const state of this.#opened.splice(0)) await state.close();
  }

  async stop(): Promise<void> {
    await this.close();
    await this.server.stop();
  }

  async joined(): Promise<void> {
    await until('it has joined', () => this.lines.join('').includes('redis: reached'));
  }
}

function unexpected(error: StartError): never {
  throw error;
}

function reasonOf(error: unknown): string {
  if (error instanceof StoreUnavailableError) return error.reason;
  throw error;
}

// A test waits for servers most of the time.
vi.setConfig({ testTimeout: 60_000, maxConcurrency: 3 });
const AT_THE_SAME_TIME = { concurrent: true };

const onOne = async () => new States(await startRedis({ persistent: true }));

describeRedis('a server that serves others meanwhile', AT_THE_SAME_TIME, () => {
  afterAll(endProcesses);

  const it = concurrentTests(onOne);

  it('does not wait for a Redis that is away, and uses it once it is there', async ({ redis }) => {
    await redis.server.kill();
    const state = await redis.open('https://id.example');
    expect([state.probe.isUp, state.readiness.fault() === undefined]).toEqual([false, false]);
    expect(redis.lines.join('')).toContain('GRANTRY_REDIS_URL');
    await redis.server.start();
    await redis.joined();
    expect(await state.stores.replays.claim('test', 'value', Date.now() + 60_000)).toBe('fresh');
  });

  it('ends when the Redis that came back holds the state of another issuer', async ({ redis }) => {
    await redis.open('https://first.example');
    await redis.server.kill();
    const fatal = Promise.withResolvers<StartError>();
    await redis.open('https://second.example', { onFatal: fatal.resolve });
    await redis.server.start();
    const error = await fatal.promise;
    expect(error).toBeInstanceOf(StartError);
    expect(error.message).toContain('https://first.example');
  });

  it('serves no state of a Redis that answers and cannot be inspected, and takes it up once it can', async ({
    redis,
  }) => {
    await redis.server.command('ACL', 'SETUSER', 'default', '-info');
    const state = await redis.open('https://id.example');
    expect(state.readiness.fault()).toContain('not joined');
    expect(await state.stores.sessions.list('usr_ann').catch(reasonOf)).toBe('not_joined');
    await redis.server.command('ACL', 'SETUSER', 'default', '+info');
    await redis.joined();
    expect(await state.stores.sessions.list('usr_ann')).toEqual([]);
  });

  it('ends at once when a Redis that is there does', async ({ redis }) => {
    await redis.open('https://first.example');
    await expect(redis.open('https://second.example')).rejects.toBeInstanceOf(StartError);
  });

  it('ends with 1, and says why, where something else stands in the place of the issuer', async ({ redis }) => {
    await redis.server.command('RPUSH', new RedisKeys('grantry:').issuer(), 'something else');
    const environment = {
      GRANTRY_ISSUER: 'https://id.example',
      GRANTRY_NAMESPACE: 'grantry-system',
      GRANTRY_ADMIN_PORT: '0',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: '1',
      GRANTRY_REDIS_URL: redis.server.url,
    };
    const { code, errors } = await grantry(['server'], { environment });
    expect([code, errors]).toEqual([1, expect.stringMatching(/^grantry server: GRANTRY_REDIS_URL: .*WRONGTYPE.*\n$/)]);
  });
});

const OURS = 'https://id.example';
const keys = new RedisKeys('grantry:');
const shardsOf = (owner: number) => SHARDS.filter((shard) => ownerOf(keys.marker(shard)) === owner);
/** The primaries, by their places: the one that holds the issuer, the one that is away, and the other. */
const withIssuer = ownerOf(keys.issuer());
const away = (withIssuer + 1) % 3;
const third = (withIssuer + 2) % 3;

class OnCluster extends States<RedisCluster> {
  primary(index: number): RedisServer {
    const server = this.server.primaries[index];
    if (server === undefined) throw new Error('no such primary');
    return server;
  }

  /** Opens until the primaries that run are reached at once: on a busy machine the time of a start may be too short. */
  async openAtOnce(issuer: string): Promise<RedisState> {
    for (;;) {
      const state = await this.open(issuer, { onFatal() {} });
      if (state.readiness.fault()?.includes('what lies there')) return state;
      await this.close();
    }
  }

  /** A deployment that has been there, and no replica is now. */
  async left(): Promise<void> {
    await this.isServed(await this.open(OURS), 0, 1, 2);
    await this.close();
  }

  /** Waits until what is new is taken there: a machine that is busy may refuse it for a moment, as when a server starts. */
  async isServed(state: RedisState, ...owners: readonly number[]): Promise<void> {
    for (const owner of owners) await until('it is served', async () => (await asked(state, owner)) === 'fresh');
  }

  async globalWatermarks(owner: number): Promise<number> {
    const read = (shard: string) => this.primary(owner).command('GET', keys.globalWatermark(shard));
    return Math.min(...(await Promise.all(shardsOf(owner).map(read))).map(Number));
  }

  async markersOf(owner: number): Promise<number> {
    const count = (shard: string) => this.primary(owner).command('EXISTS', keys.marker(shard));
    return (await Promise.all(shardsOf(owner).map(count))).filter((found) => found === 1).length;
  }

  /** The fault for people names this primary and no other. */
  expectOnly(owner: number, fault: string | undefined): void {
    const named = this.server.primaries.map(({ port }) => fault?.includes(`127.0.0.1:${port}`));
    expect(named).toEqual(this.server.primaries.map((_, index) => index === owner));
  }
}

/** What a store answers for something new in the first shard of this primary: `fresh`, or why it does not. */
async function asked(state: RedisState, owner: number): Promise<unknown> {
  for (let number = 0; ; number++) {
    const value = `${performance.now()}-${number}`;
    if (keys.shardOfKey(keys.replay('test', value)) !== shardsOf(owner)[0]) continue;
    return await state.stores.replays.claim('test', value, Date.now() + 60_000).catch(reasonOf);
  }
}

// Each test waits for a Cluster of its own most of the time.
describeRedis('a server that starts while a primary of a Cluster is away', AT_THE_SAME_TIME, () => {
  const it = concurrentTests(async () => new OnCluster(await startCluster()));

  const NEW = 'nothing of this deployment was there yet';
  const LOST = 'state was lost';

  it('begins a new deployment once every shard was seen, and takes none of them for emptied', async ({ redis }) => {
    await redis.primary(away).kill();
    const state = await redis.open(OURS);
    expect([await asked(state, withIssuer), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    await redis.primary(away).start();
    await redis.joined();
    await redis.isServed(state, withIssuer, away, third);
    expect([NEW, LOST].map((told) => redis.lines.join('').includes(told))).toEqual([true, false]);
  });

  it('takes no deployment for a new one of which only the part that is away has anything left', async ({ redis }) => {
    await redis.primary(away).command('CONFIG', 'SET', 'appendonly', 'yes');
    await redis.primary(away).command('CONFIG', 'REWRITE');
    await redis.left();
    await redis.primary(away).kill();
    for (const owner of [withIssuer, third]) await redis.primary(owner).command('FLUSHALL');
    redis.lines.length = 0;
    const state = await redis.open(OURS);
    expect([await asked(state, withIssuer), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    const before = Date.now();
    await redis.primary(away).start();
    await redis.joined();
    expect([NEW, LOST].map((told) => redis.lines.join('').includes(told))).toEqual([false, true]);
    expect(await redis.globalWatermarks(away)).toBeGreaterThanOrEqual(before);
  });

  it('serves no state while its owner is unknown, writes nothing, and goes on when it is known', async ({ redis }) => {
    await redis.left();
    await redis.primary(withIssuer).kill();
    await redis.primary(third).command('FLUSHALL');
    const state = await redis.open(OURS);
    expect([await asked(state, away), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    redis.expectOnly(
      withIssuer,
      redis.lines.find((line) => line.includes('no Redis answers')),
    );
    redis.expectOnly(withIssuer, state.readiness.fault());
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(await redis.primary(third).command('DBSIZE')).toBe(0);
    await redis.primary(withIssuer).start();
    await redis.joined();
    await redis.isServed(state, withIssuer, third);
    expect(await redis.markersOf(third)).toBe(shardsOf(third).length);
  });

  it('serves what is there, and notices that another primary was emptied: everything made until then is dead', async ({
    redis,
  }) => {
    await redis.left();
    await redis.primary(away).kill();
    const state = await redis.open(OURS);
    await redis.isServed(state, withIssuer, third);
    const flushed = Date.now();
    await redis.primary(third).command('FLUSHALL');
    await until('it is raised', async () => (await redis.globalWatermarks(withIssuer)) >= flushed);
    await until('it is raised there too', async () => (await redis.globalWatermarks(third)) >= flushed);
    expect(await redis.markersOf(third)).toBe(shardsOf(third).length);
  });

  it('does not begin before what it makes outlives what was raised for a primary that was emptied', async ({
    redis,
  }) => {
    await redis.left();
    await redis.primary(away).kill();
    await redis.primary(third).command('FLUSHALL');
    const flushed = Date.now();
    await redis.openAtOnce(OURS);
    const dated = Math.floor(Date.now() / 1000) * 1000;
    const raisedTo = await redis.globalWatermarks(third);
    expect(raisedTo).toBeGreaterThanOrEqual(flushed);
    expect(dated).toBeGreaterThan(raisedTo);
  });

  it('inspects the one that was away once it is back, before anything there is served', async ({ redis }) => {
    await redis.left();
    await redis.primary(away).kill();
    const state = await redis.openAtOnce(OURS);
    expect(await asked(state, away)).toBe('not_joined');
    redis.expectOnly(away, state.readiness.fault());
    const before = Date.now();
    await redis.primary(away).start();
    await redis.isServed(state, away);
    expect(await redis.primary(away).command('EXISTS', keys.marker(shardsOf(away)[0] ?? ''))).toBe(1);
    await until('all of it was seen to', async () => (await redis.globalWatermarks(away)) >= before);
    expect(await redis.globalWatermarks(withIssuer)).toBeGreaterThanOrEqual(before);
    await redis.joined();
    expect(state.readiness.fault()).toBeUndefined();
  });

  it('says that a part of it is not inspected yet, as long as it cannot be', async ({ redis }) => {
    await redis.left();
    await redis.primary(away).command('CONFIG', 'SET', 'maxmemory', 1);
    await redis.primary(away).command('CONFIG', 'REWRITE');
    await redis.primary(away).kill();
    const state = await redis.open(OURS);
    await redis.primary(away).start();
    const { length } = shardsOf(away);
    await until(
      'it is reported',
      () => state.readiness.fault()?.startsWith(`joined in part: ${length} shards`) === true,
    );
    expect(await asked(state, away)).toBe('not_joined');
    await redis.primary(away).command('CONFIG', 'SET', 'maxmemory', 0);
    await until('all is well', () => state.readiness.fault() === undefined);
    await redis.isServed(state, away);
  });

  it('calls all of it away, and not a part, where nothing answers', async ({ redis }) => {
    await redis.left();
    for (const server of redis.server.primaries) await server.kill();
    const state = await redis.open(OURS);
    expect(state.readiness.fault()).toMatch(/^away: the Cluster at /);
  });

  it('ends at once when the state is that of another issuer', async ({ redis }) => {
    await redis.left();
    await redis.primary(away).kill();
    await expect(redis.openAtOnce('https://other.example')).rejects.toThrow(OURS);
  });

  it('looks whether the one that was away is set up to keep state, too', async ({ redis }) => {
    for (const index of [withIssuer, third]) await redis.primary(index).command('CONFIG', 'SET', 'appendonly', 'yes');
    await redis.left();
    await redis.primary(away).kill();
    const fatal = Promise.withResolvers<StartError>();
    const state = await redis.open(OURS, { onFatal: fatal.resolve, strict: 'on' });
    await redis.isServed(state, third);
    await redis.primary(away).start();
    const { message } = await fatal.promise;
    expect(message).toContain(`127.0.0.1:${redis.primary(away).port}`);
    expect(message).not.toContain(`127.0.0.1:${redis.primary(third).port}`);
  });
});

// Alone: it moves the clock of this process.
describeRedis('a server whose clock is off', () => {
  alone(
    'says that its clock is off that of Redis, in the log, the metric and on /readyz',
    async ({ onTestFinished }) => {
      const redis = await onOne();
      onTestFinished(() => redis.stop());
      const now = Date.now.bind(Date);
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 5000);
      onTestFinished(() => clock.mockRestore());
      const state = await redis.open('https://id.example');
      const [warning = '{}'] = redis.lines.filter((line) => line.includes('behind that of Redis'));
      expect(JSON.parse(warning)).toMatchObject({ level: 'warn', milliseconds: expect.any(Number) });
      expect(state.probe.warnings()).toContain('clock_skew');
      expect(state.readiness.fault()).toMatch(/^the clock here is \d\.\d s behind/);
      clock.mockRestore();
      await until('it is right', () => state.readiness.fault() === undefined);
      expect(state.probe.warnings()).not.toContain('clock_skew');
      expect(redis.lines.join('')).toContain('agree again');
    },
  );
});
