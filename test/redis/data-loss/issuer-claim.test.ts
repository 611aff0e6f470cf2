import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WatermarkStore } from '../../../src/oauth/ports/token-stores.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { claimIssuer, IssuerConflictError } from '../../../src/redis/data-loss/issuer-claim.ts';
import type { ShardEvent } from '../../../src/redis/data-loss/shard-repair.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { until } from '../../until.ts';
import { connectTo, expectWithin, timed } from '../setup/connect.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const ISSUER = 'https://id.example';
const keys = new RedisKeys('grantry:');

/** A replica: its connection, its watch and what that noticed. */
interface Replica {
  readonly connection: ManagedConnection;
  readonly watermarks: WatermarkStore;
  readonly watch: ShardWatch;
  readonly events: readonly ShardEvent[];
}

let replicas: Replica[] = [];
afterEach(async () => {
  for (const { watch, connection } of replicas) {
    watch.stop();
    await connection.close();
  }
  replicas = [];
});

/** A replica that has started. */
async function startReplica(server: { readonly url: string }): Promise<Replica> {
  const connection = await connectTo(server);
  const { watermarks } = redisStores({ connection, keys });
  const events: ShardEvent[] = [];
  await claimIssuer({ connection, keys }, { explicit: ISSUER, fallback: ISSUER });
  const observe = (event: ShardEvent) => void events.push(event);
  const watch = new ShardWatch({ connection, keys, issuer: ISSUER, clock: systemClock, observe });
  const replica = { connection, watermarks, watch, events };
  replicas.push(replica);
  await watch.start();
  return replica;
}

/** Each time the watch found shards empty. */
const losses = ({ events }: Replica) => events.filter((event) => event.kind === 'found_empty');

/** What a grant without a person has to be newer than. */
const globalWatermark = ({ watermarks }: Replica) => watermarks.read('uid', undefined);

describeRedis('the issuer in Redis', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectTo(server);
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });
  const agree = (explicit: string | undefined, fallback = 'http://localhost:9400') =>
    claimIssuer({ connection, keys }, { explicit, fallback });

  it('is that of the first replica', async () => {
    expect(await agree(ISSUER)).toBe(ISSUER);
    expect(await agree(ISSUER)).toBe(ISSUER);
  });

  it('is taken over by a replica that was given none', async () => {
    expect(await agree(undefined)).toBe('http://localhost:9400');
    expect(await agree(undefined, 'http://localhost:9500')).toBe('http://localhost:9400');
  });

  it('refuses a replica that was given another, with both values', async () => {
    await agree(ISSUER);
    const refusal = await agree('https://other.example').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(IssuerConflictError);
    expect(refusal).toMatchObject({ stored: ISSUER, configured: 'https://other.example' });
    expect((refusal as Error).message).toContain('GRANTRY_ISSUER');
    expect(await agree(ISSUER)).toBe(ISSUER);
  });

  it('is one for each prefix', async () => {
    await agree(ISSUER);
    const others = new RedisKeys('other:');
    const other = { explicit: 'https://other.example', fallback: '' };
    expect(await claimIssuer({ connection, keys: others }, other)).toBe('https://other.example');
  });
});

describeRedis('the watch over the shards of one server', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(async () => await server.stop());

  it('lets what a new deployment makes from the start outlive the watermark', async () => {
    const replica = await startReplica(server);
    expect(await globalWatermark(replica)).toBeLessThan(Math.floor(Date.now() / 1000) * 1000);
    expect(replica.events).toEqual([{ kind: 'found_empty', shards: SHARDS.length, isFirstCheck: true }]);
  });

  it('raises nothing when a second replica starts', async () => {
    const first = await startReplica(server);
    const before = await globalWatermark(first);
    const second = await startReplica(server);
    expect(second.events).toEqual([]);
    expect(await globalWatermark(second)).toBe(before);
  });

  it('does not take a deployment for a new one that lost a part while no replica was running', async () => {
    const before = await startReplica(server);
    before.watch.stop();
    await server.command('DEL', ...SHARDS.slice(0, 80).map((shard) => keys.marker(shard)));
    const { events } = await startReplica(server);
    expect(events).toEqual([{ kind: 'found_empty', shards: 80, isFirstCheck: false }]);
  });

  it('notices within two seconds that Redis was emptied: everything made until then is revoked', async () => {
    const replica = await startReplica(server);
    await expectWithin(2000, async () => {
      const before = losses(replica).length;
      const flushed = Date.now();
      await server.command('FLUSHALL');
      const isRaised = async () => (await globalWatermark(replica)) >= flushed;
      const { error, milliseconds } = await timed(() => until('the watermark is raised', isRaised));
      if (error !== undefined) throw error;
      await until('the watch has finished', () => losses(replica).length > before);
      return milliseconds;
    });
    expect(losses(replica).at(-1)).toEqual({ kind: 'found_empty', shards: SHARDS.length, isFirstCheck: false });
    expect(await server.command('EXISTS', ...SHARDS.map((shard) => keys.marker(shard)))).toBe(SHARDS.length);
    expect(await server.command('GET', keys.issuer())).toBe(ISSUER);
  });

  it('notices a server that comes back empty', async () => {
    const replica = await startReplica(server);
    await server.kill();
    const died = Date.now();
    await server.start();
    await until('the watermark is raised', async () => (await globalWatermark(replica).catch(() => 0)) >= died);
  });

  it('reports another deployment that took an emptied Redis over', async () => {
    const replica = await startReplica(server);
    await server.command('SET', keys.issuer(), 'https://other.example');
    await server.command('DEL', keys.marker('000'));
    await until('the conflict is reported', () => replica.events.some(({ kind }) => kind === 'issuer_conflict'));
  });

  describe('applies the revocations of the last minute again', () => {
    let replica: Replica;
    const lost = keys.userWatermark('usr_alice');
    beforeEach(async () => {
      replica = await startReplica(server);
      await replica.watermarks.raise({ kind: 'user', subject: 'usr_alice' }, 123);
      // Once each is applied again without a reason.
      await replica.watch.check();
      await server.command('DEL', lost);
    });
    const isRestored = () =>
      until('the watermark is restored', async () => (await server.command('GET', lost)) === '123');

    it('when another server has taken over without a broken connection', async () => {
      await server.command('DEBUG', 'CHANGE-REPL-ID');
      await isRestored();
      // It is reported once all of them are applied again.
      await until('it is reported', () => replica.events.some(({ kind }) => kind === 'reasserted'));
    });

    it('after a reconnect', async () => {
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await isRestored();
    });
  });
});

describeRedis('the watch over the shards of a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(async () => await cluster.stop());

  it('raises the watermark of every shard when one primary was emptied', async () => {
    const replica = await startReplica(cluster);
    const flushed = Date.now();
    await cluster.primaries[1].command('FLUSHALL');
    await until('the watch has noticed', () => losses(replica).length === 2);
    const shards = losses(replica)[1]?.shards;
    expect(shards).toBeGreaterThan(50);
    expect(shards).toBeLessThan(120);
    for (const uid of Array.from({ length: 20 }, (_, i) => `uid-${i}`)) {
      expect(await replica.watermarks.read(uid, undefined)).toBeGreaterThanOrEqual(flushed);
    }
  });
});
