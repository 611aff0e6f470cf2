// TLS everywhere: to the Sentinels and whatever they call the primary, and to every node of a Cluster.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { until } from '../../until.ts';
import { type Certificates, makeCertificates, tlsOf } from '../setup/certificates.ts';
import { connectTo, isAcknowledged, WRITE } from '../setup/connect.ts';
import { failOver } from '../setup/fail-over.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { type ReplicatedRedis, startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis } from '../setup/servers.ts';

const ACKNOWLEDGED = { acknowledgement: { replicas: 1, timeout: 300 } };

const folder = mkdtempSync(join(tmpdir(), 'grantry-tls-'));
let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

const open: ManagedConnection[] = [];
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
});

async function connected(redis: { readonly url: string }, options: Omit<ConnectionOptions, 'target'> = {}) {
  const connection = await connectTo(redis, { credentials: () => certificates, ...options }, 15_000);
  open.push(connection);
  return connection;
}

/** Refuses a client that does not know the authority, has no certificate, or speaks no TLS. */
async function isClosedToOthers({ url }: { readonly url: string }): Promise<void> {
  const { ca, certificate, key } = certificates;
  for (const others of [{ ca }, { certificate, key }]) {
    const refused = connectTo({ url }, { credentials: () => others }, 1000);
    await expect(refused).rejects.toBeInstanceOf(StoreUnavailableError);
  }
  const plain = connectTo({ url: url.replace('rediss', 'redis') }, {}, 1000);
  await expect(plain).rejects.toBeInstanceOf(StoreUnavailableError);
}

describeRedis('Sentinels and their servers with TLS', () => {
  let redis: ReplicatedRedis;
  beforeAll(async () => {
    redis = await startReplicated({ tls: tlsOf(folder, certificates) });
  });
  afterAll(() => redis.stop());

  it('are used with our certificate and their authority, before and after a fail-over', async () => {
    const connection = await connected(redis, ACKNOWLEDGED);
    expect(redis.url).toMatch(/^rediss\+sentinel:/);
    expect(await connection.run({ script: WRITE, keys: ['{s000}:x'] })).toBe('OK');
    const acknowledges = () => isAcknowledged(connection, '{s000}:x');
    await until('a replica acknowledges', acknowledges);
    await failOver(redis, [connection]);
    await until('a replica of the other primary acknowledges', acknowledges);
  }, 120_000);

  it('are closed to all other clients', () => isClosedToOthers(redis));
});

describeRedis('a Cluster with TLS', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicated: true, tls: tlsOf(folder, certificates) });
  });
  afterAll(() => cluster.stop());

  it('is used with our certificate and its authority at every node', async () => {
    const connection = await connected(cluster, ACKNOWLEDGED);
    expect(cluster.url).toMatch(/^rediss\+cluster:/);
    for (const shard of SHARDS) expect(await connection.run({ script: WRITE, keys: [`{s${shard}}:x`] })).toBe('OK');
    for (const key of ['{s000}:x', '{s001}:x', '{s002}:x']) {
      await until('a replica acknowledges', () => isAcknowledged(connection, key));
    }
    for (const primary of cluster.primaries) expect(await primary.command('DBSIZE')).toBeGreaterThan(0);
  });

  it('is closed to all other clients', () => isClosedToOthers(cluster));
});
