// How a token server takes up its state: an unavailable Redis is waited for while others are served, one that holds
// another deployment's state is not.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
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
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const opened: RedisState[] = [];
const lines: string[] = [];
const log = createLog('info', { write: (line) => void lines.push(line) });

beforeEach(() => {
  lines.length = 0;
});
afterEach(async () => {
  for (const state of opened.splice(0)) await state.close();
});

interface Opening {
  readonly url: string;
  readonly issuer: string;
  readonly onFatal: (error: StartError) => void;
  readonly strict?: 'on' | 'off';
}

async function openOn({ url, issuer, onFatal, strict = 'off' }: Opening): Promise<RedisState> {
  const { redis } = readSettings({ environment: { GRANTRY_REDIS_URL: url, GRANTRY_REDIS_STRICT: strict } });
  if (redis === undefined) throw new Error('no Redis is configured');
  const state = await openRedisState({ redis, log, issuer: { explicit: issuer, fallback: issuer }, onFatal });
  opened.push(state);
  return state;
}

const unexpected = (error: StartError) => {
  throw error;
};

function reasonOf(error: unknown): string {
  if (error instanceof StoreUnavailableError) return error.reason;
  throw error;
}

describeRedis('a server that serves others meanwhile', () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = await startRedis({ persistent: true });
  });
  afterEach(async () => {
    await endProcesses();
    await server.stop();
  });

  const open = (issuer: string, onFatal: (error: StartError) => void) => openOn({ url: server.url, issuer, onFatal });

  it('does not wait for an unavailable Redis, and uses it once it recovers', async () => {
    await server.kill();
    const state = await open('https://id.example', unexpected);
    expect([state.probe.isUp, state.readiness.fault() === undefined]).toEqual([false, false]);
    expect(lines.join('')).toContain('GRANTRY_REDIS_URL');
    await server.start();
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    expect(await state.stores.replays.claim('test', 'value', Date.now() + 60_000)).toBe('fresh');
  });

  it('ends when the Redis that came back holds the state of another issuer', async () => {
    await open('https://first.example', unexpected);
    await server.kill();
    const fatal = Promise.withResolvers<StartError>();
    await open('https://second.example', fatal.resolve);
    await server.start();
    const error = await fatal.promise;
    expect(error).toBeInstanceOf(StartError);
    expect(error.message).toContain('https://first.example');
  });

  it('serves no state of a Redis that answers and cannot be inspected, and takes it up once it can', async () => {
    await server.command('ACL', 'SETUSER', 'default', '-info');
    const state = await open('https://id.example', unexpected);
    expect(state.readiness.fault()).toContain('not joined');
    expect(await state.stores.sessions.list('usr_ann').catch(reasonOf)).toBe('not_joined');
    await server.command('ACL', 'SETUSER', 'default', '+info');
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    expect(await state.stores.sessions.list('usr_ann')).toEqual([]);
  });

  it('says that its clock is off that of Redis, in the log, the metric and on /readyz', async () => {
    const now = Date.now.bind(Date);
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 5000);
    try {
      const state = await open('https://id.example', unexpected);
      const [warning = '{}'] = lines.filter((line) => line.includes('behind that of Redis'));
      expect(JSON.parse(warning)).toMatchObject({ level: 'warn', milliseconds: expect.any(Number) });
      expect(state.probe.warnings()).toContain('clock_skew');
      expect(state.readiness.fault()).toMatch(/^the clock here is \d\.\d s behind/);
      clock.mockRestore();
      await until('it is right', () => state.readiness.fault() === undefined);
      expect(state.probe.warnings()).not.toContain('clock_skew');
      expect(lines.join('')).toContain('agree again');
    } finally {
      clock.mockRestore();
    }
  });

  it('warns of a Redis elsewhere without password and TLS, and where it is strict does not start on it', async () => {
    // No name of the loopback interface, and led there all the same.
    const url = server.url.replace('127.0.0.1', '0.0.0.0');
    const issuer = 'https://id.example';
    const state = await openOn({ url, issuer, onFatal: unexpected });
    expect(state.probe.warnings()).toEqual(['no_password', 'no_tls']);
    expect(lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn')).toMatchObject([
      { reason: 'no_password' },
      { reason: 'no_tls' },
    ]);
    const refused = openOn({ url, issuer, onFatal: unexpected, strict: 'on' });
    await expect(refused).rejects.toThrow(/without a password.*without TLS/);
  });

  it('ends at once when a Redis that is there does', async () => {
    await open('https://first.example', unexpected);
    await expect(open('https://second.example', unexpected)).rejects.toBeInstanceOf(StartError);
  });

  it('ends with 1, and says why, where something else stands in the place of the issuer', async () => {
    await server.command('RPUSH', new RedisKeys('grantry:').issuer(), 'something else');
    const environment = {
      GRANTRY_ISSUER: 'https://id.example',
      GRANTRY_NAMESPACE: 'grantry-system',
      GRANTRY_ADMIN_PORT: '0',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: '1',
      GRANTRY_REDIS_URL: server.url,
    };
    const { code, errors } = await grantry(['server'], { environment });
    expect([code, errors]).toEqual([1, expect.stringMatching(/^grantry server: GRANTRY_REDIS_URL: .*WRONGTYPE.*\n$/)]);
  });
});

describeRedis('a server that starts while a primary of a Cluster is unavailable', () => {
  const OURS = 'https://id.example';
  const keys = new RedisKeys('grantry:');
  const shardsOf = (owner: number) => SHARDS.filter((shard) => ownerOf(keys.marker(shard)) === owner);
  const withIssuer = ownerOf(keys.issuer());
  const away = (withIssuer + 1) % 3;
  const third = (withIssuer + 2) % 3;

  let cluster: RedisCluster;
  beforeEach(async () => {
    cluster = await startCluster();
  });
  afterEach(async () => await cluster.stop());

  function primary(index: number): RedisServer {
    const server = cluster.primaries[index];
    if (server === undefined) throw new Error('no such primary');
    return server;
  }
  const open = (issuer: string, onFatal = unexpected) => openOn({ url: cluster.url, issuer, onFatal });

  /** A deployment that has been there, and no replica is now. */
  async function left(): Promise<void> {
    await open(OURS);
    for (const state of opened.splice(0)) await state.close();
  }

  /** What a store answers for something new in the first shard of this primary: `fresh`, or why it does not. */
  async function asked(state: RedisState, owner: number): Promise<unknown> {
    for (let number = 0; ; number++) {
      const value = `${performance.now()}-${number}`;
      if (keys.shardOfKey(keys.replay('test', value)) !== shardsOf(owner)[0]) continue;
      return await state.stores.replays.claim('test', value, Date.now() + 60_000).catch(reasonOf);
    }
  }
  /** Waits until what is new is taken there: a machine that is busy may refuse it for a moment, as when a server starts. */
  async function isServed(state: RedisState, ...owners: readonly number[]): Promise<void> {
    for (const owner of owners) await until('it is served', async () => (await asked(state, owner)) === 'fresh');
  }
  const globalWatermarks = async (owner: number): Promise<number> => {
    const read = (shard: string) => primary(owner).command('GET', keys.globalWatermark(shard));
    return Math.min(...(await Promise.all(shardsOf(owner).map(read))).map(Number));
  };
  /** The fault for people names this primary and no other. */
  function expectOnly(owner: number, told: string | undefined): void {
    const named = cluster.primaries.map(({ port }) => told?.includes(`127.0.0.1:${port}`));
    expect(named).toEqual(cluster.primaries.map((_, index) => index === owner));
  }
  const markersOf = async (owner: number): Promise<number> => {
    const count = (shard: string) => primary(owner).command('EXISTS', keys.marker(shard));
    return (await Promise.all(shardsOf(owner).map(count))).filter((found) => found === 1).length;
  };

  it('serves what is there, and notices that another primary was emptied: everything made until then is revoked', async () => {
    await left();
    await primary(away).kill();
    const state = await open(OURS);
    await isServed(state, withIssuer, third);
    const flushed = Date.now();
    await primary(third).command('FLUSHALL');
    await until('it is raised', async () => (await globalWatermarks(withIssuer)) >= flushed);
    await until('it is raised there too', async () => (await globalWatermarks(third)) >= flushed);
    expect(await markersOf(third)).toBe(shardsOf(third).length);
  });

  it('does not begin before what it makes outlives what was raised for a primary that was emptied', async () => {
    await left();
    await primary(away).kill();
    await primary(third).command('FLUSHALL');
    const flushed = Date.now();
    await open(OURS);
    const dated = Math.floor(Date.now() / 1000) * 1000;
    const raisedTo = await globalWatermarks(third);
    expect(raisedTo).toBeGreaterThanOrEqual(flushed);
    expect(dated).toBeGreaterThan(raisedTo);
  });

  it('inspects the unavailable one once it recovers, before anything there is served', async () => {
    await left();
    await primary(away).kill();
    const state = await open(OURS);
    expect(await asked(state, away)).toBe('not_joined');
    expectOnly(away, state.readiness.fault());
    const before = Date.now();
    await primary(away).start();
    await isServed(state, away);
    expect(await primary(away).command('EXISTS', keys.marker(shardsOf(away)[0] ?? ''))).toBe(1);
    await until('all of it was seen to', async () => (await globalWatermarks(away)) >= before);
    expect(await globalWatermarks(withIssuer)).toBeGreaterThanOrEqual(before);
    await until('it is logged', () => lines.join('').includes('redis: reached'));
    expect(state.readiness.fault()).toBeUndefined();
  });

  it('says that a part of it is not inspected yet, as long as it cannot be', async () => {
    await left();
    await primary(away).command('CONFIG', 'SET', 'maxmemory', 1);
    await primary(away).command('CONFIG', 'REWRITE');
    await primary(away).kill();
    const state = await open(OURS);
    await primary(away).start();
    const { length } = shardsOf(away);
    await until(
      'it is reported',
      () => state.readiness.fault()?.startsWith(`joined in part: ${length} shards`) === true,
    );
    expect(await asked(state, away)).toBe('not_joined');
    await primary(away).command('CONFIG', 'SET', 'maxmemory', 0);
    await until('all is well', () => state.readiness.fault() === undefined);
    await isServed(state, away);
  });

  it('calls all of it away, and not a part, where nothing answers', async () => {
    await left();
    for (const server of cluster.primaries) await server.kill();
    const state = await open(OURS);
    expect(state.readiness.fault()).toMatch(/^away: the Cluster at /);
  });

  const NEW = 'nothing of this deployment was there yet';
  const LOST = 'state was lost';

  it('begins a new deployment once every shard was seen, and takes none of them for emptied', async () => {
    await primary(away).kill();
    const state = await open(OURS);
    expect([await asked(state, withIssuer), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    await primary(away).start();
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    await isServed(state, withIssuer, away, third);
    expect([NEW, LOST].map((told) => lines.join('').includes(told))).toEqual([true, false]);
  });

  it('takes no deployment for a new one of which only the unavailable part has anything left', async () => {
    await primary(away).command('CONFIG', 'SET', 'appendonly', 'yes');
    await primary(away).command('CONFIG', 'REWRITE');
    await left();
    await primary(away).kill();
    for (const owner of [withIssuer, third]) await primary(owner).command('FLUSHALL');
    lines.length = 0;
    const state = await open(OURS);
    expect([await asked(state, withIssuer), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    const before = Date.now();
    await primary(away).start();
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    expect([NEW, LOST].map((told) => lines.join('').includes(told))).toEqual([false, true]);
    expect(await globalWatermarks(away)).toBeGreaterThanOrEqual(before);
  });

  it('ends at once when the state is that of another issuer', async () => {
    await left();
    await primary(away).kill();
    await expect(open('https://other.example')).rejects.toThrow(OURS);
  });

  it('serves no state while its owner is unknown, writes nothing, and goes on when it is known', async () => {
    await left();
    await primary(withIssuer).kill();
    await primary(third).command('FLUSHALL');
    const state = await open(OURS);
    expect([await asked(state, away), await asked(state, third)]).toEqual(['not_joined', 'not_joined']);
    expectOnly(
      withIssuer,
      lines.find((line) => line.includes('no Redis answers')),
    );
    expectOnly(withIssuer, state.readiness.fault());
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(await primary(third).command('DBSIZE')).toBe(0);
    await primary(withIssuer).start();
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    await isServed(state, withIssuer, third);
    expect(await markersOf(third)).toBe(shardsOf(third).length);
  });

  it('checks whether the one that was unavailable is set up to keep state, too', async () => {
    for (const index of [withIssuer, third]) await primary(index).command('CONFIG', 'SET', 'appendonly', 'yes');
    await left();
    await primary(away).kill();
    const fatal = Promise.withResolvers<StartError>();
    const state = await openOn({ url: cluster.url, issuer: OURS, onFatal: fatal.resolve, strict: 'on' });
    await isServed(state, third);
    await primary(away).start();
    const { message } = await fatal.promise;
    expect(message).toContain(`127.0.0.1:${primary(away).port}`);
    expect(message).not.toContain(`127.0.0.1:${primary(third).port}`);
  });
});
